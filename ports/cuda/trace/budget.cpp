#include "budget.h"

#include <algorithm>
#include <cmath>

namespace sonde::cuda {

namespace {

constexpr double kLeastLoss = 0.01;  // of collected time: below, there is nothing to gain from believing it
constexpr double kMostLoss = 0.95;
constexpr double kDoubt = 1;         // standard errors that a cost may be greater than measured
constexpr double kNearMemory = 0.8;  // weight of a stratum against the next for the time of a launch
constexpr double kGrowth = 1.5;      // of the duty from one stratum to the next, at most

}  // namespace

BudgetController::BudgetController(double budget, uint64_t slot_ns, uint64_t seed)
    : budget_(budget), slot_ns_(static_cast<double>(slot_ns)), random_(seed) {}

void BudgetController::add(bool collected, uint64_t elapsed_ns, uint64_t launches, bool counted) {
  Side &side = collected ? on_ : off_;
  side.elapsed_ns += static_cast<double>(elapsed_ns);
  side.launches += static_cast<double>(launches);
  counted_ &= counted;
}

void BudgetController::close() {
  const double elapsed = on_.elapsed_ns + off_.elapsed_ns;
  const double launches = on_.launches + off_.launches;
  elapsed_ns_ += elapsed;
  collected_ns_ += on_.elapsed_ns;
  launches_ += launches;
  recent_.elapsed_ns = recent_.elapsed_ns * kMemory + elapsed;
  recent_.launches = recent_.launches * kMemory + launches;
  near_off_.elapsed_ns = near_off_.elapsed_ns * kNearMemory + off_.elapsed_ns;
  near_off_.launches = near_off_.launches * kNearMemory + off_.launches;
  double lost = 0;
  const bool known = counted_ && off_.elapsed_ns > 0 && near_off_.launches > 0;
  if (known) {
    const double expected = off_.launches * on_.elapsed_ns / off_.elapsed_ns;
    lost = (expected - on_.launches) * near_off_.elapsed_ns / near_off_.launches;
  } else if (launches > 0 || !counted_) {
    lost = on_.elapsed_ns * loss_;  // charged at what is assumed
  }
  lost_ns_ += lost;
  lost_variance_ += (lost - loss_ * on_.elapsed_ns) * (lost - loss_ * on_.elapsed_ns);
  if (known && on_.elapsed_ns > 0) {
    const double t = on_.elapsed_ns;
    sum_t_ = sum_t_ * kMemory + t;
    sum_l_ = sum_l_ * kMemory + lost;
    sum_tt_ = sum_tt_ * kMemory + t * t;
    sum_tl_ = sum_tl_ * kMemory + t * lost;
    sum_ll_ = sum_ll_ * kMemory + lost * lost;
    estimate_loss();
  }
  on_ = off_ = {};
  counted_ = true;
}

// Ratio of sums with the first assumption as a few more slots; its error by linearisation (Cochran, section 6.4).
void BudgetController::estimate_loss() {
  const double prior = kPriorSlots * slot_ns_;
  const double sum_t = sum_t_ + prior;
  loss_ = (sum_l_ + prior * kFirstLoss) / sum_t;
  const double squares = sum_ll_ - 2 * loss_ * sum_tl_ + loss_ * loss_ * sum_tt_;
  loss_error_ = std::sqrt(std::max(squares, 0.0)) / sum_t;
}

double BudgetController::standing_share() const {
  const double standing = recent_.launches * standing_ns_;
  const double without = recent_.elapsed_ns - standing;
  return without > 0 ? standing / without : 0;
}

double BudgetController::collecting_slowdown() const {
  const double without = elapsed_ns_ - lost_ns_ - launches_ * standing_ns_;
  return without > 0 ? lost_ns_ / without : 0;
}

double BudgetController::standing_slowdown() const {
  const double standing = launches_ * standing_ns_;
  const double without = elapsed_ns_ - lost_ns_ - standing;
  return without > 0 ? standing / without : 0;
}

double BudgetController::duty_wanted() const {
  // Lost time may be `share` of the time that passes: b of the time without is b / (1 + b) of the time with.
  const double left = std::max(budget_ * kAim - standing_share(), 0.0);
  double share = left / (1 + left);
  const double assumed = std::clamp(loss_ + kDoubt * loss_error_, kLeastLoss, kMostLoss);
  const double typical_ns = std::max(kFewSlots * slot_ns_ * assumed / std::max(share, 1e-4), kShortStratum * slot_ns_);
  const double spent = lost_ns_ + kDoubt * std::sqrt(lost_variance_) + launches_ * standing_ns_;
  const double aim = budget_ * kAim;
  const double overdraft = spent - aim / (1 + aim) * elapsed_ns_;
  if (overdraft > 0) share -= overdraft / (kRecoverStrata * typical_ns);
  const double duty = std::clamp(share / assumed, 0.0, kMostDuty);
  // A phase that costs nothing is trusted step by step: it may end.
  return duty_ > 0 ? std::min(duty, kGrowth * duty_) : duty;
}

Stratum BudgetController::plan() {
  BudgetController preview = *this;
  preview.close();
  const double duty = preview.duty_wanted();
  Stratum stratum;
  stratum.number = ++number_;
  uint32_t collected = kFewSlots;
  if (duty * kShortStratum >= kFewSlots) {
    stratum.slots = kShortStratum;
    collected = static_cast<uint32_t>(duty * kShortStratum);
  } else {
    stratum.slots = static_cast<uint32_t>(
        std::clamp(std::ceil(kFewSlots / std::max(duty, 1e-9)), double{kShortStratum}, double{kLongStratum}));
  }
  duty_ = static_cast<double>(collected) / stratum.slots;
  // Selection sampling (Knuth, The Art of Computer Programming 2, 3.4.2, algorithm S).
  uint32_t wanted = collected;
  for (uint32_t slot = 0; slot < stratum.slots && wanted > 0; ++slot) {
    if (std::uniform_int_distribution<uint32_t>(0, stratum.slots - slot - 1)(random_) < wanted) {
      stratum.chosen.push_back(slot);
      --wanted;
    }
  }
  return stratum;
}

}  // namespace sonde::cuda
