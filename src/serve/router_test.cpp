#include "serve/router.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/rng.hpp"

namespace racktwin::serve {
namespace {

using workload::RequestView;

std::vector<ReplicaView> equal_views(std::uint32_t count, std::uint32_t first = 0) {
  std::vector<ReplicaView> views(count);
  for (std::uint32_t i = 0; i < count; ++i) views[i].id = ReplicaId{first + i};
  return views;
}

class EveryRouter : public testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<Router> make(std::uint64_t seed = 1) const {
    RouterSpec spec;
    spec.policy = GetParam();
    return router_row(GetParam())->make(spec, seed, 0);
  }
};

ReplicaView random_view(Rng& rng, std::uint32_t id) {
  return {.id = ReplicaId{id},
          .accepts = rng.below(3) > 0,
          .as_of = {},
          .waiting = static_cast<std::int32_t>(rng.below(4)),
          .running = static_cast<std::int32_t>(rng.below(4)),
          .in_flight = static_cast<std::int32_t>(rng.below(60)),
          .prefill_tokens = static_cast<std::int64_t>(rng.below(500)),
          .kv_tokens = static_cast<std::int64_t>(rng.below(500)),
          .cached_tokens = static_cast<std::int64_t>(rng.below(100))};
}

TEST_P(EveryRouter, chooses_one_that_accepts_if_there_is_one_and_the_same_again) {
  const auto a = make(), b = make();
  Rng rng(3, "views");
  for (int k = 0; k < 3000; ++k) {
    std::vector<ReplicaView> views;
    const std::uint64_t count = 1 + rng.below(7), first = rng.below(5);
    for (std::uint64_t i = 0; i < count; ++i)
      views.push_back(random_view(rng, static_cast<std::uint32_t>(first + i)));
    const std::vector<std::uint64_t> blocks = {rng.below(3), rng.below(9)};
    RequestView request{.id = RequestId{static_cast<std::uint32_t>(k)}, .isl = 100};
    request.blocks = blocks;
    request.block_tokens = 50;
    if (rng.below(2) == 0) request.session = SessionId{static_cast<std::uint32_t>(rng.below(9))};
    const auto choice = a->route(request, views);
    EXPECT_EQ(choice, b->route(request, views));
    bool any = false;
    for (const ReplicaView& view : views) any = any || view.accepts;
    ASSERT_EQ(choice.has_value(), any);
    if (choice) {
      EXPECT_TRUE(views.at(*choice).accepts);
    }
  }
}

TEST_P(EveryRouter, with_equal_candidates_none_starves) {
  const auto router = make();
  const auto views = equal_views(8);
  std::map<std::size_t, int> taken;
  for (std::uint32_t k = 0; k < 4000; ++k) {
    const std::vector<std::uint64_t> blocks = {mix(k)};
    RequestView request{.id = RequestId{k}, .isl = 10, .session = SessionId{k}};
    request.blocks = blocks;
    request.block_tokens = 10;
    ++taken[*router->route(request, views)];
  }
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_GT(taken[i], 350) << i;
    EXPECT_LT(taken[i], 650) << i;
  }
}

// Requests of two NVLink domains in turns, each asking for the two replicas of its own.
TEST_P(EveryRouter, asked_about_parts_of_a_pool_in_turns_none_starves) {
  const auto router = make();
  const auto all = equal_views(4);
  std::map<std::uint32_t, int> taken;
  for (std::uint32_t k = 0; k < 4000; ++k) {
    const auto part = std::span(all).subspan(k % 2 == 0 ? 0 : 2, 2);
    const std::vector<std::uint64_t> blocks = {mix(k)};
    RequestView request{.id = RequestId{k}, .isl = 10, .session = SessionId{k}};
    request.blocks = blocks;
    request.block_tokens = 10;
    ++taken[part[*router->route(request, part)].id.index];
  }
  for (std::uint32_t i = 0; i < 4; ++i) EXPECT_GT(taken[i], 800) << i;
}

INSTANTIATE_TEST_SUITE_P(Policies, EveryRouter, testing::ValuesIn(router_names()),
                         [](const auto& of) {
                           std::string name = of.param;
                           for (char& c : name)
                             if (c == '-') c = '_';
                           return name;
                         });

std::unique_ptr<Router> router(const RouterSpec& spec, std::uint64_t seed = 1) {
  return router_row(spec.policy)->make(spec, seed, 0);
}

TEST(RoundRobin, goes_round) {
  const auto r = router({.policy = "round-robin"});
  const auto views = equal_views(3);
  for (std::size_t k = 0; k < 9; ++k) EXPECT_EQ(r->route({}, views), k % 3);
}

TEST(LeastLoaded, takes_the_fewest_waiting_and_running) {
  const auto r = router({.policy = "least-loaded"});
  auto views = equal_views(3);
  views[0].waiting = 2;
  views[1].running = 1;
  views[2].running = 1;
  views[2].waiting = 1;
  for (int k = 0; k < 20; ++k) EXPECT_EQ(r->route({}, views), 1u);
}

