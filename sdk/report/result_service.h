// The table of sonde.result/1.
#pragma once

#include <sonde/result.h>

namespace sonde::report {

const sonde_result_service_t &result_service();

}  // namespace sonde::report
