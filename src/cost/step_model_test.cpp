#include "cost/step_model.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/rng.hpp"
#include "cost/fixtures.hpp"

namespace racktwin::cost {
namespace {

using namespace fixtures;
using namespace unit;

std::vector<StepModelSpec> specs() {
  std::vector<StepModelSpec> list = {
      on_h200(llama_8b()),
      on_h200(llama_8b(), {.tp = 2, .pp = 4}),
      on_h200(llama_70b(), {.tp = 8}),
      on_h200(llama_70b(), {.tp = 16}),
      on_h200(qwen3_235b_fp8(), {.tp = 8, .ep = 8}),
      on_h200(deepseek_r1(Format::fp8), {.dp = 32, .ep = 32}),
      on_gb300(deepseek_r1(), {.dp = 8, .ep = 8}),
      on_gb300(deepseek_r1(), {.tp = 2, .pp = 2, .dp = 4, .ep = 4}),
      on_gb300(deepseek_r1(), {.dp = 4, .ep = 1}),
      on_gb300(deepseek_v32(), {.dp = 4, .ep = 4}),
      on_gb300(gpt_oss_120b(), {.tp = 2}),
      on_gb300(qwen3_next(), {.tp = 2, .ep = 2}),
      on_gb300(mamba_hybrid(), {.tp = 4}),
  };
  list.push_back(on_gb300(deepseek_r1(), {.dp = 8, .ep = 8}));
  list.back().draft_tokens = 3;
  list.push_back(on_h200(llama_8b()));
  list.back().engine.overlap_scheduling = false;
  list.back().engine.graph_sizes.clear();
  return list;
}

// Work that an engine could have: pairs and contexts that belong to the tokens.
RankWork random_work(Rng& rng, int drafts) {
  RankWork work;
  if (rng.below(3) > 0)
    work = prompt(1 + static_cast<std::int64_t>(rng.below(4096)),
                  static_cast<std::int64_t>(rng.below(8192)),
                  1 + static_cast<std::int64_t>(rng.below(3)));
  if (rng.below(4) > 0)
    work = both(work, decode(1 + static_cast<std::int64_t>(rng.below(700)),
                             1 + static_cast<std::int64_t>(rng.below(16384)), drafts));
  return work;
}

std::vector<RankWork> random_ranks(Rng& rng, const StepModelSpec& spec) {
  std::vector<RankWork> ranks;
  for (int i = 0; i < spec.parallelism.dp; ++i)
    ranks.push_back(random_work(rng, spec.draft_tokens));
  if (ranks[0] == RankWork{}) ranks[0] = prompt(1);
  return ranks;
}

double total(const StepModel& model, const std::vector<RankWork>& ranks) {
  return model.cost(ranks).total().in(sec);
}

using Field = std::int64_t RankWork::*;
constexpr Field fields[] = {&RankWork::prefill_tokens,   &RankWork::prefill_sequences,
                            &RankWork::prefill_pairs,    &RankWork::prefill_pairs_windowed,
                            &RankWork::decode_sequences, &RankWork::decode_tokens,
                            &RankWork::decode_context,   &RankWork::decode_context_windowed};

TEST(StepModel, the_operators_of_a_step_add_up_to_its_time) {
  Rng rng(1, "sum");
  for (const StepModelSpec& spec : specs()) {
    const auto model = speed_of_light(spec);
    for (int i = 0; i < 40; ++i) {
      const std::vector<RankWork> ranks = random_ranks(rng, spec);
      Seconds sum;
      for (const OperatorCost& row : model->explain(ranks)) sum += row.total;
      const StepCost cost = model->cost(ranks);
      ASSERT_GT(cost.total().in(sec), 0) << spec.model.name;
      ASSERT_NEAR(sum / cost.total(), 1, 1e-9) << spec.model.name;
      for (const Seconds part : {cost.compute, cost.memory, cost.communication, cost.overhead})
        ASSERT_GE(part.in(sec), 0);
    }
  }
}

TEST(StepModel, a_step_never_takes_less_time_when_any_field_of_any_rank_grows) {
  Rng rng(2, "monotone");
  for (const StepModelSpec& spec : specs()) {
    const auto model = speed_of_light(spec);
    for (int i = 0; i < 150; ++i) {
      std::vector<RankWork> ranks = random_ranks(rng, spec);
      const double before = total(*model, ranks);
      const Field field = fields[rng.below(std::size(fields))];
      RankWork& rank = ranks[rng.below(ranks.size())];
      rank.*field += 1 + static_cast<std::int64_t>(rng.below(rng.below(2) == 0 ? 3 : 2000));
      ASSERT_GE(total(*model, ranks), before * (1 - 1e-12))
          << spec.model.name << " tp " << spec.parallelism.tp << " case " << i;
    }
  }
}

TEST(StepModel, one_token_more_at_every_size_never_takes_less_time) {
  for (const StepModelSpec& spec : specs()) {
    const auto model = speed_of_light(spec);
    std::vector<RankWork> ranks(static_cast<std::size_t>(spec.parallelism.dp));
    double before = 0;
    for (std::int64_t n = 1; n < 1500; ++n) {
      for (RankWork& rank : ranks) rank = both(decode(n / 2, 1000, spec.draft_tokens), prompt(n));
      const double now = total(*model, ranks);
      ASSERT_GE(now, before) << spec.model.name << " at " << n;
      before = now;
    }
  }
}

// A3: prefill and decode share one pass over the weights.
TEST(StepModel, a_mixed_step_takes_at_least_its_larger_part_and_at_most_the_sum_of_both) {
  for (const StepModelSpec& spec : specs()) {
    const auto model = speed_of_light(spec);
    const auto dp = static_cast<std::size_t>(spec.parallelism.dp);
    for (const std::int64_t isl : {512, 1024, 2048, 4096}) {
      for (const std::int64_t batch : {4, 8, 16}) {
        const RankWork context = prompt(isl), generation = decode(batch, isl, spec.draft_tokens);
        const double a = total(*model, std::vector<RankWork>(dp, context));
        const double b = total(*model, std::vector<RankWork>(dp, generation));
        const double mixed = total(*model, std::vector<RankWork>(dp, both(context, generation)));
        EXPECT_LE(mixed, a + b) << spec.model.name << " isl " << isl << " batch " << batch;
        EXPECT_GE(mixed, std::max(a, b)) << spec.model.name << " isl " << isl;
      }
    }
  }
  // The reported case: the decode part of a mixed step must not cost a pass of its own.
  const auto model = speed_of_light(on_h200(llama_8b()));
  const double alone = total(*model, {prompt(4096)});
  EXPECT_LT(total(*model, {both(prompt(4096), decode(4, 4096))}), 1.03 * alone);
}

TEST(StepModel, twice_every_bandwidth_and_peak_halves_every_speed_of_light) {
  Rng rng(3, "halve");
  for (const StepModelSpec& spec : specs()) {
    StepModelSpec fast = spec;
    for (auto& [format, peak] : fast.gpu.peak_dense) peak = 2 * peak;
    fast.gpu.hbm_bandwidth = 2 * fast.gpu.hbm_bandwidth;
    fast.gpu.nvlink_bandwidth = 2 * fast.gpu.nvlink_bandwidth;
    fast.system.nic_bandwidth = 2 * fast.system.nic_bandwidth;
    const std::vector<RankWork> ranks = random_ranks(rng, spec);
    const auto slow_rows = speed_of_light(spec)->explain(ranks);
    const auto fast_rows = speed_of_light(fast)->explain(ranks);
    ASSERT_EQ(slow_rows.size(), fast_rows.size());
    for (std::size_t i = 0; i < slow_rows.size(); ++i) {
      const double slow = slow_rows[i].speed_of_light.in(us);
      EXPECT_NEAR(fast_rows[i].speed_of_light.in(us), slow / 2, slow * 1e-12)
          << slow_rows[i].op.name;
    }
  }
}

TEST(StepModel, relabelling_the_ranks_changes_nothing) {
  Rng rng(4, "relabel");
  for (const StepModelSpec& spec : specs()) {
    const auto model = speed_of_light(spec);
    for (int i = 0; i < 30; ++i) {
      std::vector<RankWork> ranks = random_ranks(rng, spec);
      const StepCost before = model->cost(ranks);
      for (std::size_t k = ranks.size(); k > 1; --k) std::swap(ranks[k - 1], ranks[rng.below(k)]);
      const StepCost after = model->cost(ranks);
      EXPECT_EQ(before.total().in(sec), after.total().in(sec));
      EXPECT_EQ(before.compute.in(sec), after.compute.in(sec));
      EXPECT_EQ(before.communication.in(sec), after.communication.in(sec));
    }
  }
}

TEST(StepModel, a_cost_does_not_depend_on_what_was_asked_before) {
  Rng rng(5, "pure");
  for (const StepModelSpec& spec : specs()) {
    const auto used = speed_of_light(spec);
    for (int i = 0; i < 20; ++i) {
      const std::vector<RankWork> ranks = random_ranks(rng, spec);
      const auto fresh = speed_of_light(spec);
      EXPECT_EQ(used->cost(ranks).total().in(sec), fresh->cost(ranks).total().in(sec));
      EXPECT_EQ(used->cost(ranks).total().in(sec), fresh->cost(ranks).total().in(sec));
    }
  }
}

TEST(StepModel, the_slowest_rank_sets_the_step_and_an_idle_one_costs_nothing) {
  const auto model = speed_of_light(on_gb300(deepseek_r1(), {.dp = 8, .ep = 8}));
  std::vector<RankWork> ranks(8, decode(64, 1000));
  const double even = total(*model, ranks);
  ranks[5] = decode(64, 30000);
  const double skewed = total(*model, ranks);
  std::vector<RankWork> all(8, decode(64, 30000));
  EXPECT_GT(skewed, even);
  EXPECT_DOUBLE_EQ(skewed, total(*model, all));  // same tokens, and the slowest is as slow
  std::vector<RankWork> lone(8);
  lone[2] = decode(64, 1000);
  EXPECT_LT(total(*model, lone), even);
  EXPECT_GT(total(*model, lone), 0);
}

// A14: step time must follow the tokens, and the gap between steps must be there.
TEST(StepModel, a_long_prompt_takes_longer_than_a_token_and_no_step_is_without_overhead) {
  const auto model = speed_of_light(on_h200(llama_8b()));
  EXPECT_GT(total(*model, {prompt(2048)}), 5 * total(*model, {prompt(1)}));
  EXPECT_GE(model->explain(std::vector{prompt(2048)}).back().total.in(us), 20 - 1e-9);
}

TEST(StepModel, host_work_shows_when_the_gpu_is_faster_or_scheduling_is_not_overlapped) {
  StepModelSpec spec = on_h200(llama_8b());
  const auto hidden = speed_of_light(spec);
  spec.engine.overlap_scheduling = false;
  const auto serial = speed_of_light(spec);
  const std::vector<RankWork> ranks = {decode(64, 1000)};
  const double host = 450e-6 + 64 * 3e-6;
  EXPECT_NEAR(total(*serial, ranks) - total(*hidden, ranks), host, 1e-12);
  spec.engine.overlap_scheduling = true;
  spec.engine.step_overhead = 1 * sec;
  EXPECT_NEAR(total(*speed_of_light(spec), ranks), 1 + 64 * 3e-6 + 20e-6, 1e-12);
}

TEST(StepModel, without_cuda_graphs_a_small_step_is_bound_by_launches) {
  StepModelSpec spec = on_h200(llama_8b());
  spec.calibration.eager_launch = 100 * us;
  const double with = total(*speed_of_light(spec), {decode(1, 100)});
  spec.engine.graph_sizes.clear();
  const double without = total(*speed_of_light(spec), {decode(1, 100)});
  // 32 layers of a dozen kernels each.
  EXPECT_GT(without, 32 * 10 * 100e-6);
  EXPECT_LT(with, 0.01);
}

TEST(StepModel, decode_batches_are_padded_to_the_next_graph) {
  const auto model = speed_of_light(on_h200(llama_8b()));
  const auto rows_of = [&](std::int64_t batch) {
    for (const OperatorCost& row : model->explain(std::vector{decode(batch, 100)}))
      if (row.op.name == "qkv_proj") return row.op.rows;
    return std::int64_t{0};
  };
  EXPECT_EQ(rows_of(64), 64);
  EXPECT_EQ(rows_of(65), 128);
  EXPECT_EQ(rows_of(513), 513);  // beyond the largest
  // In a mixed step the prompt fills the padding.
  const auto mixed = model->explain(std::vector{both(decode(65, 100), prompt(20))});
  const auto qkv = std::find_if(mixed.begin(), mixed.end(),
                                [](const OperatorCost& row) { return row.op.name == "qkv_proj"; });
  EXPECT_EQ(qkv->op.rows, 128);
}

TEST(StepModel, draft_tokens_cost_passes_of_the_mtp_module_and_rows_to_verify) {
  StepModelSpec spec = on_gb300(deepseek_r1(), {.dp = 8, .ep = 8});
  const std::vector<RankWork> plain(8, decode(32, 4000)), drafted(8, decode(32, 4000, 2));
  const double without = total(*speed_of_light(spec), plain);
  const double verify = total(*speed_of_light(spec), drafted);
  spec.draft_tokens = 2;
  const double with = total(*speed_of_light(spec), drafted);
  EXPECT_GT(verify, without);
  EXPECT_GT(with, verify);
  EXPECT_LT(with, 1.6 * without);  // far below the three steps that it may replace
}

TEST(StepModel, pipeline_stages_add_hops_for_one_token_and_keep_a_full_batch_flowing) {
  StepModelSpec spec = on_h200(llama_70b(), {.tp = 4});
  const auto one_stage = speed_of_light(spec);
  spec.parallelism.pp = 2;
  const auto two_stages = speed_of_light(spec);
  EXPECT_GT(total(*two_stages, {decode(1, 100)}), total(*one_stage, {decode(1, 100)}));
  // Twice the GPUs on a long prompt: nearly half the time.
  const double ratio = total(*two_stages, {prompt(8192)}) / total(*one_stage, {prompt(8192)});
  EXPECT_GT(ratio, 0.5);
  EXPECT_LT(ratio, 0.55);
}

TEST(StepModel, a_full_step_has_flops_of_operators_and_shares_that_sum_to_one) {
  for (const StepModelSpec& spec : specs()) {
    const std::vector<RankWork> ranks(static_cast<std::size_t>(spec.parallelism.dp),
                                      both(prompt(600), decode(40, 2000, spec.draft_tokens)));
    double sum = 0;
    for (const double share : origin_shares(*speed_of_light(spec), ranks)) sum += share;
    EXPECT_NEAR(sum, 1, 1e-12);
  }
}

// A10: what explain() prices is what operators() counts.
TEST(StepModel, explains_the_same_operators_that_operators_counts) {
  for (const StepModelSpec& spec : specs()) {
    if (spec.draft_tokens > 0) continue;
    const RankWork work = both(prompt(600), decode(40, 2000));
    const auto dp = static_cast<std::size_t>(spec.parallelism.dp);
    const auto rows = speed_of_light(spec)->explain(std::vector<RankWork>(dp, work));
    const auto list = operators(spec.model, spec.parallelism, work, 640 * spec.parallelism.dp,
                                spec.calibration.expert_skew);
    ASSERT_EQ(rows.size(), list.size() + 1) << spec.model.name;
    StepModelSpec bare = spec;
    bare.engine.graph_sizes.clear();
    const auto unpadded = speed_of_light(bare)->explain(std::vector<RankWork>(dp, work));
    for (std::size_t i = 0; i < list.size(); ++i) {
      EXPECT_EQ(unpadded[i].op.name, list[i].name);
      EXPECT_EQ(unpadded[i].op.flops.in(flop), list[i].flops.in(flop)) << list[i].name;
      EXPECT_EQ(unpadded[i].op.weights.in(byte), list[i].weights.in(byte)) << list[i].name;
      EXPECT_EQ(unpadded[i].op.traffic.in(byte), list[i].traffic.in(byte)) << list[i].name;
    }
  }
}

Seconds collective(const StepModelSpec& spec, std::string_view name) {
  const auto dp = static_cast<std::size_t>(spec.parallelism.dp);
  for (const OperatorCost& row :
       speed_of_light(spec)->explain(std::vector<RankWork>(dp, prompt(4096))))
    if (row.op.name == name) return row.speed_of_light;
  return {};
}

// A25, A26: on injection bandwidth, 2 (n - 1) / n * S / B, whatever the algorithm.
TEST(Collectives, an_all_reduce_inside_a_domain_is_bound_by_what_a_gpu_can_inject) {
  const double bytes = 4096.0 * 8192 * 2;
  EXPECT_NEAR(collective(on_h200(llama_70b(), {.tp = 8}), "attention_all_reduce").in(sec),
              2 * 7 / 8.0 * bytes / 450e9, 1e-12);
  EXPECT_NEAR(collective(on_gb300(llama_70b(), {.tp = 64}), "attention_all_reduce").in(sec),
              2 * 63 / 64.0 * bytes / 900e9, 1e-12);
}

TEST(Collectives, beyond_the_domain_every_nic_carries_its_share_of_the_inner_result) {
  // 16 ranks on two nodes of 8: 2 (2 - 1) / 2 / 8 of the bytes cross each NIC at 50 GB/s.
  const double bytes = 4096.0 * 8192 * 2;
  const double nvlink = 2 * 7 / 8.0 * bytes / 450e9, nic = bytes / 8 / 50e9;
  EXPECT_NEAR(collective(on_h200(llama_70b(), {.tp = 16}), "attention_all_reduce").in(sec),
              std::max(nvlink, nic), 1e-12);
}

TEST(Collectives, wide_expert_parallelism_beyond_the_domain_is_bound_by_the_nics) {
  const StepModelSpec inside = on_h200(deepseek_r1(Format::fp8), {.dp = 8, .ep = 8});
  const StepModelSpec across = on_h200(deepseek_r1(Format::fp8), {.dp = 32, .ep = 32});
  // A token meets 4 * (1 - C(192,8)/C(256,8)) = 3.62 of 4 nodes; three quarters of them are others.
  const double crossings =
      4 *
      (1 - std::exp(std::lgamma(193) - std::lgamma(185) - std::lgamma(257) + std::lgamma(249))) *
      3 / 4;
  EXPECT_NEAR(collective(across, "combine").in(sec), 4096.0 * 7168 * 2 * crossings / 50e9 * 1.2,
              2e-5);
  EXPECT_GT(collective(across, "combine"), 3 * collective(inside, "combine"));
}

}  // namespace
}  // namespace racktwin::cost
