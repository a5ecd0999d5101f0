#include "tables.h"

#include "tables_access.h"

namespace sonde::workload {

void publish_tables(const Workload &workload, const Host &host, sonde_session_t *session) {
  publish_run_tables(workload, host, session);
  publish_device_tables(workload, host, session);
  publish_host_tables(workload, host, session);
  publish_working_set_tables(workload, host, session);
  publish_heat_tables(workload, host, session);
  publish_instruction_tables(workload, host, session);
  publish_warp_tables(workload, host, session);
  publish_scope_access_tables(workload, host, session);
  publish_roofline_tables(workload, host, session);
}

}  // namespace sonde::workload
