// Hardware counters of each kernel launch, through CUPTI's range profiler: one at a time in a process.
//
// When a launch enters the driver, a session of one range a kernel begins on its context; when it leaves, the session
// is stopped, decoded and evaluated. In between CUPTI repeats the kernel once for each pass that the metrics need, so
// launches of a process are serialised: the time of anything is not what it would be.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <sonde/record.h>
#include <sonde/session.h>

#include "counters_types.h"
#include "cupti_api.h"
#include "sampling_types.h"

namespace sonde::cuda {

struct CountersApi {
  CuptiApi base;
  CuptiResult (*initialize)(ProfilerParams *) = nullptr;
  CuptiResult (*chip)(ChipParams *) = nullptr;
  CuptiResult (*availability)(AvailabilityParams *) = nullptr;
  CuptiResult (*host_initialize)(HostInitializeParams *) = nullptr;
  CuptiResult (*host_deinitialize)(HostParams *) = nullptr;
  CuptiResult (*host_add_metrics)(HostAddMetricsParams *) = nullptr;
  CuptiResult (*host_config_size)(HostConfigSizeParams *) = nullptr;
  CuptiResult (*host_config)(HostConfigParams *) = nullptr;
  CuptiResult (*host_passes)(HostPassesParams *) = nullptr;
  CuptiResult (*host_properties)(HostPropertiesParams *) = nullptr;
  CuptiResult (*host_evaluate)(HostEvaluateParams *) = nullptr;
  CuptiResult (*range_enable)(RangeEnableParams *) = nullptr;
  CuptiResult (*range_disable)(RangeParams *) = nullptr;
  CuptiResult (*range_config)(RangeConfigParams *) = nullptr;
  CuptiResult (*range_start)(RangeParams *) = nullptr;
  CuptiResult (*range_stop)(RangeStopParams *) = nullptr;
  CuptiResult (*range_decode)(RangeDecodeParams *) = nullptr;
  CuptiResult (*image_size)(ImageSizeParams *) = nullptr;
  CuptiResult (*image_initialize)(ImageInitializeParams *) = nullptr;
  CuptiResult (*image_info)(ImageInfoParams *) = nullptr;
  CuptiResult (*get_device_id)(void *context, uint32_t *device) = nullptr;
  std::string error;  // why counters cannot be used; empty: they can
};

CountersApi open_counters(const std::string &option);

// One session's counters. Never destroyed once started: a launch on another thread may still wait for its lock.
class Counters {
 public:
  // `metrics`: the vendor's full names, at least one.
  Counters(sonde_session_t *session, std::vector<std::string> metrics, std::string cupti)
      : session_(session), metrics_(std::move(metrics)), cupti_(std::move(cupti)) {}

  // Begins or ends to count as the session demands; what stands in the way is noted in the session. [control]
  sonde_status start();
  sonde_status demand();
  sonde_status stop();

 private:
  // A context whose kernels are counted, or that refused.
  struct Context {
    uint32_t id = 0;
    uint32_t device = 0;
    bool usable = false;
    void *host = nullptr;
    void *profiler = nullptr;
    std::vector<uint8_t> availability;
    std::vector<uint8_t> config;
    std::vector<uint8_t> image;
    std::vector<sonde_string_t> units;  // of each metric
    size_t passes = 0;
    uint64_t launches = 0;
  };
  struct Count {
    uint32_t metric;
    double value;
  };

  void begin();
  void end();
  void take_callback(uint32_t domain, uint32_t point, const void *data);
  static void on_callback(void *user, uint32_t domain, uint32_t point, const void *data);

  std::string configure(Context &context, void *handle);
  std::string add_metrics(Context &context);
  Context &context_of(void *handle);
  void enter_launch(const DriverCallData &call);
  void leave_launch(const DriverCallData &call);
  void end_context(void *handle);
  void note(uint32_t severity, const std::string &text) const;

  sonde_session_t *session_;
  std::vector<std::string> metrics_;
  std::string cupti_;
  CountersApi api_;
  int process_ = 0;
  std::mutex life_mutex_;
  bool running_ = false;
  bool counting_ = false;
  bool claimed_ = false;
  Subscriber subscriber_ = nullptr;
  std::vector<const char *> names_;       // of metrics_
  std::vector<sonde_string_t> interned_;  // of metrics_
  std::mutex launch_mutex_;               // held from a launch's begin to its end
  std::map<void *, std::unique_ptr<Context>> contexts_;
  uint64_t launch_begin_ = 0;
};

}  // namespace sonde::cuda
