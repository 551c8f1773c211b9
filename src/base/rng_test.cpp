#include "base/rng.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <set>
#include <vector>

namespace racktwin {
namespace {

TEST(Rng, same_stream_same_numbers_on_every_machine) {
  Rng a(7, "arrivals"), b(7, "arrivals");
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(a.bits(), b.bits());
  // Pinned: these numbers are part of "same scenario, same bytes", in every release.
  Rng pinned(1, "pinned");
  EXPECT_EQ(pinned.bits(), 7474944980678432454u);
  EXPECT_EQ(pinned.bits(), 7899858426142070330u);
  EXPECT_EQ(pinned.bits(), 16686290302922993130u);
}

TEST(Rng, streams_seeds_and_indices_give_different_numbers) {
  std::set<std::uint64_t> first;
  for (std::uint64_t seed : {0u, 1u, 2u})
    for (const char* stream : {"", "a", "b", "ab"})
      for (std::uint64_t index : {0u, 1u, 2u}) first.insert(Rng(seed, stream, index).bits());
  EXPECT_EQ(first.size(), 3u * 4u * 3u);
}

TEST(Rng, mix_is_a_bijection_on_what_was_tried) {
  std::set<std::uint64_t> seen;
  for (std::uint64_t x = 0; x < 20000; ++x) seen.insert(mix(x));
  EXPECT_EQ(seen.size(), 20000u);
  EXPECT_NE(mix(1, 2), mix(2, 1));
}

TEST(Rng, below_is_uniform_and_never_reaches_its_bound) {
  Rng rng(3, "below");
  std::vector<int> counts(7);
  constexpr int draws = 70'000;
  for (int i = 0; i < draws; ++i) ++counts.at(rng.below(7));
  double chi_square = 0;
  for (const int count : counts) chi_square += (count - 1e4) * (count - 1e4) / 1e4;
  EXPECT_LT(chi_square, 22.5);  // 6 degrees of freedom, 0.1 %
  for (int i = 0; i < 100; ++i) EXPECT_EQ(rng.below(1), 0u);
}

struct Moments {
  double mean = 0, variance = 0, least = 0;
};
Moments moments(const std::function<double()>& draw) {
  constexpr int draws = 200'000;
  double sum = 0, squares = 0, least = INFINITY;
  for (int i = 0; i < draws; ++i) {
    const double x = draw();
    sum += x;
    squares += x * x;
    least = std::min(least, x);
  }
  const double mean = sum / draws;
  return {mean, squares / draws - mean * mean, least};
}

TEST(Rng, distributions_have_their_means_and_variances) {
  Rng rng(11, "moments");
  const auto near = [](Moments m, double mean, double variance, const char* name) {
    // Five standard errors of 200,000 draws.
    EXPECT_NEAR(m.mean, mean, 5 * std::sqrt(variance / 2e5)) << name;
    EXPECT_NEAR(m.variance, variance, 0.1 * variance) << name;
  };
  near(moments([&] { return rng.uniform(); }), 0.5, 1.0 / 12, "uniform");
  near(moments([&] { return rng.exponential(3); }), 3, 9, "exponential");
  near(moments([&] { return rng.normal(-2, 3); }), -2, 9, "normal");
  near(moments([&] { return rng.gamma(4, 0.5); }), 2, 1, "gamma");
  near(moments([&] { return rng.gamma(0.25, 4); }), 1, 4, "gamma with a shape below 1");
  near(moments([&] { return rng.weibull(1, 2); }), 2, 4, "weibull of shape 1");
  near(moments([&] { return rng.log_normal(0, 0.5); }), std::exp(0.125),
       (std::exp(0.25) - 1) * std::exp(0.25), "log-normal");
  EXPECT_GE(moments([&] { return rng.exponential(3); }).least, 0);
  EXPECT_EQ(rng.exponential(0), 0);
}

}  // namespace
}  // namespace racktwin
