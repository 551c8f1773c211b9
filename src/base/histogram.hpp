// Percentiles of very many durations in bounded memory.
//
// Histogram is log-linear (the HDR scheme): values below 2^8 have a bin each, larger ones
// 256 bins per power of two, so a percentile is right to 1/256 = 0.4 % of its value.
// Count, sum, smallest and largest are exact. Adding is O(1); merging is exact, in any order.
//
// exact_percentile() is for the few thousand values that are kept whole.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace racktwin {

class Histogram {
 public:
  // `value` >= 0, in any integer unit (nanoseconds, tokens); `count` >= 0 times.
  void add(std::int64_t value, std::int64_t count = 1) {
    if (count == 0) return;
    const std::size_t bin = bin_of(value);
    if (bin >= bins_.size()) grow(bin);
    bins_[bin] += count;
    count_ += count;
    sum_ += static_cast<double>(value) * static_cast<double>(count);
    if (value < min_) min_ = value;
    if (value > max_) max_ = value;
  }
  void merge(const Histogram&);

  std::int64_t count() const { return count_; }
  std::int64_t min() const { return count_ ? min_ : 0; }
  std::int64_t max() const { return max_; }
  double sum() const { return sum_; }
  double mean() const { return count_ ? sum_ / static_cast<double>(count_) : 0; }
  // The smallest recorded level that at least `part` of the values do not exceed, e.g.
  // part = 0.99; the middle of its bin, clamped to [min, max]. 0 when empty.
  double percentile(double part) const;

  struct Bin {
    std::int64_t low = 0, high = 0;  // values low <= v < high
    std::int64_t count = 0;
  };
  std::vector<Bin> bins() const;  // the occupied ones, ascending

  friend bool operator==(const Histogram&, const Histogram&) = default;

 private:
  static constexpr int precision_bits = 8;
  static std::size_t bin_of(std::int64_t value) {
    const auto v = static_cast<std::uint64_t>(value);
    if (v < (1u << precision_bits)) return v;
    const int shift = 63 - __builtin_clzll(v) - precision_bits;
    return (static_cast<std::size_t>(shift) << precision_bits) +
           static_cast<std::size_t>(v >> shift);
  }
  static Bin bounds_of(std::size_t bin);
  void grow(std::size_t bin);

  std::vector<std::int64_t> bins_;
  std::int64_t count_ = 0, min_ = INT64_MAX, max_ = 0;
  double sum_ = 0;
};

// Nearest rank on a copy that is sorted; 0 when empty. 0 <= part <= 1.
double exact_percentile(std::span<const double> values, double part);

}  // namespace racktwin
