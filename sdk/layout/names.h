// Dimension names as small ids, so that comparing two is comparing integers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace sonde::layout {

using DimName = uint32_t;  // 0: none

// The names that layouts of accelerators use have fixed ids.
namespace dim {
inline constexpr DimName kRegister = 1;
inline constexpr DimName kLane = 2;
inline constexpr DimName kWarp = 3;
inline constexpr DimName kBlock = 4;
inline constexpr DimName kOffset = 5;
inline constexpr DimName kVector = 6;
inline constexpr DimName kBank = 7;
inline constexpr DimName kSegment = 8;
inline constexpr DimName kReps = 9;
inline constexpr DimName kRow = 10;
inline constexpr DimName kColumn = 11;
inline constexpr DimName kPartition = 12;
inline constexpr DimName kAddress = 13;
inline constexpr DimName kMessage = 14;
inline constexpr DimName kFirst = 16;  // dim0
inline constexpr uint32_t kNumbered = 32;
}  // namespace dim

// "dim0", "dim1", ...; index < 32.
constexpr DimName standard_dim(uint32_t index) { return dim::kFirst + index; }

// The id of a name, the same for the life of the process; 0 for an empty name. [any]
DimName intern_dim(std::string_view name);

// The text of an id; "?" for an id that was never given out. Lives for ever. [any]
std::string_view dim_text(DimName name);

}  // namespace sonde::layout
