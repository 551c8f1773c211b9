// Replicas behind routers: hand-over, back-pressure, local prefill, stale signals.
#include "serve/cluster.hpp"

#include <gtest/gtest.h>

#include <map>

#include "serve/driver.hpp"
#include "serve/fixtures.hpp"

namespace racktwin::serve {
namespace {

using fixtures::Driver;
using fixtures::LinearModel;
using fixtures::ListSource;
using fixtures::named;
using fixtures::request;
using Requests = std::vector<workload::Request>;

const LinearModel constant({});

class Ran {
 public:
  Ran(const Cluster::Setup& setup, Requests list)
      : driver(setup, std::make_unique<ListSource>(std::move(list))) {
    driver.drain();
  }
  const Active& request(std::size_t i) const { return driver.ends().at(i).request; }
  bool all_completed() const {
    for (const auto& e : driver.ends())
      if (e.end != End::completed) return false;
    return !driver.ends().empty();
  }
  Driver driver;
};

Cluster::Setup prefill_and_decode(int prefills = 1, int decodes = 1) {
  Cluster::Setup setup = fixtures::disaggregated_setup(constant);
  setup.pools[0].pool.replicas = prefills;
  setup.pools[1].pool.replicas = decodes;
  fixtures::place_in_order(setup);
  return setup;
}

// 10 tokens of 1,000 bytes over NVLink at 100 GB/s: 100 ns and 1 us.
TEST(HandOver, ttft_is_the_sum_of_its_parts) {
  const Ran ran(prefill_and_decode(), {request(0, 500, 10, 3)});
  const Active& a = ran.request(0);
  EXPECT_EQ(a.scheduled, 500);
  EXPECT_EQ(a.prefilled, 1500);
  EXPECT_EQ(a.slot, 1500);
  EXPECT_EQ(a.transferred, 2600);
  EXPECT_EQ(a.first_token, 3600);  // out of the decode replica
  EXPECT_EQ(a.last_token, 5600);
  EXPECT_EQ(a.first_token - a.arrival, (a.scheduled - a.arrival) + (a.prefilled - a.scheduled) +
                                           (a.slot - a.prefilled) + (a.transferred - a.slot) +
                                           (a.first_token - a.transferred));
  EXPECT_EQ(a.prefill_replica, 0u);
  EXPECT_EQ(a.replica, 1u);
}

TEST(HandOver, another_domain_is_reached_over_the_nic_and_pays_the_descriptors) {
  Cluster::Setup setup = prefill_and_decode();
  setup.first_gpus[1] = GpuId{8};
  setup.disaggregation.descriptor_cost = 20 * unit::us;
  const Ran ran(setup, {request(0, 0, 10, 3)});
  EXPECT_NEAR(static_cast<double>(ran.request(0).transferred), 1000 + 20'000 + 5'000 + 1'000, 1);
}

TEST(HandOver, one_output_token_still_comes_from_the_decode_pool) {
  const Ran ran(prefill_and_decode(), {request(0, 0, 10, 1)});
  EXPECT_EQ(ran.request(0).first_token, 3100);
  EXPECT_EQ(ran.request(0).last_token, 3100);
}

// One decode slot: the second's KV waits in the prefill replica, which then has no room for
// the third.
TEST(HandOver, without_a_decode_slot_the_kv_stays_and_prefill_feels_it) {
  Cluster::Setup setup = prefill_and_decode();
  setup.pools[1].rules.max_sequences = 1;
  setup.pools[0].rules.blocks = 4;
  const Ran ran(setup, {request(0, 0, 32, 50), request(1, 0, 48, 2), request(2, 0, 32, 2)});
  ASSERT_TRUE(ran.all_completed());
  const Active &first = ran.request(0), &second = ran.request(1), &third = ran.request(2);
  EXPECT_EQ(second.slot, first.last_token);
  EXPECT_GT(second.slot, second.prefilled);
  EXPECT_GE(third.scheduled, second.transferred);
  EXPECT_EQ(ran.driver.cluster().replica(0).blocks_used(), 0);
  EXPECT_EQ(ran.driver.cluster().replica(1).blocks_used(), 0);
}

TEST(HandOver, goes_where_there_is_memory) {
  Cluster::Setup setup = prefill_and_decode(1, 2);
  setup.pools[1].rules.blocks = 6;
  const Ran ran(setup, {request(0, 0, 64, 30), request(1, 0, 64, 2)});
  ASSERT_TRUE(ran.all_completed());
  EXPECT_NE(ran.request(0).replica, ran.request(1).replica);
  EXPECT_EQ(ran.request(1).slot, ran.request(1).prefilled);
}

// The large one waits for the replica that is full; the small one behind it fits elsewhere.
TEST(HandOver, who_is_next_in_line_is_offered_every_replica) {
  Cluster::Setup setup = prefill_and_decode(1, 2);
  setup.pools[0].rules.max_batch_tokens = 1000;
  setup.pools[1].rules.blocks = 10;
  const Ran ran(setup, {request(0, 0, 128, 10),     // 8 blocks on one
                        request(1, 0, 96, 60),      // 6 blocks on the other, 7 later
                        request(2, 1'500, 128, 2),  // fits neither, then leaves 2 on the one
                        request(3, 1'600, 32, 2)});
  ASSERT_TRUE(ran.all_completed());
  EXPECT_EQ(ran.request(2).slot, ran.request(0).last_token);
  EXPECT_EQ(ran.request(3).slot, ran.request(2).slot);
}

TEST(HandOver, stays_inside_the_nvlink_domain_while_there_is_room) {
  Cluster::Setup setup = prefill_and_decode(2, 4);
  setup.first_gpus = {GpuId{0}, GpuId{8}, GpuId{1}, GpuId{2}, GpuId{9}, GpuId{10}};
  setup.pools[1].rules.max_sequences = 2;
  Requests list;
  for (std::uint32_t i = 0; i < 8; ++i) list.push_back(request(i, i, 10, 100));
  const Ran ran(setup, list);
  ASSERT_TRUE(ran.all_completed());
  EXPECT_EQ(ran.driver.cluster().transfers().inside_domain, 8);
  std::map<std::uint32_t, int> load;
  for (const auto& e : ran.driver.ends()) ++load[e.request.replica];
  for (const auto& [replica, count] : load) EXPECT_EQ(count, 2) << replica;
}

TEST(HandOver, overlap_by_layers_leaves_at_least_the_last_layer_to_send) {
  Cluster::Setup setup = prefill_and_decode();
  setup.layers = 4;
  setup.kv_bytes_per_token = 2000;  // 200 ns for ten tokens, the step is longer
  setup.disaggregation.layerwise_overlap = true;
  const Ran ran(setup, {request(0, 0, 10, 2)});
  EXPECT_NEAR(static_cast<double>(ran.request(0).transferred), 1000 + 1000 + 50, 1);
  EXPECT_DOUBLE_EQ(ran.driver.cluster().transfers().bytes.in(unit::byte), 20'000);
}

TEST(HandOver, what_the_decode_replica_has_does_not_travel) {
  const Cluster::Setup setup = prefill_and_decode();
  const Ran ran(
      setup, {named(request(0, 0, 64, 2), 16, 5, 4), named(request(1, 100'000, 80, 2), 16, 5, 4)});
  ASSERT_TRUE(ran.all_completed());
  EXPECT_EQ(ran.driver.cluster().kv_moved_tokens(), 64 + 16);
}

TEST(LocalPrefill, a_prompt_that_decode_has_nearly_all_of_is_prefilled_there) {
  Cluster::Setup setup = prefill_and_decode();
  setup.disaggregation.local_prefill_below = 20;
  const Ran ran(setup, {named(request(0, 0, 64, 2), 16, 5, 4),
                        named(request(1, 100'000, 80, 2), 16, 5, 4),  // 16 tokens are new
                        named(request(2, 200'000, 90, 2), 16, 5, 4),  // 26
                        request(3, 300'000, 19, 2)});
  ASSERT_TRUE(ran.all_completed());
  EXPECT_FALSE(ran.request(0).local_prefill);
  EXPECT_TRUE(ran.request(1).local_prefill);
  EXPECT_EQ(ran.request(1).prefill_replica, no_replica);
  EXPECT_EQ(ran.request(1).first_token, 101'000);
  EXPECT_FALSE(ran.request(2).local_prefill);
  EXPECT_TRUE(ran.request(3).local_prefill);
}

// Pools of two shapes in one role: a prompt goes to one that can hold it.
TEST(Pools, of_unequal_size_take_what_they_can_hold) {
  for (const int small : {0, 1}) {
    SCOPED_TRACE(small);
    Cluster::Setup setup = prefill_and_decode();
    setup.pools = {setup.pools[0], setup.pools[0], setup.pools[1], setup.pools[1]};
    setup.pools[static_cast<std::size_t>(small)].rules.blocks = 4;
    setup.pools[static_cast<std::size_t>(2 + small)].rules.blocks = 4;
    fixtures::place_in_order(setup);
    Requests list;
    for (std::uint32_t i = 0; i < 20; ++i) list.push_back(request(i, i * 10, i % 2 ? 200 : 20, 3));
    const Ran ran(setup, list);
    EXPECT_TRUE(ran.all_completed());
    for (const auto& e : ran.driver.ends())
      if (e.request.isl == 200) {
        EXPECT_NE(static_cast<int>(e.request.prefill_replica), small);
        EXPECT_NE(static_cast<int>(e.request.replica), 2 + small);
      }
  }
}

TEST(Context, longer_than_the_models_is_shed_with_the_reason) {
  Cluster::Setup setup = fixtures::small_setup(constant);
  setup.max_position = 100;
  fixtures::place_in_order(setup);
  const Ran ran(setup, {request(0, 0, 60, 40), request(1, 0, 60, 41)});
  EXPECT_EQ(ran.driver.ends()[0].end, End::completed);
  EXPECT_EQ(ran.driver.ends()[1].end, End::shed);
  EXPECT_EQ(ran.driver.ends()[1].reason, "longer than the model's context");
}

// The KV of A is long on its way, so that B, admitted after it, has more tokens out when memory
// runs short.
TEST(Preemption, takes_the_latest_admitted_or_the_one_with_fewest_tokens_by_engine) {
  for (const bool least_done : {false, true}) {
    SCOPED_TRACE(least_done);
    Cluster::Setup setup = prefill_and_decode();
    setup.first_gpus[1] = GpuId{8};
    setup.pools[0].rules.max_batch_tokens = 1000;
    setup.kv_bytes_per_token = 10'000;  // 1 us a token over the NIC
    setup.pools[1].rules.preempt_least_done = least_done;
    setup.pools[1].rules.block_tokens = 4;
    setup.pools[1].rules.blocks = 40;
    const Ran ran(setup, {request(0, 0, 80, 80), request(1, 10, 4, 140)});
    ASSERT_TRUE(ran.all_completed());
    EXPECT_LT(ran.request(1).first_token, ran.request(0).first_token);
    EXPECT_EQ(ran.request(0).preemptions > 0, least_done);
    EXPECT_EQ(ran.request(1).preemptions > 0, !least_done);
  }
}

// Sixteen routers that see old loads and not one another send everybody to the same replica.
TEST(StaleRouters, herd_and_one_live_router_does_not) {
  const auto p99 = [](int routers, Seconds staleness) {
    const LinearModel model({.base = 100'000, .token = 2'000});
    Cluster::Setup setup = fixtures::small_setup(model);
    setup.pools[0].pool.replicas = 8;
    setup.router = {.policy = "least-loaded", .staleness = staleness, .replicas = routers};
    fixtures::place_in_order(setup);
    Rng rng(5, "arrivals");
    Requests list;
    double at = 0;
    for (std::uint32_t i = 0; i < 6000; ++i) {
      at += rng.exponential(150'000);
      list.push_back(request(i, static_cast<std::int64_t>(at), 20, 20));
    }
    const Ran ran(setup, list);
    std::vector<double> ttft;
    for (const auto& e : ran.driver.ends())
      ttft.push_back(static_cast<double>(e.request.first_token - e.request.arrival));
    return exact_percentile(ttft, 0.99);
  };
  const double live = p99(1, Seconds{}), stale = p99(16, 50 * unit::ms);
  EXPECT_GT(stale, 3 * live);
}

TEST(Stuck, names_the_replica_and_what_waits) {
  Cluster::Setup setup = prefill_and_decode();
  setup.pools[1].rules.max_sequences = 1;
  Driver driver(
      setup, std::make_unique<ListSource>(Requests{request(0, 0, 32, 5000), request(1, 0, 48, 2)}));
  driver.run_until(Instant::at_ns(100'000));
  EXPECT_EQ(driver.cluster().waiting_for_slot(), 1);
  EXPECT_NE(driver.cluster().stuck().find("1 prefilled requests wait for a decode slot"),
            std::string::npos);
}

TEST(GiveUp, leaves_nothing_in_the_system) {
  Driver driver(prefill_and_decode(),
                std::make_unique<ListSource>(Requests{request(0, 0, 32, 5000)}));
  driver.run_until(Instant::at_ns(50'000));
  EXPECT_EQ(driver.cluster().in_system(), 1);
  driver.cluster().give_up_all();
  EXPECT_EQ(driver.cluster().in_system(), 0);
  ASSERT_EQ(driver.ends().size(), 1u);
  EXPECT_EQ(driver.ends()[0].end, End::unfinished);
}

}  // namespace
}  // namespace racktwin::serve
