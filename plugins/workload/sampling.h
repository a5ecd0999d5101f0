// Scaling what was collected in windows chosen at random to the whole run, with intervals.
//
// A port that keeps a budget collects in windows (sonde_session_window_t): in each stratum of n slots, m chosen at random.
// A collected slot is a cluster of everything that was launched in it. With y of a cluster (launches of one kernel, or
// their time), x (all launches of the cluster, counted whether or not collected) and the weight n / m:
//     Y = sum of (n / m) y,  X likewise           the estimator of Horvitz and Thompson (1952)
//     total = Y / X * (all launches of the run)   combined ratio estimator
//     variance = (all / X)^2 * sum over strata of n (n - m) / m * s^2 of (y - Y / X * x)
// and the mean time of a launch is the ratio T / Y with the variance of (t - T / Y * y) / Y. Cochran, Sampling
// Techniques, 3rd edition: sections 6.11 and 6.12 (combined ratio), 9A.1 (clusters), 5.12 (finite strata). Intervals of
// 95 % use Student's t. A stratum that the end of the run cut short keeps its n and m: slots that never were hold
// nothing.
//
// A window in which fewer kernels were recorded than 90 % of its launches is taken for one that was not chosen, as long as
// most launches lie in others: what the vendor's library missed there would pass for work that was not done.
//
// Where launches were not counted x is the time of the cluster. A program that collection slows down makes fewer
// launches in a collected second, so totals then come out too small, by at most the slow-down within the windows.
#pragma once

#include <sonde/sonde.hpp>

#include <cstdint>
#include <optional>
#include <vector>

namespace sonde::workload {

struct Estimate {
  double value = 0;
  double error = 0;  // standard error
  double low = 0;    // of the 95 % interval
  double high = 0;
};

// The windows of one process. [delivery]
class Windows {
 public:
  static constexpr uint32_t kNoCluster = UINT32_MAX;

  void add(const sonde_session_window_t &window, int64_t length_ns);

  // Anything was left out.
  bool sampled() const { return left_out_ != 0; }
  bool any() const { return !clusters_.empty(); }

  // The cluster of what began at the raw stamp `begin`: the last one that began before. A kernel that waited in its
  // queue beyond its window's end still belongs there. kNoCluster before the first.
  uint32_t cluster_at(uint64_t begin) const;

  // A kernel of `cluster` came; the nodes of a graph's launch come with one correlation number.
  void note_kernel(uint32_t cluster, uint64_t correlation) {
    const bool is_launch = correlation != last_correlation_;
    last_correlation_ = correlation;
    last_cluster_ = cluster == kNoCluster ? 0 : cluster;
    if (!is_launch || last_cluster_ >= clusters_.size()) return;
    ++recorded_launches_;
    ++clusters_[last_cluster_].recorded;
  }

  // After the last window.
  void finish();

  uint64_t count() const { return count_; }
  uint64_t left_out() const { return left_out_; }
  int64_t length_ns() const { return length_ns_; }
  int64_t collected_ns() const { return collected_ns_; }
  bool launches_counted() const { return counted_; }
  uint64_t launches() const { return launches_; }
  uint64_t collected_launches() const { return collected_launches_; }
  // Launches of which a kernel was recorded. Fewer than were collected: the vendor's library missed some, and counts are
  // too small.
  uint64_t recorded_launches() const { return recorded_launches_; }
  // Windows that were set aside for that.
  uint64_t set_aside() const { return set_aside_; }

 private:
  friend class SampledRow;

  struct Stratum {
    uint64_t number;
    double slots, collected;
  };
  // What m is of a stratum, and what follows from it.
  struct Share {
    double slots, collected;

    double weight() const { return collected > 0 ? slots / collected : 0; }
    // n (n - m) / m / (m - 1), what a sum of squared deviations is multiplied with; 0 where all slots are collected.
    double spread() const;
  };
  struct Cluster {
    uint64_t begin;  // raw
    uint32_t stratum = 0;
    uint32_t recorded = 0;  // launches with a kernel
    double x[2] = {0, 0};   // launches, ns
    enum class State : uint8_t { kOpen, kWhole, kLacking } state = State::kOpen;
  };
  // Sums over all clusters: with every one, and with those that are whole.
  struct Totals {
    double weighted_x = 0, spread_xx = 0, freedom = 0;
  };

  // Decided once, when its records have come.
  bool is_whole(size_t cluster) const;
  // With `whole`, clusters that lack launches count as not chosen.
  Share share(uint32_t stratum, size_t from, bool whole) const;
  uint32_t open_cluster(uint64_t begin);
  // The first cluster of a stratum, looked for from one of its own or later ones.
  size_t first_cluster(uint32_t stratum, size_t from) const;
  size_t measure() const { return counted_ ? 0 : 1; }  // which x

  std::vector<Stratum> strata_;
  mutable std::vector<Cluster> clusters_;  // ascending by begin; is_whole keeps what it decides
  bool counted_ = true;
  uint64_t count_ = 0, left_out_ = 0, launches_ = 0, collected_launches_ = 0;
  uint64_t recorded_launches_ = 0, last_correlation_ = 0;
  uint32_t last_cluster_ = 0;
  int64_t length_ns_ = 0, collected_ns_ = 0;
  // After finish.
  double all_x_ = 0;
  Totals totals_[2];  // [1]: whole clusters only
  size_t used_ = 0;   // which of them
  uint64_t set_aside_ = 0;
};

// Sums of one kernel over clusters and strata. Records may come in any order within a cluster; one that comes after
// its cluster was closed counts for the one under way.
class SampledRow {
 public:
  void add(const Windows &windows, uint32_t cluster, double ns);

  struct Result {
    Estimate count;
    Estimate total_ns;
    double scale = 1;              // estimated count / count
    std::optional<Estimate> mean;  // none when it was seen in one cluster alone
  };
  // After Windows::finish.
  Result finish(const Windows &windows);

 private:
  // Of launches y and their time t with each other and with x.
  struct Products {
    double yy = 0, tt = 0, yt = 0;
    double yx[2] = {0, 0}, tx[2] = {0, 0};
  };

  struct Sums {
    double y = 0, t = 0;  // of the stratum under way
    Products products;    //
    double weighted_y = 0, weighted_t = 0;
    Products spread;
    uint64_t clusters = 0;  // in which it was seen
    double count = 0, sum = 0, sum_squares = 0;
  };

  void close_cluster(const Windows &windows);
  void close_stratum(const Windows &windows);

  uint32_t cluster_ = Windows::kNoCluster;
  uint32_t stratum_ = UINT32_MAX;
  double y_ = 0, t_ = 0, squares_ = 0;  // of the cluster under way
  Sums sums_[2];                        // of all clusters, and of whole ones
};

// Two-sided 95 % point of Student's t, not below the exact one.
double student_t(double freedom);

}  // namespace sonde::workload
