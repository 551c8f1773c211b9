#include "base/histogram.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>

namespace racktwin {
namespace {

TEST(Histogram, an_empty_one_answers_zero) {
  const Histogram empty;
  EXPECT_EQ(empty.count(), 0);
  EXPECT_EQ(empty.percentile(0.5), 0);
  EXPECT_EQ(empty.mean(), 0);
  EXPECT_EQ(empty.min(), 0);
  EXPECT_TRUE(empty.bins().empty());
}

TEST(Histogram, small_values_are_exact) {
  Histogram histogram;
  for (int value = 0; value < 512; ++value) histogram.add(value);
  EXPECT_EQ(histogram.percentile(0), 0);
  EXPECT_EQ(histogram.percentile(0.5), 255);
  EXPECT_EQ(histogram.percentile(1), 511);
  EXPECT_EQ(histogram.bins().size(), 512u);
}

TEST(Histogram, the_largest_value_has_a_bin) {
  Histogram histogram;
  histogram.add(INT64_MAX);
  EXPECT_EQ(histogram.max(), INT64_MAX);
  EXPECT_EQ(histogram.percentile(0.5), static_cast<double>(INT64_MAX));
  const auto bins = histogram.bins();
  ASSERT_EQ(bins.size(), 1u);
  EXPECT_LT(bins[0].low, bins[0].high);
}

// Values over the whole range, small ones as often as large ones.
rc::Gen<std::vector<std::int64_t>> values() {
  return rc::gen::nonEmpty(rc::gen::container<std::vector<std::int64_t>>(rc::gen::map(
      rc::gen::pair(rc::gen::inRange(0, 62), rc::gen::arbitrary<std::uint32_t>()),
      [](const std::pair<int, std::uint32_t>& p) {
        return (std::int64_t{1} << p.first) | (p.second & ((std::int64_t{1} << p.first) - 1));
      })));
}

RC_GTEST_PROP(Histogram, percentiles_are_right_to_half_a_bin, ()) {
  std::vector<std::int64_t> list = *values();
  const double part = *rc::gen::inRange(0, 101) / 100.0;
  Histogram histogram;
  for (const std::int64_t value : list) histogram.add(value);
  std::vector<double> doubles(list.begin(), list.end());
  const double exact = exact_percentile(doubles, part);
  RC_ASSERT(std::abs(histogram.percentile(part) - exact) <= exact / 256 + 0.5);
  RC_ASSERT(histogram.count() == static_cast<std::int64_t>(list.size()));
  RC_ASSERT(histogram.min() == *std::min_element(list.begin(), list.end()));
  RC_ASSERT(histogram.max() == *std::max_element(list.begin(), list.end()));
}

RC_GTEST_PROP(Histogram, merging_equals_adding_all_in_one, ()) {
  const auto first = *values(), second = *values();
  Histogram whole, a, b;
  for (const std::int64_t value : first) {
    whole.add(value, 3);
    a.add(value, 3);
  }
  for (const std::int64_t value : second) {
    whole.add(value);
    b.add(value);
  }
  Histogram ab = a, ba = b;
  ab.merge(b);
  ba.merge(a);
  RC_ASSERT(ab.bins().size() == whole.bins().size());
  RC_ASSERT(ab.count() == whole.count() && ba.count() == whole.count());
  RC_ASSERT(ab.min() == whole.min() && ab.max() == whole.max());
  for (const double part : {0.0, 0.25, 0.5, 0.9, 0.99, 1.0}) {
    RC_ASSERT(ab.percentile(part) == whole.percentile(part));
    RC_ASSERT(ba.percentile(part) == whole.percentile(part));
  }
}

RC_GTEST_PROP(Histogram, bins_ascend_and_hold_all_values, ()) {
  Histogram histogram;
  for (const std::int64_t value : *values()) histogram.add(value);
  std::int64_t count = 0, last = 0;
  for (const Histogram::Bin& bin : histogram.bins()) {
    RC_ASSERT(bin.low >= last && bin.low < bin.high && bin.count > 0);
    last = bin.high;
    count += bin.count;
  }
  RC_ASSERT(count == histogram.count());
}

TEST(Percentile, is_the_nearest_rank) {
  const std::vector<double> values = {30, 10, 20};
  EXPECT_EQ(exact_percentile(values, 0), 10);
  EXPECT_EQ(exact_percentile(values, 0.33), 10);
  EXPECT_EQ(exact_percentile(values, 0.34), 20);
  EXPECT_EQ(exact_percentile(values, 1), 30);
  EXPECT_EQ(exact_percentile({}, 0.5), 0);
}

}  // namespace
}  // namespace racktwin
