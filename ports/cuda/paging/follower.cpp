#include "follower.h"

#include <algorithm>

namespace sonde::cuda::paging {

using toolkit::PlannedAllocation;
using toolkit::PlannedStep;

Follower::Follower(const toolkit::PagingPlan &plan, const FollowOptions &options)
    : plan_(plan), options_(options), done_(plan.steps.size()) {
  for (const PlannedStep &step : plan.steps) occurrences_.emplace(step.kernel, 0);
}

bool Follower::is_match(const PlannedStep &step, std::string_view kernel, uint64_t occurrence, uint64_t ordinal) const {
  if (step.kernel != kernel) return false;
  return step.occurrence == PlannedStep::kAny ? ordinal == step.launch : occurrence == step.occurrence;
}

size_t Follower::launch(std::string_view kernel) {
  const uint64_t ordinal = counts_.launches++;
  uint64_t occurrence = 0;
  if (const auto found = occurrences_.find(kernel); found != occurrences_.end()) occurrence = found->second++;
  if (departed_) return kNothing;
  size_t fired = kNothing;
  for (size_t index = next_; index < plan_.steps.size(); ++index) {
    const PlannedStep &step = plan_.steps[index];
    if (step.launch > ordinal + options_.slack) break;
    if (done_[index]) continue;
    if (step.launch == ordinal && step.kernel != kernel) ++counts_.other_kernel;
    if (!is_match(step, kernel, occurrence, ordinal)) continue;
    done_[index] = true;
    fired = index;
    ++counts_.steps;
    if (step.launch != ordinal) ++counts_.shifted;
    shift_ = static_cast<int64_t>(ordinal) - static_cast<int64_t>(step.launch);
    break;
  }
  for (; next_ < plan_.steps.size(); ++next_) {
    const PlannedStep &step = plan_.steps[next_];
    if (done_[next_]) continue;
    const uint64_t latest = step.launch + (step.occurrence == PlannedStep::kAny ? 0 : options_.slack);
    if (ordinal < latest) break;
    ++counts_.missed;
    mismatch("launch " + std::to_string(step.launch) + " should be of " + step.kernel +
             (step.occurrence == PlannedStep::kAny
                  ? ", it is of " + std::string(kernel)
                  : ", which was not launched for the " + std::to_string(step.occurrence + 1) + ". time within " +
                        std::to_string(options_.slack) + " launches of it"));
    if (departed_) return fired;
  }
  return fired;
}

const PlannedAllocation *Follower::allocate(uint64_t bytes) {
  const uint64_t ordinal = counts_.allocations++;
  while (next_allocation_ < plan_.allocations.size() && plan_.allocations[next_allocation_].allocation < ordinal) {
    ++next_allocation_;
  }
  if (departed_ || next_allocation_ == plan_.allocations.size()) return nullptr;
  const PlannedAllocation &planned = plan_.allocations[next_allocation_];
  if (planned.allocation != ordinal) return nullptr;
  ++next_allocation_;
  if (planned.bytes == bytes) return &planned;
  ++counts_.other_size;
  mismatch("managed allocation " + std::to_string(ordinal) + " should have " + std::to_string(planned.bytes) +
           " bytes, it has " + std::to_string(bytes));
  return nullptr;
}

uint64_t Follower::position() const {
  const int64_t last = static_cast<int64_t>(counts_.launches) - 1 - shift_;
  return static_cast<uint64_t>(std::max<int64_t>(last, 0));
}

void Follower::mismatch(std::string text) {
  if (counts_.first_mismatch.empty()) counts_.first_mismatch = std::move(text);
  if (counts_.missed + counts_.other_size > options_.mismatches) departed_ = true;
}

}  // namespace sonde::cuda::paging
