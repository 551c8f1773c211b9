#include "base/histogram.hpp"

#include <algorithm>
#include <cmath>

#include "base/check.hpp"

namespace racktwin {

void Histogram::grow(std::size_t bin) {
  RACKTWIN_CHECK(bin < (64u << precision_bits));  // a negative value lands above
  bins_.resize(bin + 1);
}

void Histogram::merge(const Histogram& other) {
  if (other.bins_.size() > bins_.size()) bins_.resize(other.bins_.size());
  for (std::size_t i = 0; i < other.bins_.size(); ++i) bins_[i] += other.bins_[i];
  count_ += other.count_;
  sum_ += other.sum_;
  min_ = std::min(min_, other.min_);
  max_ = std::max(max_, other.max_);
}

Histogram::Bin Histogram::bounds_of(std::size_t bin) {
  constexpr std::size_t linear = 1u << precision_bits;
  if (bin < 2 * linear) {  // shift 0: still one value each
    const auto value = static_cast<std::int64_t>(bin);
    return {value, value + 1, 0};
  }
  const std::size_t shift = (bin >> precision_bits) - 1;
  const std::size_t mantissa = bin - (shift << precision_bits);
  const auto low = static_cast<std::int64_t>(mantissa << shift);
  const std::int64_t width = std::int64_t{1} << shift;  // the last bin ends with the type
  return {low, low > INT64_MAX - width ? INT64_MAX : low + width, 0};
}

double Histogram::percentile(double part) const {
  RACKTWIN_CHECK(part >= 0 && part <= 1);
  if (count_ == 0) return 0;
  const auto rank = std::max<std::int64_t>(
      1, static_cast<std::int64_t>(std::ceil(part * static_cast<double>(count_))));
  std::int64_t seen = 0;
  for (std::size_t i = 0; i < bins_.size(); ++i) {
    seen += bins_[i];
    if (seen < rank) continue;
    const Bin bin = bounds_of(i);
    const double middle =
        static_cast<double>(bin.low) + static_cast<double>(bin.high - 1 - bin.low) / 2;
    return std::clamp(middle, static_cast<double>(min_), static_cast<double>(max_));
  }
  return static_cast<double>(max_);
}

std::vector<Histogram::Bin> Histogram::bins() const {
  std::vector<Bin> result;
  for (std::size_t i = 0; i < bins_.size(); ++i) {
    if (bins_[i] == 0) continue;
    Bin bin = bounds_of(i);
    bin.count = bins_[i];
    result.push_back(bin);
  }
  return result;
}

double exact_percentile(std::span<const double> values, double part) {
  RACKTWIN_CHECK(part >= 0 && part <= 1);
  if (values.empty()) return 0;
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  const auto rank = static_cast<std::size_t>(std::ceil(part * static_cast<double>(sorted.size())));
  return sorted[rank == 0 ? 0 : rank - 1];
}

}  // namespace racktwin
