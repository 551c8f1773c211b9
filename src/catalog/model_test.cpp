#include "catalog/model.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/text.hpp"
#include "catalog/catalog.hpp"
#include "catalog/read.hpp"

namespace racktwin::catalog {
namespace {

const Catalog& catalog() {
  static const Catalog loaded = [] {
    auto result = Catalog::load(RACKTWIN_SOURCE_DIR "/data");
    if (!result.ok()) ADD_FAILURE() << result.error().text();
    return result.ok() ? std::move(result).value() : Catalog();
  }();
  return loaded;
}

Model model(const char* name) {
  auto found = catalog().model(name);
  EXPECT_TRUE(found.ok()) << (found.ok() ? "" : found.error().text());
  return found.ok() ? std::move(found).value() : Model();
}

// The unit of the last digit that is printed: "355e9" gives 1e9, "46702792704" gives 1.
double last_digit(std::string_view text) {
  const std::size_t e = text.find('e');
  const std::string_view digits = text.substr(0, e);
  const double power =
      e == std::string_view::npos ? 0 : parse_number(text.substr(e + 1)).value_or(0);
  const std::size_t dot = digits.find('.');
  const double decimals =
      dot == std::string_view::npos ? 0 : static_cast<double>(digits.size() - dot - 1);
  return std::pow(10, power - decimals);
}

// Publishers round or cut: a count must be within 0.5 %, or within one unit of their last digit.
void expect_published(const std::string& name, double counted, const Figure& figure) {
  const double published = parse_number(figure.value).value_or(0);
  EXPECT_LE(std::abs(counted - published),
            std::max(0.005 * published, last_digit(figure.value) * 1.0001))
      << name << " " << figure.key << ": counted " << counted << ", published " << figure.value
      << " (" << figure.source << ")";
}

TEST(Parameters, counted_equal_published_for_every_built_in_model) {
  int totals = 0, actives = 0;
  for (const std::string& name : catalog().models()) {
    const Model m = model(name.c_str());
    const PublishedCount counted = counted_as_published(m);
    for (const Figure& figure : catalog().figures(name)) {
      if (figure.key == "published.total") {
        expect_published(name, static_cast<double>(counted.total), figure);
        ++totals;
      }
      if (figure.key == "published.active") {
        expect_published(name, static_cast<double>(counted.active), figure);
        ++actives;
      }
    }
  }
  EXPECT_GE(totals, 23);
  EXPECT_GE(actives, 15);
}

// Counts of safetensors headers: to the last parameter.
TEST(Parameters, are_exact_where_the_exact_count_is_known) {
  const std::pair<const char*, std::int64_t> known[] = {
      {"llama-3.1-8b", 8030261248},     {"llama-3.1-70b", 70553706496},
      {"llama-3.1-405b", 405853388800}, {"llama-2-70b", 68976648192},
      {"mixtral-8x7b", 46702792704},    {"qwen3-8b", 8190735360},
      {"qwen3-14b", 14768307200},       {"qwen3-32b", 32762123264},
      {"qwen3-30b-a3b", 30532122624},   {"qwen3-235b-a22b", 235093634560},
      {"deepseek-r1", 671026419200},
  };
  for (const auto& [name, count] : known) EXPECT_EQ(parameters(model(name)).total, count) << name;
  // With its vision tower; the count of the published safetensors.
  const Model scout = model("llama-4-scout");
  EXPECT_EQ(parameters(scout).total + scout.other_parameters, 108641793536);
}

TEST(Parameters, the_mtp_module_of_deepseek_makes_up_the_684_billion_of_its_files) {
  const Model m = model("deepseek-v3");
  const Parameters p = parameters(m);
  // The files hold embedding and head a second time for the module: 671.0 + 11.6 + 1.85.
  const double shared = 2.0 * m.hidden * static_cast<double>(m.vocabulary);
  EXPECT_NEAR(static_cast<double>(p.total + p.mtp) + shared, 684.49e9, 0.01e9);
}

TEST(Kv, bytes_per_token_are_those_computed_by_hand) {
  struct Known {
    const char* name;
    double growing, all;
  };
  const Known known[] = {
      {"llama-3.1-8b", 32 * 8 * 128 * 2 * 2, 131072},
      {"llama-3.1-70b", 80 * 8 * 128 * 2 * 2, 327680},
      {"llama-3.1-405b", 126 * 8 * 128 * 2 * 2, 516096},
      {"llama-3.1-70b-fp8", 163840, 163840},
      {"qwen3-235b-a22b", 94 * 4 * 128 * 2 * 2, 192512},
      {"glm-4.5", 92 * 8 * 128 * 2 * 2, 376832},
      {"deepseek-r1", 61 * (512 + 64) * 2, 70272},
      {"kimi-k2", 61 * (512 + 64) * 2, 70272},
      {"deepseek-r1-nvfp4", 61 * (512 + 64), 35136},
      {"deepseek-v3.2", 61 * ((512 + 64) * 2 + 128 + 4), 78324},
      {"gpt-oss-120b", 18 * 8 * 64 * 2 * 2, 73728},
      {"llama-4-scout", 12 * 8 * 128 * 2 * 2, 196608},
  };
  for (const Known& k : known) {
    EXPECT_DOUBLE_EQ(kv_bytes_per_token(model(k.name)), k.growing) << k.name;
    EXPECT_DOUBLE_EQ(kv_bytes_per_token_within_window(model(k.name)), k.all) << k.name;
  }
}

TEST(Kv, a_layer_with_a_state_keeps_no_kv) {
  Attention a{.kind = AttentionKind::linear};
  a.state = Attention::State{
      .key_heads = 16, .key_dim = 128, .value_heads = 32, .value_dim = 128, .conv_kernel = 4};
  EXPECT_EQ(kv_bytes_per_token(a), 0);
  Model m{.hidden = 2048, .vocabulary = 1000, .layers = {{.count = 2, .attention = a}}};
  // 32 heads of 128 x 128 in FP32; three past tokens of 16 + 16 + 32 heads of 128 in BF16.
  EXPECT_EQ(state_bytes_per_sequence(m), 2 * (32 * 128 * 128 * 4 + 3 * 8192 * 2));
}

TEST(Experts, of_deepseek_are_2048_wide_and_eight_of_256_are_active) {
  const Model m = model("deepseek-r1");
  ASSERT_EQ(m.layers.size(), 2u);
  EXPECT_EQ(m.layers[0].count, 3);
  EXPECT_FALSE(m.layers[0].ffn.experts);
  const auto list = matrices(m, m.layers[1]);
  const auto expert = std::find_if(list.begin(), list.end(), [](const Matrix& matrix) {
    return matrix.name == "expert_gate_up_proj";
  });
  ASSERT_NE(expert, list.end());
  EXPECT_EQ(expert->in, 7168);
  EXPECT_EQ(expert->out, 2 * 2048);
  EXPECT_EQ(expert->copies, 256);
  EXPECT_EQ(expert->active, 8);
}

TEST(Variants, keep_the_parameters_of_their_base_and_weigh_less) {
  const auto bytes = [](const Model& m) {
    double sum = 0;
    for (const LayerGroup& group : m.layers)
      for (const Matrix& matrix : matrices(m, group))
        sum += group.count * static_cast<double>(matrix.in * matrix.out * matrix.copies) *
               numerics::bytes_per_element(matrix.format).in(unit::byte);
    return sum;
  };
  int variants = 0;
  for (const std::string& name : catalog().models()) {
    for (const char* tail : {"-nvfp4", "-fp8"}) {
      if (!name.ends_with(tail)) continue;
      const std::string base = name.substr(0, name.size() - std::string_view(tail).size());
      EXPECT_EQ(parameters(model(name.c_str())).total, parameters(model(base.c_str())).total);
      EXPECT_LT(bytes(model(name.c_str())), bytes(model(base.c_str()))) << name;
      ++variants;
    }
  }
  EXPECT_GE(variants, 14);
  const Model r1 = model("deepseek-r1-nvfp4");
  EXPECT_EQ(r1.layers[1].attention.weights, Format::bf16);
  EXPECT_EQ(r1.layers[1].attention.output_weights, Format::nvfp4);
  EXPECT_EQ(r1.layers[1].ffn.experts->weights, Format::nvfp4);
  EXPECT_EQ(r1.mtp->ffn.experts->weights, Format::bf16);
  EXPECT_EQ(r1.head, Format::bf16);
}

// Any sane shape: the matrices alone make up the parameters but for the small vectors, what a
// token meets is no more than what is there, and each matrix has both its dimensions.
RC_GTEST_PROP(Parameters, follow_from_the_matrices, ()) {
  Attention a{.heads = 8 * *rc::gen::inRange(1, 9), .kv_heads = 8};
  a.head_dim = a.value_dim = 16 * *rc::gen::inRange(1, 9);
  a.gated = *rc::gen::arbitrary<bool>();
  a.qkv_bias = *rc::gen::arbitrary<bool>();
  if (*rc::gen::arbitrary<bool>())
    a = {.kind = AttentionKind::latent,
         .heads = 16,
         .kv_heads = 16,
         .head_dim = 96,
         .value_dim = 64,
         .q_rank = *rc::gen::element(0, 256),
         .kv_rank = 128,
         .nope_dim = 64,
         .rope_dim = 32};
  Ffn ffn{.intermediate = *rc::gen::element(0, 512), .gated = *rc::gen::arbitrary<bool>()};
  if (*rc::gen::arbitrary<bool>()) {
    ffn.experts = Ffn::Experts{.routed = *rc::gen::inRange(1, 65),
                               .active = 1,
                               .intermediate = 128,
                               .shared = *rc::gen::inRange(0, 3)};
    ffn.experts->active = *rc::gen::inRange(1, ffn.experts->routed + 1);
    if (ffn.experts->shared > 0) ffn.experts->shared_intermediate = 128;
  }
  Model m{.hidden = 512,
          .vocabulary = 3000,
          .layers = {{.count = 7, .attention = a, .ffn = ffn}},
          .max_position = 4096};
  RC_ASSERT(!flaw(m));
  std::int64_t total = 0, active = 0;
  for (const Matrix& matrix : end_matrices(m)) total += matrix.in * matrix.out * matrix.copies;
  active = total;
  for (const Matrix& matrix : matrices(m, m.layers[0])) {
    RC_ASSERT(matrix.in > 0 && matrix.out > 0 && matrix.active <= matrix.copies);
    total += 7 * matrix.in * matrix.out * matrix.copies;
    active += 7 * matrix.in * matrix.out * matrix.active;
  }
  const Parameters p = parameters(m);
  RC_ASSERT(p.total >= total && p.total < total + 7 * 8 * 1024 + 7 * 100'000);
  RC_ASSERT(p.active - active == p.total - total);
  RC_ASSERT(p.active <= p.total);
}

TEST(Flaw, an_impossible_shape_is_named) {
  Model m = model("llama-3.1-8b");
  EXPECT_FALSE(flaw(m));
  m.layers[0].attention.kv_heads = 5;
  EXPECT_EQ(flaw(m), "32 heads cannot share 5 kv heads evenly");
  m = model("mixtral-8x7b");
  m.layers[0].ffn.experts->active = 9;
  EXPECT_EQ(flaw(m), "active experts must be from 1 to 8, found 9");
  m = model("deepseek-r1");
  m.layers[0].attention.nope_dim = 100;
  EXPECT_EQ(flaw(m), "the query head of 192 is not its parts: 100 + 64");
  m = model("llama-3.1-8b");
  m.layers[0].count = 10'001;
  EXPECT_EQ(flaw(m), "layers must be from 1 to 10000, found 10001");
  m = model("mixtral-8x7b");
  m.hidden = 1 << 20;
  m.layers[0] = {.count = 10'000, .attention = m.layers[0].attention, .ffn = m.layers[0].ffn};
  m.layers[0].ffn.experts->routed = 1 << 16;
  ASSERT_TRUE(flaw(m));
  EXPECT_NE(flaw(m)->find("is taken for a mistake"), std::string::npos);
}

}  // namespace
}  // namespace racktwin::catalog
