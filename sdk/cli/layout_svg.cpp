// A drawing as SVG.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>

#include "cli/layout_colors.h"
#include "cli/layout_render.h"

namespace sonde::cli {
namespace {

// All lengths in units of the picture; its width and height make them pixels at first, and it scales to any size.
constexpr double kLetter = 6.6;  // width of a letter of the 11-unit monospace font
constexpr uint64_t kLine = 16;
constexpr uint64_t kCellHeight = 22;
constexpr uint64_t kLeastCellWidth = 24;
constexpr uint64_t kEdge = 12;
constexpr uint64_t kLeastWidth = 420;
constexpr uint64_t kSwatch = 34;

// Text and attribute values; bytes that XML forbids become U+FFFD.
std::string escaped(std::string_view text) {
  std::string result;
  for (const char letter : text) {
    switch (letter) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        // Titles are attributes or file names; what is not ASCII in the latter may be no UTF-8 either.
        result += static_cast<unsigned char>(letter) < 0x20 || static_cast<unsigned char>(letter) > 0x7e
                      ? std::string("\xef\xbf\xbd")
                      : std::string(1, letter);
    }
  }
  return result;
}

std::string hex(Color color) { return fmt::format("#{:02x}{:02x}{:02x}", color.red, color.green, color.blue); }

uint64_t text_width(uint64_t letters) { return static_cast<uint64_t>(kLetter * static_cast<double>(letters)) + 1; }

// Breaks a text at spaces into lines of at most `letters`, longer words inside.
std::vector<std::string> broken(std::string_view text, uint64_t letters) {
  std::vector<std::string> lines;
  while (text.size() > letters) {
    const size_t space = text.rfind(' ', letters);
    const size_t end = space == std::string_view::npos || space == 0 ? letters : space;
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(end);
    while (text.starts_with(' ')) text.remove_prefix(1);
  }
  lines.emplace_back(text);
  return lines;
}

class Picture {
 public:
  explicit Picture(const Drawing &drawing) : drawing_(drawing) {
    uint64_t letters = fmt::formatted_size("{}", drawing.columns.end - 1);
    for (const DrawnSlice &slice : drawing.drawn) {
      for (const DrawnCell &cell : slice.cells) letters = std::max<uint64_t>(letters, cell.label.size());
    }
    cell_width_ = std::max(kLeastCellWidth, text_width(letters) + 8);
    margin_ = kEdge + text_width(fmt::formatted_size("{}", drawing.row_label(drawing.rows.end - 1))) + 6;
    width_ = std::max(kLeastWidth, margin_ + cell_width_ * drawing.columns.count() + kEdge);
  }

  std::string svg() {
    y_ = kEdge;
    for (const std::string &line : broken(drawing_.title, letters_across())) add_line(line, "title");
    for (const std::string &line : broken(caption(), letters_across())) add_line(line, "note");
    if (drawing_.is_cut()) {
      for (const std::string &line : broken(drawing_.cut_note(), letters_across())) add_line(line, "note");
    }
    add_legend();
    for (const DrawnSlice &slice : drawing_.drawn) add_slice(slice);
    const uint64_t height = y_ + kEdge;
    return fmt::format(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" role=\"img\">\n"
        "<title>{2}</title>\n"
        "<style>text {{ font: 11px monospace; fill: #000000; }} .title {{ font-weight: bold; }} "
        ".note, .axis {{ fill: #555555; }} .cell text, .swatch text, .columns text {{ text-anchor: middle; }} "
        ".rows text {{ text-anchor: end; }} rect {{ stroke: #ffffff; stroke-width: 0.5; }}</style>\n"
        "<rect x=\"0\" y=\"0\" width=\"{0}\" height=\"{1}\" fill=\"#ffffff\"/>\n{3}</svg>\n",
        width_, height, escaped(drawing_.title), body_);
  }

 private:
  uint64_t letters_across() const {
    return static_cast<uint64_t>(static_cast<double>(width_ - 2 * kEdge) / (kLetter * 1.05));
  }

  std::string caption() const {
    std::vector<std::string> sizes;
    for (const NamedDim &out : drawing_.facts.outs) sizes.push_back(fmt::format("{} {}", out.name, out.size()));
    std::string text = fmt::format("{}; cells: {}", fmt::join(sizes, ", "), drawing_.label_form);
    if (!drawing_.color_name.empty()) text += ", coloured by " + drawing_.color_name;
    if (drawing_.facts.copies > 1) {
      text += fmt::format("; {} copies of each element, the least is shown", drawing_.facts.copies);
    }
    return text;
  }

