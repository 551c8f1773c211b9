#include "base/units.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <type_traits>

namespace racktwin {
namespace {

using namespace unit;

template <class A, class B>
concept Addable = requires(A a, B b) { a + b; };
template <class A, class B>
concept Comparable = requires(A a, B b) { a < b; };

TEST(Units, dimensions_follow_from_the_arithmetic) {
  static_assert(std::is_same_v<decltype(GB / sec), BytesPerSecond>);
  static_assert(std::is_same_v<decltype(Bytes() / BytesPerSecond()), Seconds>);
  static_assert(std::is_same_v<decltype(watt * sec), Joules>);
  static_assert(std::is_same_v<decltype(TFLOP / TFLOPS), Seconds>);
  static_assert(std::is_same_v<decltype(GB / MB), double>);
  static_assert(std::is_same_v<decltype(per_second * sec), double>);
  static_assert(!Addable<Bytes, Seconds> && !Addable<Bytes, double>);
  static_assert(!Comparable<Watts, Joules> && Comparable<Bytes, Bytes>);
}

TEST(Units, have_the_sizes_their_names_say) {
  EXPECT_EQ(GiB.in(byte), 1073741824);
  EXPECT_EQ(GB.in(byte), 1e9);
  EXPECT_EQ((800 * Gbps).in(GBps), 100);
  EXPECT_EQ(hour.in(sec), 3600);
  EXPECT_EQ(day.in(hour), 24);
  EXPECT_DOUBLE_EQ((1 * sec).in(ns), 1e9);
  EXPECT_EQ((15 * PFLOPS).in(TFLOPS), 15000);
  EXPECT_DOUBLE_EQ((1400 * watt).in(kW), 1.4);
}

RC_GTEST_PROP(Units, a_quantity_leaves_through_the_unit_it_came_in_by, (int amount)) {
  RC_ASSERT((amount * GB).in(GB) == amount);
  RC_ASSERT((amount * sec).in(sec) == amount);
  Bytes sum = amount * GB;
  sum += amount * GB;
  RC_ASSERT(sum == 2.0 * amount * GB);
  sum -= amount * GB;
  RC_ASSERT(sum == amount * GB);
}

}  // namespace
}  // namespace racktwin
