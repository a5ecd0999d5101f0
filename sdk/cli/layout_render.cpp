#include "cli/layout_render.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/layout_colors.h"

namespace sonde::cli {
namespace {

constexpr const char *kReset = "\x1b[0m";

std::string painted(const std::string &text, Color background, TerminalColors colors) {
  if (colors == TerminalColors::kNone) return text;
  const Color ink = text_color_on(background);
  if (colors == TerminalColors::k256) {
    return fmt::format("\x1b[48;5;{};38;5;{}m{}{}", terminal_color(background), terminal_color(ink), text, kReset);
  }
  return fmt::format("\x1b[48;2;{};{};{};38;2;{};{};{}m{}{}", background.red, background.green, background.blue,
                     ink.red, ink.green, ink.blue, text, kReset);
}

std::string legend(const Drawing &drawing, TerminalColors colors) {
  if (drawing.color_name.empty()) return "";
  std::string text = drawing.color_name;
  const uint64_t shown = std::min(drawing.color_count, kDistinctColors);
  for (uint64_t value = 0; value < shown; ++value) {
    text += " " + painted(fmt::format(" {} ", value), color_of(value, drawing.color_count), colors);
  }
  if (shown != drawing.color_count) text += fmt::format("  and again up to {}", drawing.color_count - 1);
  return text + "\n";
}

// Dims that tell holders apart and that neither the cells nor the colours say.
std::string unsaid(const Drawing &drawing, bool is_colored) {
  std::vector<std::string> names;
  const std::string said = ":" + drawing.label_form + ":";
  for (const NamedDim &dim : drawing.facts.ins) {
    if (dim.bits == 0 || said.find(":" + dim.name + ":") != std::string::npos) continue;
    if (!is_colored || dim.name != drawing.color_name) names.push_back(dim.name);
  }
  return names.empty() ? "" : fmt::format("; not said: {} (--by all says it)", fmt::join(names, ", "));
}

}  // namespace

std::string owner_text(const Drawing &drawing, const DrawnCell &cell) {
  std::vector<std::string> parts;
  for (size_t i = cell.values.size(); i-- > 0;) {
    parts.push_back(fmt::format("{} {}", drawing.facts.ins[i].name, cell.values[i]));
  }
  return cell.owner ? fmt::format("{}", fmt::join(parts, ", ")) : "held by nobody";
}

std::string grid_text(const Drawing &drawing, TerminalColors colors) {
  const bool is_colored = colors != TerminalColors::kNone && !drawing.color_name.empty();
  std::string text = fmt::format("cells: {}{}{}{}\n", drawing.label_form.empty() ? "0" : drawing.label_form,
                                 is_colored ? ", coloured by " + drawing.color_name : "",
                                 drawing.facts.copies > 1 ? ", of the least of those who hold the element" : "",
                                 unsaid(drawing, is_colored));
  size_t width = fmt::formatted_size("{}", drawing.columns.end - 1);
  for (const DrawnSlice &slice : drawing.drawn) {
    for (const DrawnCell &cell : slice.cells) width = std::max(width, cell.label.size());
  }
  const size_t margin = fmt::formatted_size("{}", drawing.row_label(drawing.rows.end - 1));
  for (const DrawnSlice &slice : drawing.drawn) {
    text += slice.title.empty() ? "\n" : fmt::format("\n{}\n", slice.title);
    text += std::string(margin, ' ') + ' ';
    for (uint64_t column = drawing.columns.begin; column != drawing.columns.end; ++column) {
      text += fmt::format(" {:>{}}", column, width);
    }
    text += '\n';
    auto cell = slice.cells.begin();
    for (uint64_t row = drawing.rows.begin; row != drawing.rows.end; ++row) {
      text += fmt::format("{:>{}} ", drawing.row_label(row), margin);
      for (uint64_t column = drawing.columns.begin; column != drawing.columns.end; ++column, ++cell) {
        const std::string label = fmt::format(" {:>{}}", cell->label, width);
        text += is_colored && cell->owner ? painted(label, color_of(cell->color, drawing.color_count), colors) : label;
      }
      text += '\n';
    }
  }
  if (is_colored) text += "\n" + legend(drawing, colors);
  if (drawing.is_cut()) text += "\n" + drawing.cut_note() + "\n";
  return text;
}

nlohmann::json grid_json(const Drawing &drawing) {
  nlohmann::json result = {{"cells_are", drawing.label_form}, {"colored_by", drawing.color_name}};
  result["shown"] = {{"slices", {drawing.slices.begin, drawing.slices.end}},
                     {"rows", {drawing.rows.begin, drawing.rows.end}},
                     {"columns", {drawing.columns.begin, drawing.columns.end}},
                     {"is_all", !drawing.is_cut()}};
  nlohmann::json &cells = result["cells"] = nlohmann::json::array();
  for (const DrawnSlice &slice : drawing.drawn) {
    for (const DrawnCell &cell : slice.cells) {
      nlohmann::json one = {{"index", cell.index}, {"label", cell.label}};
      if (cell.owner) {
        for (size_t i = 0; i < cell.values.size(); ++i) one["owner"][drawing.facts.ins[i].name] = cell.values[i];
        one["color"] = cell.color;
      } else {
        one["owner"] = nullptr;
      }
      cells.push_back(std::move(one));
    }
  }
  return result;
}

}  // namespace sonde::cli
