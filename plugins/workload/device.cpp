#include "device.h"

#include <algorithm>

namespace sonde::workload {

void Stream::add(int64_t begin, const Activity &activity) {
  kernels += activity.kind == ActivityKind::kKernel ? 1 : 0;
  copies += activity.kind == ActivityKind::kCopy || activity.kind == ActivityKind::kBlockingCopy ? 1 : 0;
  sets += activity.kind == ActivityKind::kSet ? 1 : 0;
  total_ns += activity.end - begin;
  if (first_ns == INT64_MAX) {
    first_ns = begin;
    busy_ns = activity.end - begin;
    open_until = activity.end;
    return;
  }
  first_ns = std::min(first_ns, begin);
  if (begin >= open_until) {
    gap.add(begin - open_until);
    gap_quantiles.add(begin - open_until);
  }
  busy_ns += std::max<int64_t>(0, activity.end - std::max(begin, open_until));
  open_until = std::max(open_until, activity.end);
}

void Device::add(int64_t begin, const Activity &activity) {
  order_.push(begin, activity, [this](int64_t time, const Activity &next) { in_order(time, next); });
}

void Device::finish() {
  order_.finish([this](int64_t time, const Activity &next) { in_order(time, next); });
  sweep_.finish([this](const toolkit::Segment<kClasses> &segment) { note_segment(segment); });
  close_phase();
}

double Device::idle_share() const {
  return span_ns() == 0 ? 0 : static_cast<double>(idle_) / static_cast<double>(span_ns());
}

void Device::in_order(int64_t begin, const Activity &activity) {
  int64_t gap = 0;
  if (!any_) {
    any_ = true;
    first_ = begin;
    open_until_ = begin;
    open_label_ = activity.label;
  } else if (begin > open_until_) {
    gap = begin - open_until_;
    note_gap({open_until_, gap, open_label_, activity.label});
  }

  const auto segment = [this](const toolkit::Segment<kClasses> &piece) { note_segment(piece); };
  switch (activity.kind) {
    case ActivityKind::kKernel:
      sweep_.add(begin, activity.end, kKernelClass, segment);
      note_kernel(begin, activity.end, gap);
      exposed_copies_ += exposed_pending_;
      exposed_pending_ = 0;
      kernel_seen_ = true;
      break;
    case ActivityKind::kBlockingCopy:
      sweep_.add(begin, activity.end, kBlockingClass, segment);
      ++blocking_copies_;
      break;
    case ActivityKind::kCopy:
    case ActivityKind::kSet:
      sweep_.add(begin, activity.end, kOtherClass, segment);
      break;
  }
  streams_[{activity.context, activity.stream}].add(begin, activity);
  if (activity.end >= open_until_) {
    open_until_ = activity.end;
    open_label_ = activity.label;
  }
}

void Device::note_gap(const Gap &gap) {
  gaps_.add(gap.length);
  gap_histogram_.add(static_cast<uint64_t>(gap.length));
  const auto longer = [](const Gap &a, const Gap &b) {
    return a.length != b.length ? a.length > b.length : a.begin < b.begin;
  };
  const auto limit = static_cast<size_t>(options_->longest_gaps);
  if (limit == 0 || (longest_.size() == limit && !longer(gap, longest_.back()))) return;
  longest_.insert(std::upper_bound(longest_.begin(), longest_.end(), gap, longer), gap);
  if (longest_.size() > limit) longest_.pop_back();
}

void Device::note_kernel(int64_t begin, int64_t end, int64_t gap) {
  const bool is_short = end - begin <= options_->launch_bound_kernel_ns;
  if (phase_.kernels != 0 && (!is_short || gap > options_->launch_gap_ns)) close_phase();
  if (!is_short) return;
  if (phase_.kernels == 0) {
    phase_ = {1, begin, end, 0};
    return;
  }
  ++phase_.kernels;
  phase_.idle += gap;
  phase_.end = std::max(phase_.end, end);
}

void Device::close_phase() {
  const Phase phase = phase_;
  phase_ = {};
  const int64_t span = phase.end - phase.begin;
  if (phase.kernels < static_cast<uint64_t>(options_->launch_bound_kernels) || span == 0) return;
  if (static_cast<double>(phase.idle) < options_->launch_bound_idle_share * static_cast<double>(span)) return;
  ++launch_bound_.phases;
  launch_bound_.kernels += phase.kernels;
  launch_bound_.idle_ns += phase.idle;
  launch_bound_.span_ns += span;
  if (span > launch_bound_.longest_span) {
    launch_bound_.longest_span = span;
    launch_bound_.longest_begin = phase.begin;
  }
}

void Device::note_segment(const toolkit::Segment<kClasses> &segment) {
  const int64_t length = segment.length();
  (segment.total() == 0 ? idle_ : busy_) += length;
  const uint32_t kernels = segment.active[kKernelClass];
  at_level_[std::min<size_t>(kernels, kLevels - 1)] += length;
  if (kernels > 0) {
    kernel_busy_ += length;
  } else if (segment.active[kBlockingClass] > 0 && kernel_seen_) {
    exposed_pending_ += length;
  }
}

}  // namespace sonde::workload
