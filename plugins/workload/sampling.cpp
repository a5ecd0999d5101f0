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

double Windows::Stratum::spread() const {
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

void Windows::finish() {
  const size_t which = measure();
  all_x_ = counted_ ? static_cast<double>(launches_) : static_cast<double>(length_ns_);
  weighted_x_ = spread_xx_ = freedom_ = 0;
  size_t cluster = 0;
  for (uint32_t i = 0; i < strata_.size(); ++i) {
    const Stratum &stratum = strata_[i];
    double x = 0, xx = 0;
    for (; cluster < clusters_.size() && clusters_[cluster].stratum <= i; ++cluster) {
      const double one = clusters_[cluster].x[which];
      x += one;
      xx += one * one;
    }
    weighted_x_ += stratum.weight() * x;
    spread_xx_ += stratum.spread() * (xx - x * x / stratum.collected);
    if (stratum.spread() > 0) freedom_ += stratum.collected - 1;
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
  count_ += 1;
  sum_ += ns;
  sum_squares_ += ns * ns;
}

void SampledRow::close_cluster(const Windows &windows) {
  if (cluster_ == Windows::kNoCluster || cluster_ >= windows.clusters_.size() || y_ == 0) return;
  const Windows::Cluster &cluster = windows.clusters_[cluster_];
  if (cluster.stratum != stratum_) {
    close_stratum(windows);
    stratum_ = cluster.stratum;
  }
  ++clusters_;
  stratum_y_ += y_;
  stratum_t_ += t_;
  stratum_products_.yy += y_ * y_;
  stratum_products_.tt += t_ * t_;
  stratum_products_.yt += y_ * t_;
  for (size_t i = 0; i < 2; ++i) {
    stratum_products_.yx[i] += y_ * cluster.x[i];
    stratum_products_.tx[i] += t_ * cluster.x[i];
  }
  y_ = t_ = 0;
}

void SampledRow::close_stratum(const Windows &windows) {
  if (stratum_ >= windows.strata_.size()) return;
  const Windows::Stratum &stratum = windows.strata_[stratum_];
  weighted_y_ += stratum.weight() * stratum_y_;
  weighted_t_ += stratum.weight() * stratum_t_;
  const double spread = stratum.spread();
  const double m = stratum.collected;
  double x[2] = {0, 0};  // of all clusters of the stratum, also those without this kernel
  for (size_t at = windows.first_cluster(stratum_, cluster_);
       at < windows.clusters_.size() && windows.clusters_[at].stratum == stratum_; ++at) {
    for (size_t i = 0; i < 2; ++i) x[i] += windows.clusters_[at].x[i];
  }
  const Products &products = stratum_products_;
  spread_.yy += spread * (products.yy - stratum_y_ * stratum_y_ / m);
  spread_.tt += spread * (products.tt - stratum_t_ * stratum_t_ / m);
  spread_.yt += spread * (products.yt - stratum_y_ * stratum_t_ / m);
  for (size_t i = 0; i < 2; ++i) {
    spread_.yx[i] += spread * (products.yx[i] - stratum_y_ * x[i] / m);
    spread_.tx[i] += spread * (products.tx[i] - stratum_t_ * x[i] / m);
  }
  stratum_y_ = stratum_t_ = 0;
  stratum_products_ = {};
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
  const size_t which = windows.measure();
  const double X = windows.weighted_x_;
  const double expand = X > 0 ? windows.all_x_ / X : 1;
  const auto total = [&](double weighted, double squares, double with_x) {
    const double ratio = X > 0 ? weighted / X : 0;
    const double variance = squares - 2 * ratio * with_x + ratio * ratio * windows.spread_xx_;
    return interval(weighted * expand, expand * expand * variance, windows.freedom_);
  };
  result.count = total(weighted_y_, spread_.yy, spread_.yx[which]);
  result.total_ns = total(weighted_t_, spread_.tt, spread_.tx[which]);
  // What was seen did happen.
  result.count.low = std::max(result.count.low, count_);
  result.count.high = std::max(result.count.high, count_);
  result.total_ns.low = std::max(result.total_ns.low, sum_);
  result.total_ns.high = std::max(result.total_ns.high, sum_);
  result.scale = count_ > 0 ? result.count.value / count_ : 1;

  if (clusters_ >= 2 && weighted_y_ > 0) {
    const double mean = weighted_t_ / weighted_y_;
    const double between =
        (spread_.tt - 2 * mean * spread_.yt + mean * mean * spread_.yy) / (weighted_y_ * weighted_y_);
    // Few clusters may agree by chance; the spread of single launches is the least there is.
    const double squares = sum_squares_ - sum_ * sum_ / count_;
    const double left = std::max(1 - count_ / std::max(result.count.value, count_), 0.0);
    const double within = squares / (count_ - 1) / count_ * left;
    result.mean =
        interval(mean, std::max(between, within), std::min(windows.freedom_, static_cast<double>(clusters_ - 1)));
  }
  return result;
}

}  // namespace sonde::workload
