// The conversion vectors of tests/data/layouts/conversions.json as encodings and layouts.
#pragma once

#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "layout/encoding.h"

namespace sonde::layout::test {

// {"in": [["block", [[1], [0]]]], "out": [["dim0", 2]]}: in dims with their bases, out dims with their sizes.
inline const Layout *layout_of_json(Arena &arena, const nlohmann::json &json) {
  std::vector<DimSize> ins;
  std::vector<DimSize> outs;
  std::vector<uint64_t> rows;
  for (const auto &in : json.at("in")) {
    ins.push_back({intern_dim(in.at(0).get<std::string>()), static_cast<uint32_t>(in.at(1).size())});
    for (const auto &row : in.at(1)) {
      for (const auto &value : row) rows.push_back(value.get<uint64_t>());
    }
  }
  for (const auto &out : json.at("out")) {
    outs.push_back({intern_dim(out.at(0).get<std::string>()), lowest_bit(out.at(1).get<uint64_t>())});
  }
  return make_from_bases(arena, ins, outs, rows);
}

inline Bases bases_of_json(const nlohmann::json &json, const std::string &in) {
  for (const auto &entry : json.at("in")) {
    if (entry.at(0).get<std::string>() == in) return entry.at(1).get<Bases>();
  }
  return {};
}

inline Encoding encoding_of_json(const nlohmann::json &json) {
  Encoding encoding;
  const auto kind = json.at("kind").get<std::string>();
  const auto sizes = [&](const char *name) { return json.at(name).get<std::vector<uint64_t>>(); };
  encoding.cga.block = bases_of_json(json.at("cga"), "block");
  if (json.contains("order")) encoding.order = json.at("order").get<std::vector<uint32_t>>();
  if (json.contains("parent")) encoding.parent = std::make_shared<Encoding>(encoding_of_json(json.at("parent")));
  if (kind == "blocked") {
    encoding.kind = EncodingKind::kBlocked;
    encoding.size_per_thread = sizes("spt");
    encoding.threads_per_warp = sizes("tpw");
    encoding.warps_per_cta = sizes("wpc");
  } else if (kind == "slice") {
    encoding.kind = EncodingKind::kSlice;
    encoding.dim = json.at("dim").get<uint32_t>();
  } else if (kind == "dot") {
    encoding.kind = EncodingKind::kDotOperand;
    encoding.operand_index = json.at("op").get<uint32_t>();
    encoding.k_width = json.at("kw").get<uint32_t>();
  } else if (kind == "mma") {
    encoding.kind = EncodingKind::kNvidiaMma;
    encoding.version_major = json.at("maj").get<uint32_t>();
    encoding.instruction_shape = sizes("instr");
    encoding.warps_per_cta = sizes("warps");
  } else if (kind == "mfma") {
    encoding.kind = EncodingKind::kMfma;
    encoding.version_major = json.at("ver").get<uint32_t>();
    encoding.instruction_shape = sizes("instr");
    encoding.warps_per_cta = sizes("warps");
    encoding.is_transposed = json.at("tr").get<bool>();
    encoding.tiles_per_warp = sizes("tpw");
    encoding.element_bits = json.at("ebw").get<uint32_t>();
  } else if (kind == "wmma") {
    encoding.kind = EncodingKind::kWmma;
    encoding.version_major = json.at("ver").get<uint32_t>();
    encoding.instruction_shape = sizes("instr");
    encoding.warps_per_cta = sizes("warps");
    encoding.is_transposed = json.at("tr").get<bool>();
    encoding.register_bases = bases_of_json(json.at("cta"), "register");
    encoding.warp_bases = bases_of_json(json.at("cta"), "warp");
  } else if (kind == "shared" || kind == "rot") {
    encoding.kind = kind == "rot" ? EncodingKind::kRotatingShared : EncodingKind::kSwizzledShared;
    encoding.vec = json.at("vec").get<uint64_t>();
    encoding.per_phase = json.at("perPhase").get<uint64_t>();
    encoding.max_phase = json.at("maxPhase").get<uint64_t>();
  } else if (kind == "nvmma") {
    encoding.kind = EncodingKind::kNvmmaShared;
    encoding.swizzle_bytes = json.at("swb").get<uint32_t>();
    encoding.transposed = json.at("tr").get<bool>();
    encoding.element_bits = json.at("bw").get<uint32_t>();
    encoding.fp4_padded = json.at("fp4").get<bool>();
  } else if (kind == "tmem") {
    encoding.kind = EncodingKind::kTensorMemory;
    encoding.block_m = json.at("bm").get<uint64_t>();
    encoding.block_n = json.at("bn").get<uint64_t>();
    encoding.column_stride = json.at("cs").get<uint64_t>();
    encoding.two_ctas = json.at("two").get<bool>();
    encoding.fp4_padded = json.at("fp4").get<bool>();
  } else if (kind == "tmemscales") {
    encoding.kind = EncodingKind::kTensorMemoryScales;
    encoding.k_then_mn = json.at("kmn").get<bool>();
  } else {
    throw std::runtime_error("no such kind of encoding in the vectors: " + kind);
  }
  return encoding;
}

struct ConversionVector {
  std::string test;
  std::vector<uint64_t> shape;
  Encoding encoding;
  nlohmann::json expected;
};

inline std::vector<ConversionVector> read_conversion_vectors(const std::string &path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot open " + path);
  std::vector<ConversionVector> vectors;
  const nlohmann::json all = nlohmann::json::parse(file);
  for (const auto &entry : all.at("vectors")) {
    vectors.push_back({entry.at("test").get<std::string>(), entry.at("shape").get<std::vector<uint64_t>>(),
                       encoding_of_json(entry.at("encoding")), entry.at("expected")});
  }
  return vectors;
}

}  // namespace sonde::layout::test