  void add_line(std::string_view text, const char *style) {
    y_ += kLine;
    body_ += fmt::format("<text class=\"{}\" x=\"{}\" y=\"{}\">{}</text>\n", style, kEdge, y_ - 4, escaped(text));
  }

  void add_legend() {
    if (drawing_.color_name.empty()) return;
    y_ += 6;
    body_ += fmt::format("<g class=\"legend\">\n<text class=\"axis\" x=\"{}\" y=\"{}\">{}</text>\n", kEdge, y_ + 15,
                         escaped(drawing_.color_name));
    const uint64_t begin = kEdge + text_width(drawing_.color_name.size()) + 8;
    const uint64_t in_line = std::max<uint64_t>((width_ - begin - kEdge) / kSwatch, 1);
    const uint64_t shown = std::min(drawing_.color_count, kDistinctColors);
    for (uint64_t value = 0; value < shown; ++value) {
      const uint64_t x = begin + value % in_line * kSwatch;
      const uint64_t y = y_ + value / in_line * kCellHeight;
      const Color color = color_of(value, drawing_.color_count);
      body_ += fmt::format(
          "<g class=\"swatch\"><rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\"/>"
          "<text x=\"{}\" y=\"{}\" style=\"fill:{}\">{}</text></g>\n",
          x, y, kSwatch, kCellHeight, hex(color), x + kSwatch / 2, y + 15, hex(text_color_on(color)), value);
    }
    y_ += (shown + in_line - 1) / in_line * kCellHeight;
    body_ += "</g>\n";
    if (shown != drawing_.color_count) {
      add_line(fmt::format("the colours repeat up to {} {}", drawing_.color_name, drawing_.color_count - 1), "note");
    }
  }

  void add_slice(const DrawnSlice &slice) {
    y_ += 8;
    if (!slice.title.empty()) add_line(slice.title, "title");
    body_ += "<g class=\"columns\">\n";
    y_ += kLine;
    for (uint64_t column = 0; column != drawing_.columns.count(); ++column) {
      body_ += fmt::format("<text class=\"axis\" x=\"{}\" y=\"{}\">{}</text>\n",
                           margin_ + column * cell_width_ + cell_width_ / 2, y_ - 4, drawing_.columns.begin + column);
    }
    body_ += "</g>\n<g class=\"rows\">\n";
    for (uint64_t row = 0; row != drawing_.rows.count(); ++row) {
      body_ += fmt::format("<text class=\"axis\" x=\"{}\" y=\"{}\">{}</text>\n", margin_ - 6,
                           y_ + row * kCellHeight + 15, drawing_.row_label(drawing_.rows.begin + row));
    }
    body_ += "</g>\n";
    for (uint64_t i = 0; i < slice.cells.size(); ++i) {
      add_cell(slice.cells[i], margin_ + i % drawing_.columns.count() * cell_width_,
               y_ + i / drawing_.columns.count() * kCellHeight);
    }
    y_ += drawing_.rows.count() * kCellHeight;
  }

  void add_cell(const DrawnCell &cell, uint64_t x, uint64_t y) {
    const Color color = cell.owner ? color_of(cell.color, drawing_.color_count) : Color{238, 238, 238};
    body_ += fmt::format(
        "<g class=\"cell\" data-index=\"{0}\" data-owner=\"{1}\"><title>({2}): {3}</title>"
        "<rect x=\"{4}\" y=\"{5}\" width=\"{6}\" height=\"{7}\" fill=\"{8}\"/>"
        "<text x=\"{9}\" y=\"{10}\" style=\"fill:{11}\">{12}</text></g>\n",
        fmt::join(cell.index, ","), fmt::join(cell.values, ","), fmt::join(cell.index, ", "),
        escaped(owner_text(drawing_, cell)), x, y, cell_width_, kCellHeight, hex(color), x + cell_width_ / 2, y + 15,
        hex(text_color_on(color)), cell.label);
  }

  const Drawing &drawing_;
  uint64_t cell_width_ = 0;
  uint64_t margin_ = 0;
  uint64_t width_ = 0;
  uint64_t y_ = 0;
  std::string body_;
};

}  // namespace

std::string grid_svg(const Drawing &drawing) { return Picture(drawing).svg(); }

}  // namespace sonde::cli
