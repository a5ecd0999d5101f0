// The windows of a budgeted capture: which one is under way, when it ends, and what is known of its costs.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "budget.h"

namespace sonde::cuda {

// One stretch of time, as sonde_session_window_t describes it.
struct Window {
  uint64_t begin = 0;           // raw stamps; end is set when the window has ended
  uint64_t end = 0;             //
  uint64_t begin_launches = 0;  // launches counted until then
  uint64_t end_launches = 0;    //
  uint64_t stratum = 0;         // 0: none is under way
  uint32_t slots = 1;           // of the stratum
  uint32_t chosen = 1;          // of these, collected
  bool collected = true;        //
  bool next_collected = true;   // the window after it
  bool counted = false;         // launches are counted in it
};

// Goes through strata window by window. Not thread-safe.
class DutyCycle {
 public:
  using Clock = std::chrono::steady_clock;

  DutyCycle(double budget, uint64_t slot_ns, uint64_t seed)
      : slot_(std::chrono::nanoseconds(slot_ns)), controller_(budget, slot_ns, seed) {}

  // Begins the first stratum; true when its first window is to be collected.
  bool begin(Clock::time_point now);

  // When the window under way ends.
  Clock::time_point due() const { return due_; }

  // State of the window that begins when the one under way has ended.
  bool next_collected();

  // Ends the window under way at `now` and begins the next. `launches`: made in the window; none where they are not
  // counted.
  void step(Clock::time_point now, std::optional<uint64_t> launches);

  // Of the window under way.
  bool collected() const { return collected_; }
  const Stratum &stratum() const { return stratum_; }

  BudgetController &controller() { return controller_; }

 private:
  // Window of `plan` that begins with `slot`: its state and its end, as a slot number.
  static bool is_chosen(const Stratum &plan, uint32_t slot);
  static uint32_t end_of(const Stratum &plan, uint32_t slot);
  void enter(Clock::time_point now);

  Clock::duration slot_;
  BudgetController controller_;
  Stratum stratum_;
  std::optional<Stratum> following_;  // planned, because the window under way is the stratum's last
  uint32_t at_ = 0;                   // first slot of the window under way
  uint32_t until_ = 0;                // slot behind it
  bool collected_ = false;
  Clock::time_point begun_ = {};
  Clock::time_point due_ = {};
};

}  // namespace sonde::cuda
