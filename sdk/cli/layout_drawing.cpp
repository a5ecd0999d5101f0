#include "cli/layout_drawing.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <charconv>

namespace sonde::cli {
namespace {

constexpr uint64_t kMostCells = uint64_t{1} << 20;
constexpr uint64_t kMostLine = 32;  // elements in a line of a tensor of one dim

// Who holds an element. Where the layout does not reach all, a last in dim that reaches everything is added: an input
// that needs it stands for nobody, and the least preimage needs it only where there is no other.
class Owners {
 public:
  Owners(const LayoutArena &arena, const Layout &layout) : inverse_(invert(arena, layout)), view_(inverse_.view()) {
    in_bits_ = layout.view().in_bits;
  }

  std::optional<uint64_t> of(uint64_t flat) const {
    const uint64_t input = sonde_layout_at(&view_, flat);
    if (in_bits_ < 64 && input >> in_bits_ != 0) return std::nullopt;
    return input;
  }

 private:
  static Layout invert(const LayoutArena &arena, const Layout &layout) {
    if (layout.is_surjective()) return layout.pseudoinvert();
    const auto &service = arena.host().service<sonde_layout_service_t>();
    const sonde_layout_view_t view = layout.view();
    const sonde_layout_dim_t nobody = {arena.dim("nobody"), static_cast<uint8_t>(view.out_bits), 0, 0};
    std::vector<uint64_t> bases;
    for (uint32_t out = 0; out < view.out_count; ++out) {
      for (uint32_t bit = 0; bit < view.outs[out].bits; ++bit) {
        for (uint32_t place = 0; place < view.out_count; ++place) {
          bases.push_back(place == out ? uint64_t{1} << bit : 0);
        }
      }
    }
    const sonde_layout_t *everything = nullptr;
    const sonde_layout_t *extended = nullptr;
    arena.host().check(
        service.make(arena.get(), &nobody, 1, view.outs, view.out_count, bases.data(), nullptr, &everything));
    arena.host().check(service.concat(arena.get(), SONDE_SIDE_IN, layout.get(), everything, &extended));
    return Layout(arena, extended).pseudoinvert();
  }

  Layout inverse_;
  sonde_layout_view_t view_;
  uint32_t in_bits_;
};

// The tensor's dims in the order in which they are drawn: dim0, dim1, ... by number, others as they stand.
std::vector<size_t> axes_of(const std::vector<NamedDim> &outs) {
  std::vector<std::pair<uint64_t, size_t>> numbered;
  for (size_t i = 0; i < outs.size(); ++i) {
    const std::string &name = outs[i].name;
    uint64_t number = i;
    if (name.starts_with("dim")) std::from_chars(name.data() + 3, name.data() + name.size(), number);
    numbered.emplace_back(number, i);
  }
  std::stable_sort(numbered.begin(), numbered.end(), [](const auto &a, const auto &b) { return a.first < b.first; });
  std::vector<size_t> axes;
  for (const auto &[number, place] : numbered) axes.push_back(place);
  return axes;
}

// Text and colour of a cell, decided once for the layout.
class Look {
 public:
  Look(const NamedLayout &named, const LayoutFacts &facts, const DrawingOptions &options)
      : named_(named), facts_(facts), banks_(options.banks) {
    switch (options.by) {
      case ShownBy::kThread:
        choose_default();
        break;
      case ShownBy::kAll:
        for (size_t i = facts_.ins.size(); i-- > 0;) {
          if (facts_.ins[i].bits != 0) text_.push_back(i);
        }
        shows_bank_ = knows_banks();
        choose_color();
        break;
      case ShownBy::kBank:
        if (!knows_banks()) {
          throw CommandError(kUsage, has("offset") ? "--by bank: give the element's size by --bits or --type"
                                                   : "--by bank: this layout has no dim offset");
        }
        shows_bank_ = colors_bank_ = true;
        break;
      case ShownBy::kRegister:
        only("register");
        break;
      case ShownBy::kLane:
        only("lane");
        break;
      case ShownBy::kWarp:
        only("warp");
        break;
      case ShownBy::kBlock:
        only("block");
        break;
      case ShownBy::kOffset:
        only("offset");
        break;
    }
  }

  std::string form() const {
    std::vector<std::string> names;
    for (const size_t dim : text_) names.push_back(facts_.ins[dim].name);
    if (shows_bank_) names.emplace_back("bank");
    return fmt::format("{}", fmt::join(names, ":"));
  }
  std::string color_name() const { return colors_bank_ ? "bank" : color_ ? facts_.ins[*color_].name : ""; }
  uint64_t color_count() const { return colors_bank_ ? banks_ : color_ ? facts_.ins[*color_].size() : 1; }

