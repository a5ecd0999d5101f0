// From micro-benchmarks to the simulator's parameters.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "parameters.h"

namespace sonde::uvm {

using Measurements = std::map<std::string, double>;  // as tests/gpu/uvm/calibrate.cu names them; ns and bytes

struct FitRow {
  std::string name;
  double measured_ns = 0;
  double simulated_ns = 0;
};

struct Fit {
  PagingParameters parameters;
  std::vector<FitRow> rows;  // what was measured against what the simulator says with these parameters
  std::string error;         // "" or what is missing
};

// Each parameter follows from one or two measurements by the formula beside it in fit.cpp. The window and the cost of a
// batch come from streaming: of all windows (powers of two pages) the one whose batch cost, made to agree with the
// streaming time exactly, is nearest to that of single faults.
Fit fit_parameters(const Measurements &measurements);

// YAML for the option `calibration`, with the rows as comments.
std::string fit_text(const Fit &fit, const std::string &card);

}  // namespace sonde::uvm
