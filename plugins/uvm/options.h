// Options of the analysis `uvm`, with defaults and sources.
#pragma once

#include <cstdint>
#include <string>

#include <sonde/sonde.hpp>

#include "planner.h"
#include "profile.h"

namespace sonde::uvm {

struct Options {
  bool is_applied = false;  // the run applied a plan: show what came of it, make none
  std::string plan = "plan.yaml";
  bool overwrite = false;
  std::string calibration;
  std::string predict;
  uint64_t capacity = 0;  // 0: the device's
  uint64_t reserve = 512 << 20;
  std::string level = "auto";
  double least_gain = 0.02;
  uint64_t most_accesses = 1'000'000;
  uint64_t rows = 50;
  ProfileOptions profile;
  PlannerOptions planner;
};

inline constexpr uint32_t kOptionCount = 24;
extern const sonde_option_t kOptionSpecs[kOptionCount];

Options read_options(const Config &config);

}  // namespace sonde::uvm
