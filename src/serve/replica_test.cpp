// One replica under a step that always takes 1,000 ns: token times by hand.
#include "serve/replica.hpp"

#include <gtest/gtest.h>

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

Cluster::Setup one_replica() {
  Cluster::Setup setup = fixtures::small_setup(constant);
  setup.traced_steps = 1000;
  fixtures::place_in_order(setup);
  return setup;
}
Rules& rules(Cluster::Setup& setup) {
  return setup.pools[0].rules;
}
void as_sglang(Rules& r) {
  r.mixed = false;
  r.estimate_output = r.preempt_least_done = true;
}

struct Ran {
  std::vector<Active> requests;
  std::vector<End> ends;
  std::vector<std::string> reasons;
  StepStats stats;
  std::int64_t blocks_used = 0;
};
Ran run(const Cluster::Setup& setup, Requests list) {
  Driver driver(setup, std::make_unique<ListSource>(std::move(list)));
  driver.drain();
  Ran ran;
  for (const Driver::Ended& e : driver.ends()) {
    ran.requests.push_back(e.request);
    ran.ends.push_back(e.end);
    ran.reasons.push_back(e.reason);
  }
  ran.stats = driver.cluster().replica(0).stats();
  ran.blocks_used = driver.cluster().replica(0).blocks_used();
  return ran;
}

// Both executions; the plain one must not differ.
Ran run_both(Cluster::Setup setup, const Requests& list) {
  const Ran macro = run(setup, list);
  setup.single_steps = true;
  const Ran plain = run(setup, list);
  EXPECT_EQ(macro.requests.size(), plain.requests.size());
  for (std::size_t i = 0; i < std::min(macro.requests.size(), plain.requests.size()); ++i) {
    EXPECT_EQ(macro.requests[i].scheduled, plain.requests[i].scheduled) << i;
    EXPECT_EQ(macro.requests[i].first_token, plain.requests[i].first_token) << i;
    EXPECT_EQ(macro.requests[i].last_token, plain.requests[i].last_token) << i;
    EXPECT_EQ(macro.requests[i].preemptions, plain.requests[i].preemptions) << i;
  }
  EXPECT_EQ(macro.stats.itl, plain.stats.itl);
  EXPECT_EQ(macro.blocks_used, 0);
  return macro;
}

TEST(AttentionPairs, are_those_counted_one_by_one) {
  for (std::int64_t before = 0; before < 20; ++before)
    for (std::int64_t tokens = 0; tokens < 20; ++tokens)
      for (std::int64_t bound = 0; bound <= 25; ++bound) {
        std::int64_t all = 0, bounded = 0;
        for (std::int64_t j = 1; j <= tokens; ++j) {
          all += before + j;
          bounded += std::min(before + j, bound);
        }
        EXPECT_EQ(attention_pairs(before, tokens, std::nullopt), all);
        if (bound > 0) {
          EXPECT_EQ(attention_pairs(before, tokens, bound), bounded);
        }
      }
}

TEST(Speculation, gives_one_token_and_what_is_accepted_in_a_row) {
  EXPECT_DOUBLE_EQ((Speculation{}).tokens_per_step(), 1);
  EXPECT_DOUBLE_EQ((Speculation{2, {1, 1}}).tokens_per_step(), 3);
  EXPECT_DOUBLE_EQ((Speculation{2, {0.5, 0.5}}).tokens_per_step(), 1.75);
  EXPECT_DOUBLE_EQ((Speculation{3, {0, 1, 1}}).tokens_per_step(), 1);
}

TEST(Replica, a_prompt_takes_a_step_and_every_token_after_the_first_another) {
  const Ran ran = run_both(one_replica(), {request(0, 500, 10, 3)});
  EXPECT_EQ(ran.requests[0].scheduled, 500);
  EXPECT_EQ(ran.requests[0].prefilled, 1500);
  EXPECT_EQ(ran.requests[0].first_token, 1500);
  EXPECT_EQ(ran.requests[0].last_token, 3500);
  EXPECT_EQ(ran.stats.itl.count(), 2);
  EXPECT_EQ(ran.stats.itl.min(), 1000);
  EXPECT_EQ(ran.stats.itl.max(), 1000);
  EXPECT_EQ(ran.stats.steps, 3);
  EXPECT_EQ(ran.stats.output_tokens, 3);
}

