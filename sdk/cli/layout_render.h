// A drawing as text for a terminal, as SVG and as JSON. The same drawing gives the same bytes.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cli/layout_drawing.h"

namespace sonde::cli {

enum class TerminalColors { kNone, k256, kTrue };

// The grid with its legend; without the facts.
std::string grid_text(const Drawing &drawing, TerminalColors colors);

// A document that needs nothing else. Each cell is a <g class="cell"> with data-index, data-owner, a rectangle, a text
// and a tooltip.
std::string grid_svg(const Drawing &drawing);

// Each cell with its index, its owner (a value for each in dim) and its label.
nlohmann::json grid_json(const Drawing &drawing);

// "block 0, warp 1, lane 3, register 2" of a cell that someone holds, in the order of `ins` reversed.
std::string owner_text(const Drawing &drawing, const DrawnCell &cell);

}  // namespace sonde::cli
