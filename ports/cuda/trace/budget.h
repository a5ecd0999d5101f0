// How much of the time a port may collect so that the program is slowed down by no more than its budget.
//
// Time is cut into strata of equal slots. In each stratum a few slots, chosen at random, are collected and the others
// left out. Every slot of a stratum has the same chance, fixed before the stratum begins, so what was counted can be
// scaled without bias whatever the program does meanwhile (stratified random sampling of clusters; Cochran, Sampling
// Techniques, 3rd edition, chapters 5 and 9).
//
// The same slots measure what collection costs: in those that are collected fewer launches are made. The time lost in a
// stratum is
//     (launches left out x (time collected / time left out) - launches collected) x time of a launch,
// the last factor from several strata that were left out. As the slots lie at random, phases of the program make that
// noisy, not biased: nothing is divided by what chance has made of one stratum.
//
// What a stopped collector still costs is no part of that difference; it is told by `set_standing_cost`, charged for
// every launch, and taken from the budget first.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

namespace sonde::cuda {

// Plan of one stratum.
struct Stratum {
  uint64_t number = 0;           // from 1
  uint32_t slots = 1;            // of equal length
  std::vector<uint32_t> chosen;  // slots to be collected, ascending; at least 2 where there are several

  double duty() const { return static_cast<double>(chosen.size()) / slots; }
};

class BudgetController {
 public:
  static constexpr uint32_t kFewSlots = 2;       // collected in a stratum: the least that shows their spread
  static constexpr uint32_t kShortStratum = 20;  // slots
  static constexpr uint32_t kLongStratum = 1000;
  static constexpr double kMostDuty = 0.5;     // enough slots are always left out to compare with
  static constexpr double kAim = 0.8;          // of the budget; the rest is for what is not known yet
  static constexpr double kFirstLoss = 0.5;    // of collected time, until it is measured: a launch costs twice as much
  static constexpr double kPriorSlots = 4;     // weight of that, in collected slots
  static constexpr double kMemory = 0.97;      // weight of a stratum against the next
  static constexpr double kRecoverStrata = 5;  // in which an overdraft is paid back

  // `budget`: greatest slow-down, (time with - time without) / time without.
  BudgetController(double budget, uint64_t slot_ns, uint64_t seed);

  // Plans the stratum after the one under way, from what is known of it until now.
  Stratum plan();

  // A window of the stratum under way has ended. `launches`: made within, where they are counted.
  void add(bool collected, uint64_t elapsed_ns, uint64_t launches, bool counted);

  // The stratum under way has ended.
  void close();

  // Number of a stratum that is collected as a whole, for other reasons than the budget.
  uint64_t number_certain() { return ++number_; }

  // What a launch costs whether collected or not, ns.
  void set_standing_cost(double ns) { standing_ns_ = ns; }

  double budget() const { return budget_; }

  // Estimates so far, as parts of the time the program would have taken without: by what was collected, and by what
  // stands. Negative values are noise around 0.
  double collecting_slowdown() const;
  double standing_slowdown() const;

  // Part of collected time that is lost, from the recent strata, and its standard error.
  double loss() const { return loss_; }
  double loss_error() const { return loss_error_; }

  // The standing cost alone exceeds the budget.
  bool out_of_reach() const { return standing_share() >= budget_; }

  double elapsed_ns() const { return elapsed_ns_; }
  double collected_ns() const { return collected_ns_; }
  double launches() const { return launches_; }
  double standing_ns() const { return standing_ns_; }

 private:
  struct Side {
    double elapsed_ns = 0;
    double launches = 0;
  };

  double duty_wanted() const;
  void estimate_loss();
  double standing_share() const;

  double budget_;
  double slot_ns_;
  double standing_ns_ = 0;
  std::mt19937_64 random_;
  uint64_t number_ = 0;
  double duty_ = 0;

  Side on_, off_;          // of the stratum under way
  bool counted_ = true;    // all its windows
  double elapsed_ns_ = 0;  // of all ended windows
  double collected_ns_ = 0;
  double launches_ = 0;
  double lost_ns_ = 0;        // by collecting
  double lost_variance_ = 0;  // of that sum

  // Sums over strata with weights that fade: of t (collected time) and l (time lost).
  double sum_t_ = 0, sum_l_ = 0, sum_tt_ = 0, sum_tl_ = 0, sum_ll_ = 0;
  Side recent_;    // all time and launches, fading
  Side near_off_;  // those left out, fading faster
  double loss_ = kFirstLoss;
  double loss_error_ = 0;
};

}  // namespace sonde::cuda