TEST(Replica, one_output_token_ends_with_its_prompt) {
  const Ran ran = run_both(one_replica(), {request(0, 0, 10, 1)});
  EXPECT_EQ(ran.requests[0].first_token, 1000);
  EXPECT_EQ(ran.requests[0].last_token, 1000);
  EXPECT_EQ(ran.stats.itl.count(), 0);
}

TEST(Replica, a_request_is_seen_at_the_next_step_boundary) {
  // The second comes in the middle of the first's second step, [1000, 2000).
  const Ran ran = run_both(one_replica(), {request(0, 0, 10, 5), request(1, 1300, 10, 2)});
  EXPECT_EQ(ran.requests[1].scheduled, 2000);
  EXPECT_EQ(ran.requests[1].first_token, 3000);
  EXPECT_EQ(ran.requests[1].last_token, 4000);
  EXPECT_EQ(ran.requests[0].last_token, 5000);
  EXPECT_EQ(ran.stats.mixed_steps, 1);
}

TEST(Replica, one_that_comes_exactly_at_a_boundary_is_in_the_step_that_begins_there) {
  for (const std::int64_t at : {1000, 2000, 3000, 4000, 5000, 9000}) {
    const Ran ran = run_both(one_replica(), {request(0, 0, 10, 10), request(1, at, 10, 2)});
    EXPECT_EQ(ran.requests[1].scheduled, at);
    EXPECT_EQ(ran.requests[1].first_token, at + 1000);
    EXPECT_EQ(ran.requests[0].last_token, 10000);
  }
}

// Prompts of 4 and 8 tokens, chunks of 8 in all: the first pass has eight tokens.
TEST(Replica, chunks_fill_the_token_budget) {
  Cluster::Setup setup = one_replica();
  rules(setup).max_batch_tokens = 8;
  const Ran ran = run_both(setup, {request(0, 0, 4, 3), request(1, 0, 8, 3)});
  EXPECT_EQ(ran.stats.traces[0].prefill_tokens, 8);
  EXPECT_EQ(ran.stats.traces[1].prefill_tokens, 4);
  EXPECT_EQ(ran.requests[0].first_token, 1000);
  EXPECT_EQ(ran.requests[1].first_token, 2000);
}

TEST(Replica, decodes_have_their_place_in_the_budget_before_prompts) {
  Cluster::Setup setup = one_replica();
  rules(setup).max_batch_tokens = 8;
  rules(setup).max_sequences = 8;
  const Ran ran =
      run_both(setup, {request(0, 0, 4, 20), request(1, 0, 4, 20), request(2, 1, 30, 2)});
  for (std::size_t s = 1; s <= 5; ++s) EXPECT_EQ(ran.stats.traces[s].prefill_tokens, 6) << s;
}

TEST(Replica, a_prompt_that_may_not_be_split_waits_for_a_step_with_room_for_it) {
  Cluster::Setup setup = one_replica();
  rules(setup).chunked_prefill = false;
  rules(setup).max_batch_tokens = 100;
  const Ran ran =
      run_both(setup, {request(0, 0, 60, 2), request(1, 0, 60, 2), request(2, 0, 300, 2)});
  EXPECT_EQ(ran.requests[0].scheduled, 0);
  EXPECT_EQ(ran.requests[1].scheduled, 1000);
  EXPECT_EQ(ran.requests[2].scheduled, 2000);  // longer than the budget: a step of its own
  EXPECT_EQ(ran.stats.traces[2].prefill_tokens, 300);
}

TEST(Replica, sglang_runs_prompts_first_and_alone) {
  Cluster::Setup setup = one_replica();
  as_sglang(rules(setup));
  const Ran ran = run_both(setup, {request(0, 0, 10, 4), request(1, 1500, 10, 2)});
  EXPECT_EQ(ran.requests[1].scheduled, 2000);
  EXPECT_EQ(ran.requests[1].first_token, 3000);
  EXPECT_EQ(ran.requests[0].last_token, 5000);  // one step later than undisturbed
  EXPECT_EQ(ran.stats.mixed_steps, 0);
  EXPECT_EQ(ran.stats.itl.max(), 2000);
}

TEST(Replica, no_more_run_at_once_than_there_are_slots) {
  Cluster::Setup setup = one_replica();
  rules(setup).max_sequences = 2;
  Requests list;
  for (std::uint32_t i = 0; i < 6; ++i) list.push_back(request(i, 0, 4, 5));
  const Ran ran = run_both(setup, list);
  for (std::size_t i = 0; i < 6; ++i)
    EXPECT_EQ(ran.requests[i].scheduled, static_cast<std::int64_t>(i / 2) * 5000) << i;
}

