// The layout services for one module: encodings by their text, layouts by type, an arena that is used again.
#pragma once

#include <sonde/layout.h>
#include <sonde/layout_encoding.h>
#include <sonde/layout_plan.h>
#include <sonde/layout_shape.h>
#include <sonde/toolkit/ttgir.h>
#include <sonde/sonde.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace sonde::layout_lint {

namespace ir = toolkit::ttgir;

// A layout, or why there is none.
struct LayoutOrReason {
  const sonde_layout_t *layout = nullptr;
  std::string reason;
};

class Layouts {
 public:
  static constexpr uint64_t kArenaBytes = uint64_t{64} << 20;

  Layouts(const Host &host, const ir::Module &module);
  ~Layouts();
  Layouts(const Layouts &) = delete;
  Layouts &operator=(const Layouts &) = delete;

  const sonde_layout_service_t &layouts() const { return layouts_; }
  const sonde_layout_shape_service_t &shapes() const { return shapes_; }
  const sonde_layout_encoding_service_t &encodings() const { return encodings_; }
  const sonde_layout_plan_service_t &plans() const { return plans_; }
  sonde_layout_arena_t *arena() const { return arena_; }

  // Null with *reason where the attribute cannot be read. It lives as long as this.
  const sonde_encoding_t *encoding(std::string_view text, std::string *reason);
  // Of a tensor or memory descriptor; a part of a larger allocation has the layout of the whole.
  LayoutOrReason layout_of(const ir::Type *type);
  sonde_layout_view_t view(const sonde_layout_t *layout) const;
  // The host's last error, for a reason.
  std::string last_error() const { return host_.table()->last_error(); }

  // Ends all layouts made so far.
  void reset() { layouts_.reset(arena_); }
  // Attributes of the module that could not be read.
  uint64_t unparsed() const { return unparsed_; }

 private:
  struct Known {
    sonde_encoding_t *encoding = nullptr;
    std::string reason;
  };

  Host host_;
  const sonde_layout_service_t &layouts_;
  const sonde_layout_shape_service_t &shapes_;
  const sonde_layout_encoding_service_t &encodings_;
  const sonde_layout_plan_service_t &plans_;
  std::string_view module_;
  sonde_layout_arena_t *arena_ = nullptr;
  std::map<std::string_view, Known> known_;
  uint64_t unparsed_ = 0;
};

// The columns of one in dim, flattened over the out dims.
std::vector<uint64_t> columns_of(const sonde_layout_view_t &view, sonde_dim_t in);
// The part of a flattened out index that lies in out dim `index`.
uint64_t part_of(const sonde_layout_view_t &view, uint64_t flat, uint32_t index);

}  // namespace sonde::layout_lint
