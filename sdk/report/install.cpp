#include "report/install.h"

#include <sonde/report.h>
#include <sonde/result.h>

#include "core/services.h"
#include "report/report_service.h"
#include "report/result_service.h"

namespace sonde::report {

void install() {
  static const bool installed = [] {
    add_service(SONDE_RESULT_SERVICE, &result_service());
    add_service(SONDE_REPORT_SERVICE, &report_service());
    return true;
  }();
  static_cast<void>(installed);
}

}  // namespace sonde::report
