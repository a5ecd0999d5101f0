// Where a program is in its plan. Knows names and numbers alone: no driver, no time, no thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <sonde/toolkit/paging_plan.h>

namespace sonde::cuda::paging {

struct FollowOptions {
  uint64_t slack = 16;      // launches by which a step may come early or late, where its occurrence is given
  uint64_t mismatches = 8;  // steps or allocations that do not come as planned before the plan is given up
};

struct FollowCounts {
  uint64_t launches = 0;
  uint64_t steps = 0;          // that came
  uint64_t shifted = 0;        // of these, at another launch than planned
  uint64_t missed = 0;         // steps that did not come within the slack
  uint64_t other_kernel = 0;   // at whose launch another kernel was launched
  uint64_t allocations = 0;    // managed ones of the program
  uint64_t other_size = 0;     // planned ones whose size differs
  std::string first_mismatch;  // in words
};

class Follower {
 public:
  static constexpr size_t kNothing = SIZE_MAX;

  // The plan must outlive the follower.
  Follower(const toolkit::PagingPlan &plan, const FollowOptions &options);

  // A launch call is about to be made: which step of the plan it is, or kNothing.
  size_t launch(std::string_view kernel);

  // A managed allocation was made: what the plan has for it, or null.
  const toolkit::PlannedAllocation *allocate(uint64_t bytes);

  // Ordinal of the launch in the plan's count: the last launch, less what the program was ahead at the last step.
  uint64_t position() const;
  // The plan was given up; nothing fires any more.
  bool has_departed() const { return departed_; }
  const FollowCounts &counts() const { return counts_; }

 private:
  void mismatch(std::string text);
  bool is_match(const toolkit::PlannedStep &step, std::string_view kernel, uint64_t occurrence, uint64_t ordinal) const;

  const toolkit::PagingPlan &plan_;
  const FollowOptions options_;
  FollowCounts counts_;
  std::unordered_map<std::string_view, uint64_t> occurrences_;  // of the kernels that the plan names
  std::vector<bool> done_;
  size_t next_ = 0;  // first step that is neither done nor missed
  size_t next_allocation_ = 0;
  int64_t shift_ = 0;
  bool departed_ = false;
};

}  // namespace sonde::cuda::paging
