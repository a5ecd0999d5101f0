// Applies a plan to the program around it: sees launches and managed allocations by CUPTI's callbacks of the driver,
// follows the plan, and has memory moved.
#pragma once

#include <sys/types.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <sonde/base.h>
#include <sonde/toolkit/paging_plan.h>

#include "cupti_api.h"
#include "follower.h"
#include "mover.h"

namespace sonde::cuda::paging {

struct PagerOptions {
  toolkit::PagingPlan plan;
  FollowOptions follow;
  bool has_thread = true;
  bool beside_activity = false;
  uint64_t patience_ns = 1'000'000'000;
  std::string cupti;
};

class Pager {
 public:
  Pager(sonde_session_t *session, PagerOptions options);
  ~Pager();
  Pager(const Pager &) = delete;
  Pager &operator=(const Pager &) = delete;

  // [control]
  sonde_status start();
  sonde_status stop();

  // A call that moves memory has not returned, and its thread will still use this object: it must not be deleted.
  bool is_abandoned() const { return is_abandoned_; }

 private:
  static void on_callback(void *user, uint32_t domain, uint32_t callback, const void *data);

  std::string begin();  // "" or why not
  void on_call(uint32_t callback, const CallData &call);
  void on_launch(const LaunchCall &kind, const CallData &call);
  void fire(const toolkit::PlannedStep &step, void *context, void *stream);
  void wait_for_moves(void *context, void *stream);
  void on_allocate(const CallData &call);
  void advise(const toolkit::PlannedAllocation &planned, uint64_t address);
  void prepare(void *context);
  void emit(uint32_t type, uint64_t address, uint64_t bytes, void *stream, int32_t device, uint32_t advice) const;
  void note(uint32_t severity, const std::string &text) const;
  void report();

  sonde_session_t *const session_;
  const PagerOptions options_;
  Driver driver_;
  CuptiApi cupti_;
  Subscriber subscriber_ = nullptr;
  std::string claim_;  // the mode that was taken
  pid_t process_ = 0;
  bool running_ = false;
  bool is_abandoned_ = false;
  std::mutex life_mutex_;

  std::mutex mutex_;  // around what follows; launches of several threads come one by one
  Follower follower_;
  std::unique_ptr<Mover> mover_;
  std::vector<std::shared_ptr<Ticket>> tickets_;  // not yet waited for
  std::vector<void *> prepared_;                  // contexts
  uint64_t waits_ = 0;
  uint64_t late_ = 0;      // launches that stopped waiting for the moving thread
  uint64_t captured_ = 0;  // calls into streams that were being captured
  uint64_t advised_ = 0;
  uint64_t failed_advice_ = 0;
  uint64_t failed_waits_ = 0;
  bool is_inline_ = false;  // the moving thread did not get on while a launch waited: it is not waited for any more
};

}  // namespace sonde::cuda::paging