// Ten blocks: the first holds six, the second needs eight. Its first chunk of 64 tokens would
// fit the four that are free.
TEST(Replica, the_whole_prompt_must_fit_before_admission) {
  Cluster::Setup setup = one_replica();
  rules(setup).blocks = 10;
  const Ran ran = run_both(setup, {request(0, 0, 90, 6), request(1, 0, 128, 2)});
  EXPECT_EQ(ran.requests[0].preemptions, 0);
  EXPECT_GE(ran.requests[1].scheduled, ran.requests[0].last_token);
  EXPECT_EQ(ran.stats.preemptions, 0);
}

TEST(Replica, with_room_reserved_for_the_longest_output_nobody_is_preempted) {
  Cluster::Setup setup = one_replica();
  rules(setup).blocks = 10;
  rules(setup).reserve_output = true;
  const Ran ran =
      run_both(setup, {request(0, 0, 16, 64), request(1, 0, 16, 64), request(2, 0, 16, 64)});
  EXPECT_EQ(ran.stats.preemptions, 0);
  EXPECT_EQ(ran.requests[1].scheduled, 0);
  EXPECT_EQ(ran.requests[2].scheduled, ran.requests[0].last_token);
}

// Four tokens per block, nine blocks, three sequences: at twelve tokens out each wants a fourth.
TEST(Replica, the_latest_admitted_is_preempted_and_comes_back_first) {
  Cluster::Setup setup = one_replica();
  rules(setup).block_tokens = 4;
  rules(setup).blocks = 9;
  rules(setup).max_sequences = 3;
  const Ran ran = run_both(setup, {request(0, 0, 4, 20), request(1, 0, 4, 20), request(2, 0, 4, 20),
                                   request(3, 0, 4, 2)});
  EXPECT_EQ(ran.requests[0].preemptions, 0);
  // The third at the fourth block, the second at the fifth, the third again beside the second.
  EXPECT_EQ(ran.requests[1].preemptions, 1);
  EXPECT_EQ(ran.requests[2].preemptions, 2);
  EXPECT_EQ(ran.requests[3].preemptions, 0);
  // The fourth would have fitted, but not before the one that was there.
  EXPECT_GE(ran.requests[3].scheduled, ran.requests[0].last_token);
  for (const End end : ran.ends) EXPECT_EQ(end, End::completed);
  // What was out stays out: 20 tokens each, and a prompt of isl and output computed again.
  EXPECT_EQ(ran.stats.output_tokens, 62);
  EXPECT_GT(ran.stats.prefill_tokens, 16);
}

TEST(Replica, one_that_outgrows_the_cache_alone_is_given_up_and_the_next_goes_on) {
  for (const bool sglang : {false, true}) {
    SCOPED_TRACE(sglang);
    Cluster::Setup setup = one_replica();
    if (sglang) as_sglang(rules(setup));
    rules(setup).block_tokens = 4;
    rules(setup).blocks = 4;
    const Ran ran = run_both(setup, {request(0, 0, 4, 100), request(1, 0, 12, 2)});
    EXPECT_EQ(ran.ends[0], End::shed);
    EXPECT_EQ(ran.reasons[0], "output outgrew the KV cache of a rank");
    EXPECT_EQ(ran.ends[1], End::completed);
  }
}

TEST(Replica, what_no_rank_can_hold_is_shed_at_once_with_the_reason) {
  Cluster::Setup setup = one_replica();
  rules(setup).blocks = 4;
  const Ran ran = run_both(setup, {request(0, 0, 100, 2), request(1, 0, 40, 2)});
  EXPECT_EQ(ran.ends[0], End::shed);
  EXPECT_EQ(ran.reasons[0], "larger than the KV cache of a rank");
  EXPECT_EQ(ran.requests[0].scheduled, never);
  EXPECT_EQ(ran.ends[1], End::completed);
}

