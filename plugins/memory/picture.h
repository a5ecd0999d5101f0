// The objects over time as a picture.
#pragma once

#include <string>

#include "memory.h"

namespace sonde::memory {

// A drawing (SVG 1.1) that needs nothing beside it: for each process, level and device the bytes that lived, with the peak
// marked, and below a bar for each of the worst objects: its life, within it what was used, and what the findings are about.
// Hover texts say more.
std::string draw_objects(const Memory &memory);

// A page (HTML 5) with that drawing and the findings of the drawn objects; needs nothing beside it, has no script.
std::string draw_page(const Memory &memory);

// Writes text to a file; "" or what went wrong.
std::string write_file(const std::string &path, const std::string &text);

}  // namespace sonde::memory
