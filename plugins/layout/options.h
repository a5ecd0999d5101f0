// What a run may configure, with the defaults and where they come from.
#pragma once

#include <sonde/config.h>
#include <sonde/sonde.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace sonde::layout_lint {

struct Options {
  std::vector<std::string> files;
  std::string matrix_instructions = "auto";
  int64_t banks = 0;
  int64_t least_vector_bits = 32;
  double least_efficiency = 0.5;
  int64_t least_conflicts = 1;
  int64_t least_copies = 4;
  bool reports_notes = true;
};

// The declaration that the host checks a configuration against; the defaults above and these are the same, which a
// test compares.
inline constexpr uint32_t kOptionCount = 8;
extern const sonde_option_t kOptionSpecs[kOptionCount];

// Reads checked options.
Options read_options(const Host &host, const Config &config);

}  // namespace sonde::layout_lint
