#include <sonde/toolkit/statistics.h>

#include <algorithm>
#include <array>

namespace sonde::toolkit {
namespace {

// 256-bit unsigned integers, least significant limb first: what count * squares - sum * sum needs.
using Wide = std::array<uint64_t, 4>;

Uint128 magnitude(Int128 value) {
  return value < 0 ? Uint128{0} - static_cast<Uint128>(value) : static_cast<Uint128>(value);
}

Wide multiply(const Wide &a, uint64_t b) {
  Wide result{};
  Uint128 carry = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    carry += Uint128{a[i]} * b;
    result[i] = static_cast<uint64_t>(carry);
    carry >>= 64;
  }
  return result;
}

Wide square(Uint128 value) {
  const auto low = static_cast<uint64_t>(value);
  const auto high = static_cast<uint64_t>(value >> 64);
  const Wide whole = {low, high, 0, 0};
  Wide result = multiply(whole, low);
  const Wide upper = multiply(whole, high);
  Uint128 carry = 0;
  for (size_t i = 1; i < result.size(); ++i) {
    carry += Uint128{result[i]} + upper[i - 1];
    result[i] = static_cast<uint64_t>(carry);
    carry >>= 64;
  }
  return result;
}

// a - b, a >= b.
Wide subtract(const Wide &a, const Wide &b) {
  Wide result{};
  uint64_t borrow = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const Uint128 take = Uint128{b[i]} + borrow;
    borrow = Uint128{a[i]} < take ? 1 : 0;
    result[i] = static_cast<uint64_t>(Uint128{a[i]} - take);
  }
  return result;
}

long double real(const Wide &value) {
  long double result = 0;
  for (size_t i = value.size(); i-- > 0;) result = result * 0x1p64L + static_cast<long double>(value[i]);
  return result;
}

}  // namespace

void Statistics::add(int64_t value) {
  ++count_;
  min_ = std::min(min_, value);
  max_ = std::max(max_, value);
  sum_ += value;
  const Uint128 distance = magnitude(value);
  const Uint128 square_of_value = distance * distance;
  squares_low_ += square_of_value;
  if (squares_low_ < square_of_value) ++squares_high_;
}

void Statistics::merge(const Statistics &other) {
  count_ += other.count_;
  min_ = std::min(min_, other.min_);
  max_ = std::max(max_, other.max_);
  sum_ += other.sum_;
  squares_low_ += other.squares_low_;
  squares_high_ += other.squares_high_ + (squares_low_ < other.squares_low_ ? 1 : 0);
}

int64_t Statistics::sum_i64() const { return static_cast<int64_t>(std::clamp<Int128>(sum_, INT64_MIN, INT64_MAX)); }

double Statistics::mean() const {
  if (count_ == 0) return 0;
  return static_cast<double>(static_cast<long double>(sum_) / static_cast<long double>(count_));
}

double Statistics::variance() const {
  if (count_ == 0) return 0;
  const Wide squares = {static_cast<uint64_t>(squares_low_), static_cast<uint64_t>(squares_low_ >> 64), squares_high_,
                        0};
  const long double numerator = real(subtract(multiply(squares, count_), square(magnitude(sum_))));
  const auto count = static_cast<long double>(count_);
  return static_cast<double>(numerator / count / count);
}

}  // namespace sonde::toolkit
