#include "sampling.h"

#include <algorithm>
#include <cmath>

namespace sonde::workload {

double student_t(double freedom) {
  struct Point {
    double freedom, value;
  };
  constexpr Point kPoints[] = {{1, 12.706}, {2, 4.303},  {3, 3.182},  {4, 2.776},  {5, 2.571},   {6, 2.447},
                               {7, 2.365},  {8, 2.306},  {9, 2.262},  {10, 2.228}, {12, 2.179},  {15, 2.131},
                               {20, 2.086}, {30, 2.042}, {40, 2.021}, {60, 2.000}, {120, 1.980}, {1e9, 1.960}};
  double value = kPoints[0].value;
  for (const Point &point : kPoints) {
    if (freedom >= point.freedom) value = point.value;
  }
  return value;
}

double Windows::Share::spread() const {
  if (slots <= collected || collected < 2) return 0;
  return slots * (slots - collected) / collected / (collected - 1);
}

uint32_t Windows::open_cluster(uint64_t begin) {
  if (clusters_.empty() || clusters_.back().begin < begin) clusters_.push_back({.begin = begin});
  return static_cast<uint32_t>(clusters_.size() - 1);
}

void Windows::add(const sonde_session_window_t &window, int64_t length_ns) {
  const bool collected = window.state == SONDE_WINDOW_COLLECTED;
  const double launches = window.launches == SONDE_LAUNCHES_UNKNOWN ? 0 : static_cast<double>(window.launches);
  counted_ &= window.launches != SONDE_LAUNCHES_UNKNOWN;
  ++count_;
  length_ns_ += length_ns;
  launches_ += static_cast<uint64_t>(launches);
  if (strata_.empty() || strata_.back().number != window.stratum) {
    strata_.push_back({.number = window.stratum,
                       .slots = static_cast<double>(std::max(window.slots, 1u)),
                       .collected = static_cast<double>(std::max(window.collected, 1u))});
  }
  if (collected) {
    collected_ns_ += length_ns;
    collected_launches_ += static_cast<uint64_t>(launches);
    Cluster &cluster = clusters_[open_cluster(window.header.time)];
    cluster.stratum = static_cast<uint32_t>(strata_.size() - 1);
    cluster.x[0] = launches;
    cluster.x[1] = static_cast<double>(length_ns);
  } else {
    ++left_out_;
  }
  if (window.next == SONDE_WINDOW_COLLECTED) {
    // Its stratum is known when its own record comes, at its end.
    Cluster &next = clusters_[open_cluster(window.end)];
    next.stratum = static_cast<uint32_t>(strata_.size() - 1);
  }
}

size_t Windows::first_cluster(uint32_t stratum, size_t from) const {
  from = std::min(from, clusters_.size() - 1);
  while (from > 0 && clusters_[from].stratum > stratum) --from;
  while (from > 0 && clusters_[from - 1].stratum == stratum) --from;
  return from;
}

uint32_t Windows::cluster_at(uint64_t begin) const {
  const auto after = std::upper_bound(clusters_.begin(), clusters_.end(), begin,
                                      [](uint64_t stamp, const Cluster &cluster) { return stamp < cluster.begin; });
  if (after == clusters_.begin()) return kNoCluster;
  return static_cast<uint32_t>(after - clusters_.begin() - 1);
}

bool Windows::is_whole(size_t index) const {
  constexpr double kWhole = 0.9;
  Cluster &cluster = clusters_[index];
  if (cluster.state == Cluster::State::kOpen) {
    const bool whole = !counted_ || cluster.recorded >= kWhole * cluster.x[0];
    // While its records still come it may yet become whole.
    if (index >= last_cluster_) return whole;
    cluster.state = whole ? Cluster::State::kWhole : Cluster::State::kLacking;
  }
  return cluster.state == Cluster::State::kWhole;
}

Windows::Share Windows::share(uint32_t number, size_t from, bool whole) const {
  Share result = {strata_[number].slots, strata_[number].collected};
  for (size_t at = from; whole && at < clusters_.size() && clusters_[at].stratum == number; ++at) {
    if (!is_whole(at)) result.collected -= 1;
  }
  return result;
}

void Windows::finish() {
  const size_t which = measure();
  all_x_ = counted_ ? static_cast<double>(launches_) : static_cast<double>(length_ns_);
  last_cluster_ = static_cast<uint32_t>(clusters_.size());
  double x_of[2] = {0, 0};
  set_aside_ = 0;
  for (size_t i = 0; i < clusters_.size(); ++i) {
    set_aside_ += is_whole(i) ? 0 : 1;
    x_of[0] += clusters_[i].x[which];
    x_of[1] += is_whole(i) ? clusters_[i].x[which] : 0;
  }
  used_ = counted_ && x_of[1] >= x_of[0] / 2 ? 1 : 0;
  if (used_ == 0) set_aside_ = 0;
  for (const bool whole : {false, true}) {
    Totals totals;
    size_t cluster = 0;
    for (uint32_t i = 0; i < strata_.size(); ++i) {
      const Share part = share(i, cluster, whole);
      double x = 0, xx = 0;
      for (; cluster < clusters_.size() && clusters_[cluster].stratum <= i; ++cluster) {
        if (whole && !is_whole(cluster)) continue;
        const double one = clusters_[cluster].x[which];
        x += one;
        xx += one * one;
      }
      if (part.collected <= 0) continue;
      totals.weighted_x += part.weight() * x;
      totals.spread_xx += part.spread() * (xx - x * x / part.collected);
      if (part.spread() > 0) totals.freedom += part.collected - 1;
    }
    totals_[whole ? 1 : 0] = totals;
  }
}

void SampledRow::add(const Windows &windows, uint32_t cluster, double ns) {
  if (cluster == Windows::kNoCluster) cluster = 0;
  if (cluster_ == Windows::kNoCluster || cluster > cluster_) {
    close_cluster(windows);
    cluster_ = cluster;
  }
  y_ += 1;
  t_ += ns;
  squares_ += ns * ns;
}

void SampledRow::close_cluster(const Windows &windows) {
  if (cluster_ == Windows::kNoCluster || cluster_ >= windows.clusters_.size() || y_ == 0) return;
  const Windows::Cluster &cluster = windows.clusters_[cluster_];
  if (cluster.stratum != stratum_) {
    close_stratum(windows);
    stratum_ = cluster.stratum;
  }
  for (const bool whole : {false, true}) {
    if (whole && !windows.is_whole(cluster_)) continue;
    Sums &sums = sums_[whole ? 1 : 0];
    ++sums.clusters;
    sums.y += y_;
    sums.t += t_;
    sums.products.yy += y_ * y_;
    sums.products.tt += t_ * t_;
    sums.products.yt += y_ * t_;
    for (size_t i = 0; i < 2; ++i) {
      sums.products.yx[i] += y_ * cluster.x[i];
      sums.products.tx[i] += t_ * cluster.x[i];
    }
    sums.count += y_;
    sums.sum += t_;
    sums.sum_squares += squares_;
  }
  y_ = t_ = squares_ = 0;
}

void SampledRow::close_stratum(const Windows &windows) {
  if (stratum_ >= windows.strata_.size()) return;
  const size_t first = windows.first_cluster(stratum_, cluster_);
  for (const bool whole : {false, true}) {
    Sums &sums = sums_[whole ? 1 : 0];
    const Windows::Share part = windows.share(stratum_, first, whole);
    if (part.collected > 0) {
      double x[2] = {0, 0};  // of all its clusters, also those without this kernel
      for (size_t at = first; at < windows.clusters_.size() && windows.clusters_[at].stratum == stratum_; ++at) {
        if (whole && !windows.is_whole(at)) continue;
        for (size_t i = 0; i < 2; ++i) x[i] += windows.clusters_[at].x[i];
      }
      sums.weighted_y += part.weight() * sums.y;
      sums.weighted_t += part.weight() * sums.t;
      const double spread = part.spread();
      const double m = part.collected;
      sums.spread.yy += spread * (sums.products.yy - sums.y * sums.y / m);
      sums.spread.tt += spread * (sums.products.tt - sums.t * sums.t / m);
      sums.spread.yt += spread * (sums.products.yt - sums.y * sums.t / m);
      for (size_t i = 0; i < 2; ++i) {
        sums.spread.yx[i] += spread * (sums.products.yx[i] - sums.y * x[i] / m);
        sums.spread.tx[i] += spread * (sums.products.tx[i] - sums.t * x[i] / m);
      }
    }
    sums.y = sums.t = 0;
    sums.products = {};
  }
}

namespace {

Estimate interval(double value, double variance, double freedom) {
  const double error = std::sqrt(std::max(variance, 0.0));
  const double half = student_t(freedom) * error;
  return {value, error, value - half, value + half};
}

}  // namespace

SampledRow::Result SampledRow::finish(const Windows &windows) {
  close_cluster(windows);
  close_stratum(windows);
  stratum_ = UINT32_MAX;
  cluster_ = Windows::kNoCluster;

  Result result;
  const double seen = sums_[0].count;
  const Sums &sums = sums_[windows.used_];
  const Windows::Totals &totals = windows.totals_[windows.used_];
  const size_t which = windows.measure();
  const double X = totals.weighted_x;
  const double expand = X > 0 ? windows.all_x_ / X : 1;
  const auto total = [&](double weighted, double squares, double with_x) {
    const double ratio = X > 0 ? weighted / X : 0;
    const double variance = squares - 2 * ratio * with_x + ratio * ratio * totals.spread_xx;
    return interval(weighted * expand, expand * expand * variance, totals.freedom);
  };
  result.count = total(sums.weighted_y, sums.spread.yy, sums.spread.yx[which]);
  result.total_ns = total(sums.weighted_t, sums.spread.tt, sums.spread.tx[which]);
  // What was seen did happen.
  const auto at_least = [](Estimate &estimate, double known) {
    estimate.low = std::max(estimate.low, known);
    estimate.high = std::max(estimate.high, known);
  };
  at_least(result.count, seen);
  at_least(result.total_ns, sums_[0].sum);
  result.scale = seen > 0 ? result.count.value / seen : 1;

  if (sums.clusters >= 2 && sums.weighted_y > 0) {
    const double mean = sums.weighted_t / sums.weighted_y;
    const double between = (sums.spread.tt - 2 * mean * sums.spread.yt + mean * mean * sums.spread.yy) /
                           (sums.weighted_y * sums.weighted_y);
    // Few clusters may agree by chance; the spread of single launches is the least there is.
    const double squares = sums.sum_squares - sums.sum * sums.sum / sums.count;
    const double left = std::max(1 - sums.count / std::max(result.count.value, sums.count), 0.0);
    const double within = squares / (sums.count - 1) / sums.count * left;
    result.mean =
        interval(mean, std::max(between, within), std::min(totals.freedom, static_cast<double>(sums.clusters - 1)));
  }
  return result;
}

}  // namespace sonde::workload
