#include "serve/kv_tiers.hpp"

#include <gtest/gtest.h>

#include <deque>

namespace racktwin::serve {
namespace {

using Names = std::vector<std::uint64_t>;

KvTiers two_and_three() {
  return {.host = 2 * unit::MB,
          .nvme = 3 * unit::MB,
          .remote = {},
          .host_bandwidth = 1 * unit::GBps,
          .nvme_bandwidth = 0.1 * unit::GBps,
          .remote_bandwidth = {},
          .host_latency = 10 * unit::us,
          .nvme_latency = 100 * unit::us,
          .remote_latency = {}};
}

TEST(KvTierStack, without_bytes_there_is_none) {
  KvTierStack stack({}, 1 * unit::MB);
  EXPECT_FALSE(stack.present());
  stack.sink(Names{1, 2, 3});
  EXPECT_EQ(stack.matched(Names{1, 2, 3}), 0);
}

TEST(KvTierStack, what_a_full_tier_drops_sinks_to_the_next_and_then_is_gone) {
  KvTierStack stack(two_and_three(), 1 * unit::MB);
  ASSERT_TRUE(stack.present());
  stack.sink(Names{1, 2, 3, 4, 5});  // host: 4 5, NVMe: 1 2 3
  EXPECT_EQ(stack.matched(Names{1, 2, 3, 4, 5}), 5);
  stack.sink(Names{6});  // host: 5 6, NVMe: 2 3 4
  EXPECT_EQ(stack.matched(Names{1}), 0);
  EXPECT_EQ(stack.matched(Names{2, 3, 4, 5, 6}), 5);
  EXPECT_EQ(stack.matched(Names{2, 1, 3}), 1);  // stops at the first that is not there
}

TEST(KvTierStack, reads_take_their_turn_at_the_bandwidth_of_their_tier) {
  KvTierStack stack(two_and_three(), 1 * unit::MB);
  stack.sink(Names{1, 2, 3, 4, 5});
  // 1 MB from the host: 1 ms and 10 us; from NVMe: 10 ms and 100 us.
  EXPECT_EQ(stack.read(Names{4}, 0), 1'010'000);
  EXPECT_EQ(stack.read(Names{5}, 0), 2'010'000);  // behind the first
  EXPECT_EQ(stack.read(Names{1, 2}, 0), 20'100'000);
  EXPECT_EQ(stack.read(Names{4}, 50'000'000), 51'010'000);
  // Both at once: the later of the two.
  EXPECT_EQ(stack.read(Names{3, 4}, 60'000'000), 70'100'000);
  EXPECT_EQ(stack.blocks_read(0), 4);
  EXPECT_EQ(stack.blocks_read(1), 3);
  EXPECT_EQ(stack.blocks_read(2), 0);
}

TEST(KvTierStack, a_read_makes_recent) {
  KvTierStack stack(two_and_three(), 1 * unit::MB);
  stack.sink(Names{1, 2});
  stack.read(Names{1}, 0);
  stack.sink(Names{3});  // pushes out 2, not 1, to NVMe
  EXPECT_EQ(stack.read(Names{1}, 1'000'000'000), 1'001'010'000);
  EXPECT_EQ(stack.read(Names{2}, 2'000'000'000), 2'010'100'000);
}

// A name lies in one tier of a naive stack: deques from old to new.
TEST(KvTierStack, holds_what_a_naive_stack_holds) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed, "tiers");
    const std::size_t host = rng.below(4), nvme = rng.below(5), remote = 1 + rng.below(6);
    const auto size = [](std::size_t n) { return static_cast<double>(n) * unit::MB; };
    KvTierStack stack({.host = size(host),
                       .nvme = size(nvme),
                       .remote = size(remote),
                       .host_bandwidth = unit::GBps,
                       .nvme_bandwidth = unit::GBps,
                       .remote_bandwidth = unit::GBps,
                       .host_latency = {},
                       .nvme_latency = {},
                       .remote_latency = {}},
                      1 * unit::MB);
    const std::size_t capacity[] = {host, nvme, remote};
    std::deque<std::uint64_t> tier[3];
    for (int op = 0; op < 500; ++op) {
      std::uint64_t name = rng.below(20);
      stack.sink(Names{name});
      for (std::size_t t = 0; t < 3; ++t) {
        if (capacity[t] == 0) continue;
        const auto here = std::find(tier[t].begin(), tier[t].end(), name);
        if (here != tier[t].end()) {
          tier[t].erase(here);
          tier[t].push_back(name);
          break;
        }
        tier[t].push_back(name);
        if (tier[t].size() <= capacity[t]) break;
        name = tier[t].front();
        tier[t].pop_front();
      }
      for (std::uint64_t n = 0; n < 20; ++n) {
        bool there = false;
        for (const auto& names : tier)
          there = there || std::find(names.begin(), names.end(), n) != names.end();
        ASSERT_EQ(stack.matched(Names{n}), there ? 1 : 0);
      }
    }
  }
}

}  // namespace
}  // namespace racktwin::serve
