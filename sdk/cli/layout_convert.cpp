// `sonde layout convert`: a layout in another form.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>

#include "cli/layout_command.h"
#include "cli/layout_facts.h"
#include "cli/layout_reader.h"

namespace sonde::cli {
namespace {

constexpr const char *kExamples = R"(Forms:
  json              what @FILE and '{"in": ...}' read
  bytes, bytes-hex  the binary form, as it is (for -o FILE) or in hexadecimal
  triton            the list of bases that Triton prints
  attribute         the attribute in its newest spelling, parents in place
  linear-attribute  #ttg.linear<{register = ..., lane = ..., warp = ..., block = ...}>, or #ttg.shared_linear
  cute              a CuTe layout, with a swizzle where it needs one: of a memory from the tensor's coordinates to
                    offsets; of registers from (register, lane, warp, block) to the colexicographic index in the tensor

Examples:
  sonde layout convert kernel.ttgir:#mma --shape 64x64 --to json -o mma.json
  sonde layout convert @mma.json --to linear-attribute
  sonde layout convert kernel.ttgir:#shared --shape 64x64 --to cute)";

struct Flags {
  std::string layout;
  LayoutFlags named;
  std::string form;
  std::string output;
};

std::string hex_text(const std::vector<uint8_t> &bytes) {
  std::string text;
  for (const uint8_t byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

// "[[0, 1], [8, 0]]": the bases of one in dim, with a value for each out dim.
std::string bases_text(const sonde_layout_view_t &view, const NamedDim &in) {
  std::vector<std::string> rows;
  for (uint32_t bit = 0; bit < in.bits; ++bit) {
    std::vector<uint64_t> values;
    for (uint32_t out = 0; out < view.out_count; ++out) {
      const uint64_t mask = (uint64_t{1} << view.outs[out].bits) - 1;
      values.push_back(view.columns[in.shift + bit] >> view.outs[out].shift & mask);
    }
    rows.push_back(fmt::format("[{}]", fmt::join(values, ", ")));
  }
  return fmt::format("[{}]", fmt::join(rows, ", "));
}

std::string linear_attribute(const LayoutArena &arena, const NamedLayout &named) {
  const LayoutFacts facts = facts_of(arena, named.layout);
  const sonde_layout_view_t view = named.layout.view();
  const auto refuse = [&](const std::string &why) {
    throw CommandError(
        kUsage, fmt::format("{}: there is no attribute of linear layouts for it: {}", short_name(named.title), why));
  };
  const auto has = [&](std::string_view name) {
    return std::any_of(facts.ins.begin(), facts.ins.end(), [&](const NamedDim &in) { return in.name == name; });
  };
  const std::vector<std::string> names = has("offset") ? std::vector<std::string>{"offset", "block"}
                                                       : std::vector<std::string>{"register", "lane", "warp", "block"};
  for (const NamedDim &in : facts.ins) {
    if (std::find(names.begin(), names.end(), in.name) == names.end()) {
      refuse(fmt::format("its in dims would have to be {}, but it has {}", fmt::join(names, ", "), in.name));
    }
  }
  for (size_t i = 0; i < facts.outs.size(); ++i) {
    if (facts.outs[i].name != fmt::format("dim{}", i)) {
      refuse(fmt::format("its out dim {} would have to be dim{}", facts.outs[i].name, i));
    }
  }
  if (facts.outs.empty()) refuse("it has no out dims");
  if (view.offset != 0) refuse("it maps 0 to something else than 0");
  if (!facts.is_surjective) refuse("it does not reach every element");
  std::vector<std::string> parts;
  for (const std::string &name : names) {
    NamedDim dim{name, 0, 0};
    for (const NamedDim &in : facts.ins) {
      if (in.name == name) dim = in;
    }
    parts.push_back(fmt::format("{} = {}", name, bases_text(view, dim)));
  }
  const std::string text =
      fmt::format("#ttg.{}<{{{}}}>", has("offset") ? "shared_linear" : "linear", fmt::join(parts, ", "));
  // Read back: a text that means something else is worse than none.
  std::vector<uint64_t> shape;
  for (const NamedDim &out : facts.outs) shape.push_back(out.size());
  const Encoding read = about(text, [&] { return Encoding::parse(arena.host(), text); });
  const Layout back = about(text, [&] { return read.layout(arena, shape); });
  if (!back.equal(named.layout, SONDE_LAYOUT_EQUAL_AS_MAPS)) refuse("the attribute would mean another layout");
  return read.text();
}

std::string cute_text(const LayoutArena &arena, const NamedLayout &named) {
  const auto &service =
      arena.host().service<sonde_cute_service_t>(SONDE_CUTE_SERVICE, SONDE_NEED(sonde_cute_service_t, from_linear));
  return about(short_name(named.title), [&] {
    const std::vector<NamedDim> ins = facts_of(arena, named.layout).ins;
    const bool is_memory = std::any_of(ins.begin(), ins.end(), [](const NamedDim &in) { return in.name == "offset"; });
    const Layout layout = is_memory ? named.layout.invert() : named.layout;
    uint32_t form = 0;
    uint64_t needed = 0;
    std::string text(4096, '\0');
    sonde_status status = service.from_linear(arena.get(), layout.get(), SONDE_CUTE_FORM_XOR_STRIDES, &form,
                                              text.data(), text.size(), &needed);
    if (status == SONDE_E_FULL && needed >= text.size()) {
      text.resize(needed + 1);
      status = service.from_linear(arena.get(), layout.get(), SONDE_CUTE_FORM_XOR_STRIDES, &form, text.data(),
                                   text.size(), &needed);
    }
    arena.host().check(status);
    text.resize(needed);
    return text;
  });
}

int convert(const Context &context, const Flags &flags) {
  const LayoutArena arena(context.host);
  const NamedLayout named = read_layout(arena, flags.layout, flags.named);
  std::string text;
  if (flags.form == "bytes") {
    const std::vector<uint8_t> bytes = named.layout.to_bytes();
    write_output(flags.output, std::string(bytes.begin(), bytes.end()));
    return kOk;
  }
  if (flags.form == "json") text = named.layout.to_json();
  if (flags.form == "bytes-hex") text = hex_text(named.layout.to_bytes());
  if (flags.form == "triton") text = named.layout.print();
  if (flags.form == "linear-attribute") text = linear_attribute(arena, named);
  if (flags.form == "cute") text = cute_text(arena, named);
  if (flags.form == "attribute") {
    if (!named.encoding)
      throw CommandError(kUsage, named.title + " comes from no attribute; try --to linear-attribute");
    text = named.encoding->text();
  }
  write_output(flags.output, text + "\n");
  return kOk;
}

}  // namespace

Subcommand add_layout_convert(CLI::App &layout) {
  auto flags = std::make_shared<Flags>();
  CLI::App *const app = layout.add_subcommand("convert", "Write a layout in another form");
  app->footer(kExamples);
  app->add_option("LAYOUT", flags->layout, "The layout; `sonde layout --help` says how it is named")->required();
  flags->named.add(*app);
  app->add_option("--to", flags->form, "json, bytes, bytes-hex, triton, attribute, linear-attribute or cute")
      ->check(CLI::IsMember({"json", "bytes", "bytes-hex", "triton", "attribute", "linear-attribute", "cute"}))
      ->required();
  app->add_option("-o,--output", flags->output, "File to write (default: standard output)");
  return {app, [flags](const Context &context) { return convert(context, *flags); }};
}

}  // namespace sonde::cli