  void fill(DrawnCell &cell) const {
    if (!cell.owner) {
      cell.label = "-";
      return;
    }
    for (const NamedDim &dim : facts_.ins) cell.values.push_back(dim.value_in(*cell.owner));
    std::vector<uint64_t> numbers;
    for (const size_t dim : text_) numbers.push_back(cell.values[dim]);
    if (shows_bank_) numbers.push_back(bank_of(cell));
    cell.label = numbers.empty() ? "0" : fmt::format("{}", fmt::join(numbers, ":"));
    cell.color = colors_bank_ ? bank_of(cell) : color_ ? cell.values[*color_] : 0;
  }

 private:
  std::optional<size_t> find(std::string_view name) const {
    for (size_t i = 0; i < facts_.ins.size(); ++i) {
      if (facts_.ins[i].name == name) return i;
    }
    return std::nullopt;
  }
  bool has(std::string_view name) const { return find(name).has_value(); }
  bool varies(std::string_view name) const {
    const auto dim = find(name);
    return dim && facts_.ins[*dim].bits != 0;
  }
  bool knows_banks() const { return has("offset") && named_.element_bits != 0; }

  void only(const char *name) {
    const auto dim = find(name);
    if (!dim) {
      std::vector<std::string> names;
      for (const NamedDim &in : facts_.ins) names.push_back(in.name);
      throw CommandError(kUsage,
                         fmt::format("--by {0}: this layout has no dim {0}; it has {1}", name, fmt::join(names, ", ")));
    }
    text_ = {*dim};
    color_ = dim;
  }

  void choose_default() {
    if (has("offset")) {
      text_ = {*find("offset")};
      if (varies("block")) text_.insert(text_.begin(), *find("block"));
      shows_bank_ = colors_bank_ = knows_banks();
      if (!colors_bank_) choose_color();
      return;
    }
    for (const char *name : {"lane", "register"}) {
      if (has(name)) text_.push_back(*find(name));
    }
    if (text_.empty()) {
      for (size_t i = 0; i < facts_.ins.size(); ++i) {
        if (facts_.ins[i].bits != 0) text_.push_back(i);
      }
    }
    choose_color();
  }

  // The coarsest owner that differs within the tensor; what the text does not say shows in the colour.
  void choose_color() {
    if (knows_banks()) {
      colors_bank_ = true;
      return;
    }
    for (const char *name : {"warp", "lane", "register", "block", "offset"}) {
      if (varies(name)) {
        color_ = find(name);
        return;
      }
    }
    if (!facts_.ins.empty()) color_ = 0;
  }

  uint64_t bank_of(const DrawnCell &cell) const {
    uint64_t address = cell.values[*find("offset")];
    if (named_.encoding) address = named_.encoding->padded_address(address);
    return address * named_.element_bits / 32 % banks_;
  }

