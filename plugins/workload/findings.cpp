#include "findings.h"

namespace sonde::workload {

std::string number(double value) {
  std::string text = std::to_string(value);
  while (text.ends_with('0')) text.pop_back();
  if (text.ends_with('.')) text.pop_back();
  return text;
}

void publish_findings(const Workload &workload, const Host &host, sonde_session_t *session) {
  judge_time(workload, host, session);
  judge_accesses(workload, host, session);
  judge_records(workload, host, session);
}

}  // namespace sonde::workload
