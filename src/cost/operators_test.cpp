#include "cost/operators.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "cost/fixtures.hpp"
#include "cost/walk.hpp"

namespace racktwin::cost {
namespace {

using namespace fixtures;
using namespace unit;

const Operator& named(const std::vector<Operator>& list, std::string_view name, int skip = 0) {
  for (const Operator& op : list)
    if (op.name == name && skip-- == 0) return op;
  ADD_FAILURE() << "no operator " << name;
  return list.front();
}

bool is_gemm(const Operator& op) {
  return op.kind == OperatorKind::gemm || op.kind == OperatorKind::expert_gemm;
}

// Every GEMM comes from the list that parameters are counted from.
TEST(Operators, gemm_flops_are_two_per_active_parameter_that_multiplies_and_token) {
  for (const Model& model : models()) {
    std::int64_t multiplying = 0;
    for (const auto& group : model.layers)
      for (const auto& m : catalog::matrices(model, group))
        multiplying += group.count * m.in * m.out * m.active;
    multiplying += model.vocabulary * model.hidden;
    const std::int64_t tokens = 50;
    double flops = 0;
    for (const Operator& op : operators(model, {}, decode(tokens, 1000), tokens, 1))
      if (is_gemm(op)) flops += op.count * op.flops.in(flop);
    const double expected = 2.0 * static_cast<double>(multiplying * tokens);
    EXPECT_NEAR(flops / expected, 1, 1e-9) << model.name;
    // And so, with the looked-up embedding, within norms and biases of the active count.
    if (!model.tied_embeddings) multiplying += model.vocabulary * model.hidden;
    const double active = static_cast<double>(catalog::parameters(model).active);
    EXPECT_NEAR(static_cast<double>(multiplying) / active, 1, 0.005) << model.name;
  }
}

TEST(Operators, logits_are_wanted_of_decode_tokens_and_of_one_token_per_prompt) {
  const auto list = operators(llama_8b(), {}, both(prompt(1000, 0, 3), decode(20, 100)), 3020, 1);
  EXPECT_EQ(named(list, "lm_head").rows, 23);
  EXPECT_EQ(named(list, "qkv_proj").rows, 3020);
}

TEST(Operators, a_mixed_step_is_one_gemm_pass_and_two_attention_passes) {
  const auto list = operators(llama_8b(), {}, both(prompt(1000), decode(20, 100)), 1020, 1);
  int qkv = 0, prefill = 0, generation = 0;
  for (const Operator& op : list) {
    qkv += op.name == "qkv_proj";
    prefill += op.kind == OperatorKind::attention_prefill;
    generation += op.kind == OperatorKind::attention_decode;
  }
  EXPECT_EQ(qkv, 1);
  EXPECT_EQ(prefill, 1);
  EXPECT_EQ(generation, 1);
  // 4 flops per pair, head and dimension; 32 layers of 32 heads of 128.
  EXPECT_DOUBLE_EQ(named(list, "attention_prefill").flops.in(flop), 4.0 * 32 * 128 * 500500);
  EXPECT_DOUBLE_EQ(named(list, "attention_decode").kv.in(byte), 2.0 * 8 * 128 * 2 * 20 * 100);
}

// AIConfigurator's speed of light for MLA decode: 2 * 1,088 flops per head and token, 576 bytes.
TEST(Operators, mla_decodes_on_the_latent_and_prefills_on_heads) {
  const auto list = operators(deepseek_r1(), {.dp = 8, .ep = 8},
                              both(prompt(100), decode(64, 16384)), 164 * 8, 1);
  const Operator& generation = named(list, "attention_decode");
  EXPECT_DOUBLE_EQ(generation.flops.in(flop), 64.0 * 16384 * 2 * 1088 * 128);
  EXPECT_DOUBLE_EQ(generation.kv.in(byte), 64.0 * 16384 * 576);
  EXPECT_EQ(generation.format, Format::fp8);
  EXPECT_DOUBLE_EQ(named(list, "attention_prefill").flops.in(flop), 5050.0 * 2 * (192 + 128) * 128);
}

TEST(Operators, tensor_parallel_ranks_hold_all_of_an_mla_latent_and_at_least_one_kv_head) {
  EXPECT_EQ(footprint(deepseek_r1(), {.tp = 8, .ep = 8}, 1, 0).kv_per_token, 61.0 * 576);
  const double whole = 32.0 * 2 * 8 * 128 * 2;
  EXPECT_EQ(footprint(llama_8b(), {}, 1, 0).kv_per_token, whole);
  EXPECT_EQ(footprint(llama_8b(), {.tp = 8}, 1, 0).kv_per_token, whole / 8);
  EXPECT_EQ(footprint(llama_8b(), {.tp = 16}, 1, 0).kv_per_token, whole / 8);
  // And the weights that make that head: 16 ranks hold 8 heads twice.
  const double queries = 4096.0 * 4096 * 2 / 16, kv = 4096.0 * 2 * 128 * 2;
  const auto list = operators(llama_8b(), {.tp = 16}, decode(1, 1), 1, 1);
  EXPECT_DOUBLE_EQ(named(list, "qkv_proj").weights.in(byte), queries + kv);
}

// A16: all experts are resident, those that some token chose are read.
TEST(Operators, experts_read_grow_with_the_batch_and_saturate_at_those_resident) {
  const Model model = deepseek_r1();
  const Parallelism shape{.dp = 8, .ep = 8};
  const double expert = 7168.0 * 4096 * 4.5 / 8;
  double before = 0;
  for (const std::int64_t tokens : {1, 2, 8, 32, 128, 512, 4096}) {
    const auto list = operators(model, shape, decode(tokens, 1), 8 * tokens, 1);
    const double read = named(list, "expert_gate_up_proj").weights.in(byte) / expert;
    const double chance = 8.0 / 256;
    EXPECT_NEAR(read, 32 * (1 - std::pow(1 - chance, 8 * tokens)), 1e-9 * read);
    EXPECT_GE(read, before);
    EXPECT_LE(read, 32);
    before = read;
  }
  EXPECT_NEAR(before, 32, 1e-3);
  const auto one = operators(model, {}, decode(1, 1), 1, 1);
  EXPECT_NEAR(named(one, "expert_gate_up_proj").weights.in(byte) / expert, 8, 1e-9);
}

TEST(Operators, the_busiest_expert_rank_takes_the_skew_but_never_more_than_every_choice) {
  const Model model = deepseek_r1();
  const auto rows = [&](Parallelism shape, double skew) {
    const auto list = operators(model, shape, decode(100, 1), 100 * shape.dp, skew);
    return named(list, "expert_down_proj").flops.in(flop);
  };
  EXPECT_NEAR(rows({.dp = 8, .ep = 8}, 1.5) / rows({.dp = 8, .ep = 8}, 1), 1.5, 1e-12);
  EXPECT_DOUBLE_EQ(rows({.tp = 8, .ep = 1}, 3), rows({.tp = 8, .ep = 1}, 1));
  EXPECT_NEAR(rows({.dp = 2, .ep = 2}, 5) / rows({.dp = 2, .ep = 2}, 1), 2, 1e-12);
}

// A16, A17: layer kinds and expert widths.
TEST(Operators, dense_and_expert_layers_keep_their_counts_and_widths) {
  const auto list = operators(deepseek_r1(), {}, decode(1, 1), 1, 1);
  EXPECT_EQ(named(list, "gate_up_proj").count, 3);
  EXPECT_EQ(named(list, "router").count, 58);
  EXPECT_DOUBLE_EQ(named(list, "gate_up_proj").flops.in(flop), 2.0 * 7168 * 2 * 18432);
  EXPECT_DOUBLE_EQ(named(list, "expert_gate_up_proj").flops.in(flop), 2.0 * 8 * 7168 * 2 * 2048);
}

TEST(Operators, windows_and_top_k_bound_what_a_query_sees) {
  EXPECT_EQ(attention_bound(gpt_oss_120b()), 128);
  EXPECT_EQ(attention_bound(deepseek_v32()), 2048);
  EXPECT_FALSE(attention_bound(llama_8b()).has_value());
  RankWork work = decode(10, 5000);
  work.decode_context_windowed = 10 * 128;
  const auto oss = operators(gpt_oss_120b(), {}, work, 10, 1);
  const double per_token = 2.0 * 8 * 64 * 2;
  EXPECT_DOUBLE_EQ(named(oss, "attention_decode").kv.in(byte), 50000 * per_token);
  EXPECT_DOUBLE_EQ(named(oss, "attention_decode", 1).kv.in(byte), 1280 * per_token);
  work.decode_context_windowed = 10 * 2048;
  const auto dsa = operators(deepseek_v32(), {}, work, 10, 1);
  EXPECT_DOUBLE_EQ(named(dsa, "attention_decode").kv.in(byte), 20480.0 * 576);
  EXPECT_DOUBLE_EQ(named(dsa, "indexer_decode").kv.in(byte), 50000.0 * 132);
  EXPECT_DOUBLE_EQ(named(dsa, "indexer_decode").flops.in(flop), 50000.0 * 2 * 64 * 128);
}

TEST(Operators, a_state_layer_reads_and_writes_its_state_whatever_the_context) {
  for (const Model& model : {qwen3_next(), mamba_hybrid()}) {
    const double state = catalog::state_bytes_per_sequence(model);
    for (const std::int64_t context : {10, 100000}) {
      double moved = 0;
      for (const Operator& op : operators(model, {}, decode(7, context), 7, 1))
        if (op.name == "scan_decode") moved += op.count * op.kv.in(byte);
      EXPECT_DOUBLE_EQ(moved, 7 * 2 * state) << model.name;
    }
  }
}

// Footprint and step read the same weights: what a large enough batch reads, and the embedding.
TEST(Footprint, is_what_a_step_with_every_expert_touched_reads) {
  struct Case {
    Model model;
    Parallelism shape;
  };
  for (const auto& [model, shape] :
       {Case{llama_8b(), {}}, Case{llama_70b(), {.tp = 16}}, Case{qwen3_235b_fp8(), {.tp = 4}},
        Case{deepseek_r1(), {.dp = 8, .ep = 8}}, Case{deepseek_r1(), {.tp = 4, .dp = 2, .ep = 4}},
        Case{gpt_oss_120b(), {.tp = 2, .ep = 2}}, Case{qwen3_next(), {.tp = 2}}}) {
    Bytes read;
    for (const Operator& op : operators(model, shape, decode(100000, 1), 100000 * shape.dp, 1))
      read += op.count * op.weights;
    const double table = static_cast<double>(model.vocabulary) * model.hidden * 2 / shape.tp;
    const double resident = footprint(model, shape, 1, 0).weights.in(byte);
    EXPECT_NEAR((read.in(byte) + table) / resident, 1, 1e-9) << model.name;
  }
}

TEST(Footprint, all_gpus_together_hold_every_parameter_once_and_attention_once_per_rank) {
  const Model model = llama_70b();
  const double parameters = static_cast<double>(catalog::parameters(model).total);
  EXPECT_NEAR(footprint(model, {}, 1, 0).weights.in(byte) / (2 * parameters), 1, 1e-4);
  EXPECT_NEAR(8 * footprint(model, {.tp = 8}, 1, 0).weights.in(byte) / (2 * parameters), 1, 1e-4);
  const double half = footprint(model, {.pp = 2}, 1, 0).weights.in(byte);
  EXPECT_GT(2 * half, 2 * parameters * 0.98);
  EXPECT_LT(half, 2 * parameters * 0.52);
  // A tied head lies in memory once.
  const Model tied = mamba_hybrid();
  EXPECT_NEAR(footprint(tied, {}, 1, 0).weights.in(byte) /
                  (2 * static_cast<double>(catalog::parameters(tied).total)),
              1, 1e-3);
}

TEST(Footprint, an_mtp_module_is_resident_when_it_drafts) {
  const Parallelism shape{.dp = 8, .ep = 8};
  const Footprint without = footprint(deepseek_r1(), shape, 1, 0);
  const Footprint with = footprint(deepseek_r1(), shape, 1, 1);
  double module = 0;
  const Model model = deepseek_r1();
  for (const auto& m : catalog::matrices(model, *model.mtp))
    module += matrix_bytes(m, model.mtp->attention, shape);
  EXPECT_DOUBLE_EQ((with.weights - without.weights).in(byte), module);
  EXPECT_EQ(with.kv_per_token, without.kv_per_token + 576);
}

TEST(Footprint, short_windows_are_kept_per_sequence_and_long_ones_per_token) {
  Model model = gpt_oss_120b();
  const double per_token = 2.0 * 8 * 64 * 2;
  EXPECT_EQ(footprint(model, {}, 1, 0).kv_per_token, 18 * per_token);
  EXPECT_EQ(footprint(model, {}, 1, 0).state_per_sequence.in(byte), 18 * 128 * per_token);
  model.layers[1].attention.window = 8192;
  EXPECT_EQ(footprint(model, {}, 1, 0).kv_per_token, 36 * per_token);
}

// A9, E12: the product of all dimensions that are not shared; experts share theirs.
TEST(Parallelism, gpus_are_the_product_of_all_dimensions_but_the_experts) {
  const Parallelism shape{.tp = 2, .pp = 3, .dp = 4, .ep = 8};
  EXPECT_EQ(shape.gpus(), 24);
  EXPECT_EQ(shape.expert_tp(), 1);
}

std::string refused(const Model& model, const Parallelism& shape) {
  const Result<Done> result = check(model, shape);
  return result.ok() ? "" : result.error().message;
}

TEST(Parallelism, shapes_that_cannot_be_are_refused_with_the_reason) {
  EXPECT_EQ(refused(deepseek_r1(), {.dp = 32, .ep = 32}), "");
  EXPECT_EQ(refused(llama_8b(), {.tp = 16}), "");
  EXPECT_NE(refused(llama_8b(), {.tp = 0}).find("tp = 0"), std::string::npos);
  EXPECT_NE(refused(llama_8b(), {.tp = 3}).find("does not divide the 32 attention heads"),
            std::string::npos);
  EXPECT_NE(refused(llama_8b(), {.dp = 2, .ep = 2}).find("no experts"), std::string::npos);
  EXPECT_NE(refused(deepseek_r1(), {.tp = 8, .ep = 3}).find("does not divide tp * dp = 8"),
            std::string::npos);
  EXPECT_NE(refused(gpt_oss_120b(), {.dp = 96, .ep = 96}).find("the 128 routed experts"),
            std::string::npos);
  EXPECT_NE(refused(llama_8b(), {.pp = 33}).find("33 stages"), std::string::npos);
}

TEST(Stages, hold_the_models_layers_in_its_proportions) {
  EXPECT_EQ(stage_layers(deepseek_r1(), 1), (std::vector{3, 58}));
  EXPECT_EQ(stage_layers(deepseek_r1(), 8), (std::vector{0, 8}));
  EXPECT_EQ(stage_layers(gpt_oss_120b(), 4), (std::vector{5, 4}));
  for (const Model& model : models()) {
    for (const int pp : {1, 2, 3, 4, 8}) {
      const std::vector<int> layers = stage_layers(model, pp);
      int sum = 0;
      for (const int count : layers) sum += count;
      EXPECT_EQ(sum, (model.layer_count() + pp - 1) / pp);
    }
  }
}

// Reference figures for 256 experts, 8 active (distinct ranks per token at EP 8, 16, 32, 64).
TEST(Exchange, a_token_travels_once_to_each_distinct_group_of_its_experts) {
  EXPECT_NEAR(groups_met(8, 256, 8), 5.29, 0.005);
  EXPECT_NEAR(groups_met(16, 256, 8), 6.52, 0.005);
  EXPECT_NEAR(groups_met(32, 256, 8), 7.27, 0.005);
  EXPECT_NEAR(groups_met(64, 256, 8), 7.68, 0.005);
  EXPECT_EQ(groups_met(1, 256, 8), 1);
  const auto list = operators(deepseek_r1(), {.dp = 8, .ep = 8}, decode(100, 1), 800, 1);
  const double copies = groups_met(8, 256, 8) * 7 / 8;
  EXPECT_NEAR(named(list, "combine").traffic.in(byte), 100 * 7168 * 2 * copies, 1);
  EXPECT_NEAR(named(list, "dispatch").traffic.in(byte), 100 * 7168 * 4.5 / 8 * copies, 1);
  EXPECT_EQ(named(list, "combine").ranks, 8);
}

TEST(Exchange, tensor_parallel_attention_sums_and_data_parallel_attention_exchanges) {
  const auto names = [](const Parallelism& shape) {
    std::vector<std::string> list;
    for (const Operator& op : operators(deepseek_r1(), shape, decode(8, 1), 8 * shape.dp, 1))
      if (op.kind == OperatorKind::collective) list.emplace_back(op.name);
    return list;
  };
  const auto has = [](const std::vector<std::string>& list, std::string_view name) {
    return std::find(list.begin(), list.end(), name) != list.end();
  };
  const auto tensor = names({.tp = 8, .ep = 8}), data = names({.dp = 8, .ep = 8});
  EXPECT_TRUE(has(tensor, "attention_all_reduce") && has(tensor, "ffn_all_reduce"));
  EXPECT_FALSE(has(tensor, "dispatch"));
  EXPECT_TRUE(has(data, "dispatch") && has(data, "combine"));
  EXPECT_FALSE(has(data, "attention_all_reduce"));
  EXPECT_TRUE(names({}).empty());
}

}  // namespace
}  // namespace racktwin::cost