TEST(Replica, a_prefix_is_computed_once_and_at_least_one_token_always) {
  Cluster::Setup setup = one_replica();
  const Ran ran = run_both(
      setup, {named(request(0, 0, 64, 2), 16, 9, 4), named(request(1, 10'000, 80, 2), 16, 9, 4),
              named(request(2, 20'000, 64, 2), 16, 9, 4)});
  EXPECT_EQ(ran.requests[0].reused, 0);
  EXPECT_EQ(ran.requests[1].reused, 64);
  EXPECT_EQ(ran.requests[2].reused, 48);  // all four are there; the last block is computed
  EXPECT_EQ(ran.stats.prefill_tokens, 64 + 16 + 16);
  EXPECT_EQ(ran.stats.reused_tokens, 112);
  rules(setup).prefix_caching = false;
  EXPECT_EQ(run_both(setup, {named(request(0, 0, 64, 2), 16, 9, 4),
                             named(request(1, 10'000, 80, 2), 16, 9, 4)})
                .stats.reused_tokens,
            0);
}

TEST(Replica, what_a_tier_has_comes_up_before_the_prompt_is_computed) {
  Cluster::Setup setup = one_replica();
  rules(setup).blocks = 6;
  setup.pools[0].pool.tiers.host = 100 * setup.pools[0].block_bytes;
  setup.pools[0].pool.tiers.host_bandwidth = 16 * unit::GBps;  // 1 us a block
  setup.pools[0].pool.tiers.host_latency = 5 * unit::us;
  const Ran ran = run_both(setup, {named(request(0, 0, 64, 2), 16, 1, 4),
                                   named(request(1, 10'000, 64, 2), 16, 2, 4),  // pushes it out
                                   named(request(2, 20'000, 80, 2), 16, 1, 4)});
  EXPECT_EQ(ran.requests[2].reused, 64);
  const std::int64_t loaded = ran.stats.reused_lower / 16;
  EXPECT_GT(loaded, 0);
  EXPECT_EQ(ran.requests[2].first_token, 20'000 + 5'000 + 1'000 * loaded + 1'000);
}

// Three guesses, all right: four tokens a step.
TEST(Replica, accepted_guesses_are_tokens_of_the_same_step) {
  Cluster::Setup setup = one_replica();
  rules(setup).speculation = {3, {1, 1, 1}};
  const Ran ran = run_both(setup, {request(0, 0, 10, 9)});
  EXPECT_EQ(ran.requests[0].first_token, 1000);
  EXPECT_EQ(ran.requests[0].last_token, 3000);
  EXPECT_EQ(ran.stats.decode_steps, 2);
  EXPECT_EQ(ran.stats.output_tokens, 9);
  EXPECT_EQ(ran.stats.itl.count(), 8);
  EXPECT_EQ(ran.stats.chunk.count(), 2);
}

TEST(Replica, the_acceptance_length_is_tokens_over_verification_steps) {
  Cluster::Setup setup = one_replica();
  rules(setup).speculation = {2, {0.8, 0.5}};
  Requests list;
  for (std::uint32_t i = 0; i < 200; ++i) list.push_back(request(i, 0, 4, 301));
  const Ran ran = run_both(setup, list);
  const double length = 200.0 * 300 / static_cast<double>(ran.stats.decode_sequences);
  EXPECT_NEAR(length, 1 + 0.8 + 0.4, 0.02);
}

TEST(Replica, ranks_of_attention_dp_step_together_and_drain_unevenly) {
  Cluster::Setup setup = one_replica();
  setup.pools[0].pool.parallelism = {.tp = 1, .pp = 2, .dp = 4, .ep = 1};
  rules(setup).max_sequences = 2;
  fixtures::place_in_order(setup);
  Requests list;
  for (std::uint32_t i = 0; i < 41; ++i)
    list.push_back(request(i, i * 700, 1 + (i * 37) % 90, 1 + (i * i) % 50));
  const Ran ran = run_both(setup, list);
  for (const End end : ran.ends) EXPECT_EQ(end, End::completed);
}

TEST(Replica, an_engine_gives_its_rules_and_the_pool_overrides_them) {
  catalog::Engine engine;
  engine.batching = catalog::Batching::sglang;
  engine.max_sequences = 500;
  engine.max_batch_tokens = 90;
  Pool pool;
  pool.speculation = {2, {0.5, 0.5}};
  EXPECT_EQ(rules_of(engine, pool).max_sequences, 30);  // three tokens each
  EXPECT_FALSE(rules_of(engine, pool).mixed);
  pool.max_sequences = 7;
  pool.block_tokens = 48;
  EXPECT_EQ(rules_of(engine, pool).max_sequences, 7);
  EXPECT_EQ(rules_of(engine, pool).block_tokens, 48);
}

}  // namespace
}  // namespace racktwin::serve