TEST(PowerOfTwo, never_takes_the_most_loaded_of_many_more_often_than_by_a_double_draw) {
  const auto r = router({.policy = "power-of-two"});
  auto views = equal_views(10);
  for (std::size_t i = 0; i < 10; ++i) views[i].running = static_cast<std::int32_t>(i);
  std::map<std::size_t, int> taken;
  for (int k = 0; k < 10000; ++k) ++taken[*r->route({}, views)];
  // Rank i wins if both draws are >= i: (19 - 2 i) / 100.
  for (std::size_t i = 0; i < 10; ++i)
    EXPECT_NEAR(taken[i], 100.0 * (19.0 - 2.0 * static_cast<double>(i)), 170) << i;
}

TEST(SessionRouter, keeps_a_session_and_moves_only_those_of_a_replica_that_leaves) {
  const auto r = router({.policy = "session"});
  auto views = equal_views(5);
  std::map<std::uint32_t, std::size_t> home;
  for (std::uint32_t s = 0; s < 200; ++s) home[s] = *r->route({.session = SessionId{s}}, views);
  views[2].accepts = false;
  for (std::uint32_t s = 0; s < 200; ++s) {
    const std::size_t now = *r->route({.session = SessionId{s}}, views);
    if (home[s] != 2) {
      EXPECT_EQ(now, home[s]);
    }
  }
  views[2].accepts = true;
  for (std::uint32_t s = 0; s < 200; ++s)
    EXPECT_EQ(*r->route({.session = SessionId{s}}, views), home[s]);
}

// In blocks of one token. A: 4 being prefilled, 20 in decode, 8 of 10 found: 6 + 20 = 26.
// B: 14 in decode, nothing found: 10 + 14 = 24.
TEST(KvAware, takes_the_least_of_prefill_left_and_blocks_in_use) {
  const auto r = router({.policy = "kv-aware"});
  auto views = equal_views(2);
  views[0].prefill_tokens = 4;
  views[0].kv_tokens = 20;
  views[0].cached_tokens = 8;
  views[1].kv_tokens = 14;
  for (int k = 0; k < 20; ++k) EXPECT_EQ(r->route({.isl = 10}, views), 1u);
  views[0].kv_tokens = 17;  // 23
  for (int k = 0; k < 20; ++k) EXPECT_EQ(r->route({.isl = 10}, views), 0u);
}

TEST(KvAware, overlap_breaks_the_tie_of_a_repeated_conversation) {
  const auto r = router({.policy = "kv-aware"});
  auto views = equal_views(6);
  views[4].cached_tokens = 64;
  for (int k = 0; k < 50; ++k) EXPECT_EQ(r->route({.isl = 100}, views), 4u);
  RouterSpec blind{.policy = "kv-aware"};
  blind.overlap_weight = 0;
  const auto b = router(blind);
  std::set<std::size_t> seen;
  for (int k = 0; k < 100; ++k) seen.insert(*b->route({.isl = 100}, views));
  EXPECT_EQ(seen.size(), 6u);
}

TEST(KvAware, a_high_temperature_spreads_and_a_low_one_does_not) {
  auto views = equal_views(2);
  views[1].kv_tokens = 100;
  const auto part_of_first = [&](double temperature) {
    RouterSpec spec{.policy = "kv-aware"};
    spec.temperature = temperature;
    const auto r = router(spec);
    int first = 0;
    for (int k = 0; k < 20000; ++k) first += *r->route({.isl = 10}, views) == 0;
    return first / 20000.0;
  };
  EXPECT_NEAR(part_of_first(1), 1 / (1 + std::exp(-1)), 0.015);
  EXPECT_NEAR(part_of_first(0.1), 1 / (1 + std::exp(-10)), 0.002);
}

TEST(CacheAware, follows_the_longest_remembered_prefix_until_loads_part) {
  RouterSpec spec{.policy = "cache-aware"};
  spec.balance_absolute = 8;
  const auto r = router(spec);
  auto views = equal_views(4);
  const std::vector<std::uint64_t> prompt = {1, 2, 3, 4};
  RequestView request{.isl = 40};
  request.blocks = prompt;
  request.block_tokens = 10;
  const std::size_t home = *r->route(request, views);
  for (int k = 0; k < 20; ++k) EXPECT_EQ(*r->route(request, views), home);
  views[home].in_flight = 8;
  EXPECT_EQ(*r->route(request, views), home);
  views[home].in_flight = 9;  // out of balance by more than 8
  EXPECT_NE(*r->route(request, views), home);
  // Less than half of the prompt is known: goes to the one that remembers least.
  const std::vector<std::uint64_t> other = {1, 8, 9, 10};
  request.blocks = other;
  views[home].in_flight = 0;
  EXPECT_NE(*r->route(request, views), home);
}

TEST(CacheAware, remembers_by_replica_and_not_by_place_in_the_list) {
  const auto r = router({.policy = "cache-aware"});
  const auto all = equal_views(4);
  const std::vector<std::uint64_t> prompt = {1, 2, 3, 4};
  RequestView request{.isl = 40};
  request.blocks = prompt;
  request.block_tokens = 10;
  const auto near = std::span(all).subspan(2, 2);
  const std::uint32_t home = near[*r->route(request, near)].id.index;
  for (int k = 0; k < 20; ++k) EXPECT_EQ(all[*r->route(request, all)].id.index, home);
}

TEST(RouterTable, knows_its_rows_by_name) {
  for (const RouterRow& row : router_table()) EXPECT_EQ(router_row(row.name), &row);
  EXPECT_EQ(router_row("no-such"), nullptr);
  EXPECT_EQ(router_names().size(), router_table().size());
}

}  // namespace
}  // namespace racktwin::serve
