// What the files that publish findings share.
#pragma once

#include <sonde/sonde.hpp>

#include <string>

#include "publish.h"

namespace sonde::workload {

inline double share(int64_t part, int64_t whole) {
  return whole <= 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

inline double seconds(int64_t ns) { return static_cast<double>(ns) * 1e-9; }

// Without zeros at its end: "0.5".
std::string number(double value);

// Each rule reports every device or process that breaks it; where none does, one finding says that it looked, or why
// it could not.
class Judge {
 public:
  Judge(const Workload &workload, const Host &host, sonde_session_t *session)
      : workload_(workload), options_(workload.options()), host_(host), session_(session) {}

 protected:
  std::string where(const Source &source, uint32_t device) const {
    return "Device " + std::to_string(device) + owner(source);
  }
  std::string owner(const Source &source) const {
    if (workload_.sources().size() < 2) return "";
    return " of process " + (source.process ? std::to_string(*source.process) : std::string("(unnamed)"));
  }

  Finding finding(const char *rule) const { return Finding(kOrigin, std::string(kOrigin) + "." + rule); }
  void publish(Finding finding) const { finding.publish(host_, session_); }

  // Evidence that says which device and process is meant.
  void locate(Finding &finding, const Source &source, uint32_t device) const {
    if (source.process) finding.evidence("process", "1", *source.process);
    finding.evidence("device", "1", device);
  }

  // Rules about what happened in between cannot be judged where parts were left out on purpose.
  bool left_out(const char *rule, const char *message) const {
    if (!workload_.sampled()) return false;
    Finding result = finding(rule);
    result.unsupported(message, "a port left out parts of the run to keep its budget; capture without `budget`");
    publish(std::move(result));
    return true;
  }

  const Workload &workload_;
  const Options &options_;
  const Host &host_;
  sonde_session_t *session_;
};

// Each judges the rules of one subject.
void judge_time(const Workload &workload, const Host &host, sonde_session_t *session);
void judge_accesses(const Workload &workload, const Host &host, sonde_session_t *session);
void judge_records(const Workload &workload, const Host &host, sonde_session_t *session);

}  // namespace sonde::workload
