#include "duty.h"

#include <algorithm>

namespace sonde::cuda {

bool DutyCycle::is_chosen(const Stratum &plan, uint32_t slot) {
  return std::binary_search(plan.chosen.begin(), plan.chosen.end(), slot);
}

uint32_t DutyCycle::end_of(const Stratum &plan, uint32_t slot) {
  if (is_chosen(plan, slot)) return slot + 1;
  const auto next = std::lower_bound(plan.chosen.begin(), plan.chosen.end(), slot);
  return next == plan.chosen.end() ? plan.slots : *next;
}

void DutyCycle::enter(Clock::time_point now) {
  until_ = end_of(stratum_, at_);
  collected_ = is_chosen(stratum_, at_);
  begun_ = now;
  // From now on, not from when it should have begun: a late thread moves the windows behind, it shortens none.
  due_ = now + (until_ - at_) * slot_;
}

bool DutyCycle::begin(Clock::time_point now) {
  stratum_ = controller_.plan();
  following_.reset();
  at_ = 0;
  enter(now);
  return collected_;
}

bool DutyCycle::next_collected() {
  if (until_ < stratum_.slots) return is_chosen(stratum_, until_);
  // Planned before the window under way has ended: what it measures comes to the plan after this one.
  if (!following_) following_ = controller_.plan();
  return is_chosen(*following_, 0);
}

void DutyCycle::step(Clock::time_point now, std::optional<uint64_t> launches) {
  (void)next_collected();
  const auto elapsed = std::chrono::duration_cast<std::chrono::nanoseconds>(now - begun_).count();
  controller_.add(collected_, static_cast<uint64_t>(std::max<int64_t>(elapsed, 0)), launches.value_or(0),
                  launches.has_value());
  at_ = until_;
  if (at_ >= stratum_.slots) {
    controller_.close();
    stratum_ = std::move(*following_);
    following_.reset();
    at_ = 0;
  }
  enter(now);
}

}  // namespace sonde::cuda
