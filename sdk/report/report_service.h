// The table of sonde.report/1.
#pragma once

#include <sonde/report.h>

namespace sonde::report {

const sonde_report_service_t &report_service();

}  // namespace sonde::report