  const NamedLayout &named_;
  const LayoutFacts &facts_;
  uint64_t banks_;
  std::vector<size_t> text_;
  std::optional<size_t> color_;
  bool shows_bank_ = false;
  bool colors_bank_ = false;
};

// Characters of the longest label, from the sizes alone: labels of the whole tensor decide, so that a part of it looks
// as it does in the whole.
uint64_t label_width(const std::string &form, const LayoutFacts &facts, uint64_t banks) {
  uint64_t width = 0;
  for (size_t begin = 0; begin <= form.size();) {
    const size_t end = std::min(form.find(':', begin), form.size());
    const std::string name = form.substr(begin, end - begin);
    uint64_t most = name == "bank" ? banks - 1 : 0;
    for (const NamedDim &in : facts.ins) {
      if (in.name == name) most = in.size() - 1;
    }
    width += fmt::formatted_size("{}", most) + 1;
    begin = end + 1;
  }
  return width;
}

Range fitting(uint64_t all, uint64_t most) { return {0, std::min(all, std::max<uint64_t>(most, 1))}; }

}  // namespace

Range read_range(const std::string &text, uint64_t size, const char *flag) {
  const size_t colon = text.find(':');
  Range range{0, size};
  const auto read = [&](std::string_view piece, uint64_t &value) {
    if (piece.empty()) return true;
    const auto [end, fault] = std::from_chars(piece.data(), piece.data() + piece.size(), value);
    return fault == std::errc{} && end == piece.data() + piece.size();
  };
  const std::string_view all = text;
  bool is_good = read(all.substr(0, colon), range.begin);
  is_good = is_good && (colon == std::string::npos ? !all.empty() : read(all.substr(colon + 1), range.end));
  if (colon == std::string::npos) range.end = range.begin + 1;
  if (!is_good || range.begin >= range.end || range.end > size) {
    throw CommandError(kUsage, fmt::format("{} {}: a range of 0:{} is needed, as in 0:{}, or one number", flag, text,
                                           size, std::min<uint64_t>(size, 16)));
  }
  return range;
}

std::string Drawing::cut_note() const {
  if (!is_cut()) return "";
  std::vector<std::string> parts;
  const auto add = [&](const char *what, const Range &range, uint64_t all) {
    if (range.count() != all) parts.push_back(fmt::format("{} {}:{} of {}", what, range.begin, range.end, all));
  };
  add("slices", slices, all_slices);
  add("rows", rows, all_rows);
  add("columns", columns, all_columns);
  return fmt::format("shown: {}; --rows, --columns and --slices choose another part", fmt::join(parts, ", "));
}

Drawing draw(const LayoutArena &arena, const NamedLayout &named, const DrawingOptions &options) {
  Drawing drawing;
  drawing.title = named.title;
  drawing.facts = facts_of(arena, named.layout);
  const LayoutFacts &facts = drawing.facts;
  if (facts.in_bits + facts.out_bits > 62) {
    throw CommandError(kUsage,
                       fmt::format("a layout from 2^{} to 2^{} is too large to be drawn; `sonde layout convert` "
                                   "shows it as text",
                                   facts.in_bits, facts.out_bits));
  }
  const Look look(named, facts, options);
  drawing.label_form = look.form();
  drawing.color_name = look.color_name();
  drawing.color_count = look.color_count();

  // The grid's extents.
  const std::vector<size_t> axes = axes_of(facts.outs);
  const size_t rank = axes.size();
  const uint64_t cell_width = label_width(drawing.label_form, facts, options.banks);
  uint64_t most_columns = options.most_columns;
  if (options.most_characters != 0) most_columns = std::max<uint64_t>(options.most_characters / cell_width, 1);
  if (rank >= 1) drawing.column_name = facts.outs[axes[rank - 1]].name;
  if (rank >= 2) drawing.row_name = facts.outs[axes[rank - 2]].name;
  drawing.all_columns = rank >= 1 ? facts.outs[axes[rank - 1]].size() : 1;
  drawing.all_rows = rank >= 2 ? facts.outs[axes[rank - 2]].size() : 1;
  for (size_t i = 0; i + 2 < rank; ++i) drawing.all_slices *= facts.outs[axes[i]].size();
  if (rank == 1 && options.columns.empty()) {
    drawing.line_elements = std::bit_floor(std::min({drawing.all_columns, most_columns, kMostLine}));
    drawing.all_rows = drawing.all_columns / drawing.line_elements;
    drawing.all_columns = drawing.line_elements;
  }

  // The part that is drawn.
  drawing.rows = options.rows.empty() ? fitting(drawing.all_rows, options.most_rows)
                                      : read_range(options.rows, drawing.all_rows, "--rows");
  drawing.columns = options.columns.empty() ? fitting(drawing.all_columns, most_columns)
                                            : read_range(options.columns, drawing.all_columns, "--columns");
  drawing.slices = options.slices.empty() ? fitting(drawing.all_slices, options.most_rows / (drawing.rows.count() + 2))
                                          : read_range(options.slices, drawing.all_slices, "--slices");
  const uint64_t side = std::max({drawing.rows.count(), drawing.columns.count(), drawing.slices.count()});
  if (side > kMostCells || drawing.rows.count() * drawing.columns.count() > kMostCells ||
      drawing.rows.count() * drawing.columns.count() * drawing.slices.count() > kMostCells) {
    throw CommandError(kUsage, fmt::format("more than {} elements would be drawn; choose a part by --rows, --columns "
                                           "and --slices",
                                           kMostCells));
  }

  const Owners owners(arena, named.layout);
  for (uint64_t slice = drawing.slices.begin; slice != drawing.slices.end; ++slice) {
    DrawnSlice drawn;
    std::vector<uint64_t> index(rank);
    uint64_t rest = slice;
    for (size_t i = rank < 2 ? 0 : rank - 2; i-- > 0;) {
      const NamedDim &dim = facts.outs[axes[i]];
      index[axes[i]] = rest % dim.size();
      rest /= dim.size();
    }
    if (drawing.all_slices != 1) {
      std::vector<std::string> parts;
      for (size_t i = 0; i + 2 < rank; ++i) {
        parts.push_back(fmt::format("{} = {}", facts.outs[axes[i]].name, index[axes[i]]));
      }
      drawn.title = fmt::format("{}", fmt::join(parts, ", "));
    }
    for (uint64_t row = drawing.rows.begin; row != drawing.rows.end; ++row) {
      for (uint64_t column = drawing.columns.begin; column != drawing.columns.end; ++column) {
        if (rank >= 2) index[axes[rank - 2]] = row;
        if (rank >= 1) index[axes[rank - 1]] = drawing.row_label(drawing.line_elements == 0 ? 0 : row) + column;
        uint64_t flat = 0;
        for (size_t i = 0; i < rank; ++i) flat |= index[i] << facts.outs[i].shift;
        DrawnCell cell;
        cell.index = index;
        cell.owner = owners.of(flat);
        look.fill(cell);
        drawn.cells.push_back(std::move(cell));
      }
    }
    drawing.drawn.push_back(std::move(drawn));
  }
  return drawing;
}

}  // namespace sonde::cli
