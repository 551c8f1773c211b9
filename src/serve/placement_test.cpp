#include "serve/placement.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/rng.hpp"

namespace racktwin::serve {
namespace {

using testing::HasSubstr;

Pool pool(int replicas, int tp) {
  Pool p;
  p.replicas = replicas;
  p.parallelism.tp = tp;
  return p;
}

TEST(Place, workers_are_packed_onto_trays_and_not_rounded_up_one_by_one) {
  // Four workers of two GPUs on trays of four: two trays.
  const Deployment d{.placement = Placement::packed, .pools = {pool(4, 2)}};
  const auto placed = place(d, 16, 4);
  ASSERT_TRUE(placed.ok()) << placed.error().text();
  std::vector<std::uint32_t> first;
  for (const GpuId g : placed.value()) first.push_back(g.index);
  EXPECT_THAT(first, testing::ElementsAre(0, 2, 4, 6));
}

TEST(Place, a_pool_is_spread_evenly_over_the_domains) {
  const Deployment d{.pools = {pool(4, 4), pool(8, 1)}};
  const auto placed = place(d, 32, 8);
  ASSERT_TRUE(placed.ok()) << placed.error().text();
  int large[4] = {}, small[4] = {};
  for (std::size_t i = 0; i < 12; ++i) ++(i < 4 ? large : small)[placed.value()[i].index / 8];
  for (int k = 0; k < 4; ++k) {
    EXPECT_EQ(large[k], 1);
    EXPECT_EQ(small[k], 2);
  }
}

TEST(Place, more_gpus_than_there_are_is_refused_with_the_sums) {
  const auto placed = place({.pools = {pool(3, 8), pool(1, 4)}}, 24, 8);
  ASSERT_FALSE(placed.ok());
  EXPECT_THAT(placed.error().text(), HasSubstr("28"));
  EXPECT_THAT(placed.error().text(), HasSubstr("24"));
}

TEST(Place, room_is_counted_per_domain_and_not_in_sum) {
  // Eight GPUs free as two times four hold no replica of eight.
  const auto placed = place({.pools = {pool(2, 5), pool(1, 6)}}, 16, 8);
  ASSERT_FALSE(placed.ok());
  EXPECT_THAT(placed.error().text(), HasSubstr("domain of 8"));
  EXPECT_THAT(placed.error().text(), HasSubstr("replica of 5"));
}

TEST(Place, what_fits_in_some_order_is_not_refused) {
  // Spread one by one, the pairs would take a place in every domain and leave none whole.
  const auto placed = place({.pools = {pool(4, 2), pool(1, 8)}}, 16, 8);
  EXPECT_TRUE(placed.ok()) << placed.error().text();
}

TEST(Place, no_gpu_twice_and_no_replica_across_a_border_it_can_avoid) {
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed, "place");
    const int domain = 1 << rng.below(5), domains = 1 + static_cast<int>(rng.below(6));
    Deployment d{.placement = rng.below(2) == 0 ? Placement::spread : Placement::packed};
    const std::uint64_t pools = 1 + rng.below(3);
    int asked = 0;
    for (std::uint64_t p = 0; p < pools; ++p) {
      d.pools.push_back(pool(1 + static_cast<int>(rng.below(6)), 1 << rng.below(6)));
      asked += d.pools.back().replicas * d.pools.back().parallelism.gpus();
    }
    const auto placed = place(d, domain * domains, domain);
    if (asked > domain * domains) {
      EXPECT_FALSE(placed.ok());
      continue;
    }
    // Powers of two always fit while their sum does.
    ASSERT_TRUE(placed.ok()) << placed.error().text();
    std::set<std::uint32_t> taken;
    std::size_t i = 0;
    for (const Pool& p : d.pools)
      for (int j = 0; j < p.replicas; ++j, ++i) {
        const auto first = static_cast<int>(placed.value()[i].index);
        const int size = p.parallelism.gpus();
        for (int g = first; g < first + size; ++g) {
          EXPECT_LT(g, domain * domains);
          EXPECT_TRUE(taken.insert(static_cast<std::uint32_t>(g)).second) << "GPU " << g;
        }
        if (size <= domain) {
          EXPECT_EQ(first / domain, (first + size - 1) / domain);
        } else {
          EXPECT_EQ(first % domain, 0);
        }
      }
  }
}

}  // namespace
}  // namespace racktwin::serve
