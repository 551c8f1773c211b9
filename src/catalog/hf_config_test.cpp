#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/file.hpp"
#include "catalog/catalog.hpp"
#include "catalog/hf_pattern.hpp"

namespace racktwin::catalog {
namespace {

namespace fs = std::filesystem;

const std::string folder = RACKTWIN_SOURCE_DIR "/../shared/hf_configs";

bool absent() {
  return !fs::exists(folder);
}

Result<Model> given(const std::string& name) {
  return Catalog().model(folder + "/" + name + "_config.json");
}

Result<Model> imported(std::string_view json, std::string_view quantization = {}) {
  return import_hf_config(json, quantization, "test");
}

std::string refusal(std::string_view json, std::string_view quantization = {}) {
  const auto model = imported(json, quantization);
  return model.ok() ? "accepted" : model.error().text();
}

const char* const tiny_llama = R"({"architectures": ["LlamaForCausalLM"], "hidden_size": 64,
  "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
  "intermediate_size": 128, "vocab_size": 100, "max_position_embeddings": 512EXTRA})";

std::string llama_with(const std::string& extra) {
  std::string json = tiny_llama;
  return json.replace(json.find("EXTRA"), 5, extra);
}

// Published totals and active parameters, in billions, with one unit of the last digit as the
// tolerance of what is printed with two or three digits. total from the safetensors of the
// repository where it has more than four digits.
struct Published {
  const char* name;
  double total, total_tolerance;
  double active = 0, active_tolerance = 0;
  bool skips_embedding = false;
};
const Published published[] = {
    {"Qwen--Qwen3-235B-A22B", 235.09363456, 0, 22.2, 0.05},
    {"Qwen--Qwen3-30B-A3B-FP8", 30.532122624, 0, 3.3, 0.1},
    {"Qwen--Qwen3-32B", 32.762123264, 0},
    {"Qwen--Qwen3-8B", 8.19073536, 0},
    {"blis--qwen3-14b", 14.7683072, 0},
    {"blis--qwen2.5-7b-instruct", 7.615616512, 0},
    {"blis--yi-34b", 34.388917248, 0},
    {"blis--mistral-nemo-instruct-2407", 12.2477824, 0},
    {"blis--deepseek-v2-lite", 15.706484224, 0, 2.4, 0.1, true},
    {"blis--codellama-34b-instruct-hf", 33.743970304, 0},
    {"dynamo--TinyLlama_v1.1", 1.100048384, 0},
    {"meta-llama--Meta-Llama-3.1-8B", 8.030261248, 0},
    {"meta-llama--Meta-Llama-3.1-70B", 70.553706496, 0},
    {"meta-llama--Meta-Llama-3.1-405B", 405.8533888, 0},
    {"mistralai--Mixtral-8x7B-v0.1", 46.702792704, 0, 12.9, 0.1},
    {"mistralai--Mixtral-8x22B-v0.1", 140.620634112, 0, 39, 1},
    {"meta-llama--Llama-4-Scout-17B-16E-Instruct", 107.8, 0.1, 17, 1},
    {"deepseek-ai--DeepSeek-R1", 671.0264192, 0, 37, 1},
    {"nvidia--DeepSeek-V3.2-NVFP4", 671, 1, 37, 1, true},
    {"openai--gpt-oss-120b", 116.83, 0.01, 5.13, 0.01, true},
    {"nvidia--Llama-3_3-Nemotron-Super-49B-v1", 49.867145216, 0},
    {"nvidia--NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", 31.6, 0.1, 3.6, 0.1},
    {"nvidia--NVIDIA-Nemotron-3-Super-120B-A12B-FP8", 120.6, 0.1, 12.7, 0.1},
    {"nvidia--NVIDIA-Nemotron-3-Ultra-550B-A55B-FP8", 550, 1, 55, 1, true},
    {"nvidia--Nemotron-H-56B-Base-8K", 56, 1},
    {"google--gemma-4-26B-A4B", 25.2, 0.1, 3.8, 0.1},
    {"nvidia--Gemma-4-31B-IT-NVFP4", 30.7, 0.1},
    {"zai-org--GLM-5-FP8", 744, 1, 40, 1, true},
    {"XiaomiMiMo--MiMo-V2-Flash", 309, 1, 15, 1},
    {"stepfun-ai--Step-3.7-Flash", 196, 1, 11, 1},
    {"simai--qwen3-next-80B-A3B", 80, 1, 3, 1},
    {"Qwen--Qwen3.5-397B-A17B", 397, 1, 17, 1},
    {"MiniMaxAI--MiniMax-M2.5", 229, 1, 10, 1, true},
    {"llmservingsim--microsoft--Phi-mini-MoE-instruct", 7.6, 0.1, 2.4, 0.1},
};

TEST(HfConfig, counts_equal_the_published_ones) {
  if (absent()) GTEST_SKIP() << "the collection of configs is not here: " << folder;
  for (const Published& p : published) {
    const auto model = given(p.name);
    ASSERT_TRUE(model.ok()) << model.error().text();
    const Parameters counted = parameters(model.value());
    const double total = static_cast<double>(counted.total) / 1e9;
    EXPECT_LE(std::abs(total - p.total), std::max({0.005 * p.total, p.total_tolerance}))
        << p.name << ": counted " << total;
    if (p.total_tolerance == 0) {
      EXPECT_NEAR(total, p.total, 1e-9) << p.name;
    }
    if (p.active == 0) continue;
    const Matrix table = end_matrices(model.value()).front();
    const auto skipped = p.skips_embedding ? table.in * table.out : 0;
    const double active = static_cast<double>(counted.active - skipped) / 1e9;
    EXPECT_LE(std::abs(active - p.active), std::max(0.005 * p.active, p.active_tolerance))
        << p.name << ": counted " << active;
  }
}

TEST(HfConfig, every_file_of_the_collection_is_counted_or_refused_with_the_reason) {
  if (absent()) GTEST_SKIP() << "the collection of configs is not here: " << folder;
  int counted = 0, refused = 0, beside = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() != ".json") continue;
    const auto model = Catalog().model(entry.path().string());
    const std::string file = entry.path().filename().string();
    if (model.ok()) {
      const Model& m = model.value();
      EXPECT_GT(parameters(m).total, 1e8) << file;
      EXPECT_LT(parameters(m).total, 3e12) << file;
      EXPECT_LE(parameters(m).active, parameters(m).total) << file;
      EXPECT_GT(kv_bytes_per_token_within_window(m), 0) << file;
      ++counted;
    } else if (file.ends_with("hf_quant_config.json")) {
      EXPECT_NE(model.error().message.find("lies beside a config.json"), std::string::npos) << file;
      ++beside;
    } else {
      const std::string& why = model.error().message;
      EXPECT_TRUE(why.find("DeepseekV4ForCausalLM") != std::string::npos ||
                  why.find("KimiK3ForConditionalGeneration") != std::string::npos)
          << file << ": " << why;
      EXPECT_EQ(model.error().code, Error::Code::unsupported);
      ++refused;
    }
  }
  EXPECT_EQ(counted + refused + beside, 106);
  EXPECT_EQ(refused, 6);
}

TEST(HfConfig, formats_of_modules_are_those_of_the_checkpoint) {
  if (absent()) GTEST_SKIP() << "the collection of configs is not here: " << folder;
  const Model v3 = given("nvidia--DeepSeek-V3.1-NVFP4").value();
  EXPECT_EQ(v3.layers.back().attention.weights, Format::bf16);
  EXPECT_EQ(v3.layers.back().attention.output_weights, Format::nvfp4);
  EXPECT_EQ(v3.layers.back().attention.kv, Format::fp8);
  EXPECT_EQ(v3.layers.back().ffn.experts->weights, Format::nvfp4);
  EXPECT_EQ(v3.mtp->ffn.experts->weights, Format::bf16);
  EXPECT_EQ(v3.head, Format::bf16);

  const Model kimi = given("moonshotai--Kimi-K2.5").value();  // compressed-tensors, regexes
  EXPECT_EQ(kimi.layers.front().ffn.weights, Format::bf16);
  EXPECT_EQ(kimi.layers.back().attention.weights, Format::bf16);
  EXPECT_EQ(kimi.layers.back().ffn.weights, Format::bf16);
  EXPECT_EQ(kimi.layers.back().ffn.experts->weights, Format::int4);

  const Model oss = given("openai--gpt-oss-120b").value();
  EXPECT_EQ(oss.layers[0].attention.weights, Format::bf16);
  EXPECT_EQ(oss.layers[0].ffn.experts->weights, Format::mxfp4);

  const Model qwen = given("nvidia--Qwen3.6-27B-NVFP4").value();  // mixed, layer by layer
  EXPECT_EQ(qwen.layers[0].attention.kind, AttentionKind::linear);
  EXPECT_EQ(qwen.layers[0].attention.weights, Format::fp8);
  EXPECT_EQ(qwen.layers[0].ffn.weights, Format::nvfp4);
  EXPECT_EQ(qwen.mtp->ffn.weights, Format::bf16);

  // Layers of one kind may differ in format: Nemotron keeps six Mamba layers in BF16.
  const Model nano = given("nvidia--NVIDIA-Nemotron-3-Nano-30B-A3B-NVFP4").value();
  int kept = 0;
  for (const LayerGroup& group : nano.layers)
    if (group.attention.kind == AttentionKind::mamba && group.attention.weights == Format::bf16)
      kept += group.count;
  EXPECT_EQ(kept, 6);
}

TEST(HfConfig, layers_are_of_the_kinds_the_config_says) {
  if (absent()) GTEST_SKIP() << "the collection of configs is not here: " << folder;
  const auto count = [](const Model& m, auto is) {
    int sum = 0;
    for (const LayerGroup& group : m.layers) sum += is(group) ? group.count : 0;
    return sum;
  };
  const auto windowed = [](const LayerGroup& g) { return g.attention.window.has_value(); };
  const auto moe = [](const LayerGroup& g) { return g.ffn.experts.has_value(); };
  const auto linear = [](const LayerGroup& g) { return g.attention.kind == AttentionKind::linear; };
  const Model scout = given("meta-llama--Llama-4-Scout-17B-16E-Instruct").value();
  EXPECT_EQ(count(scout, windowed), 36);
  EXPECT_EQ(count(scout, moe), 48);
  EXPECT_EQ(count(given("Qwen--Qwen3.5-122B-A10B").value(), linear), 36);
  EXPECT_EQ(count(given("XiaomiMiMo--MiMo-V2-Flash").value(), windowed), 39);
  EXPECT_EQ(count(given("XiaomiMiMo--MiMo-V2-Flash").value(), moe), 47);
  EXPECT_EQ(count(given("openai--gpt-oss-120b").value(), windowed), 18);
  EXPECT_EQ(count(given("google--gemma-4-26B-A4B").value(), windowed), 25);
  EXPECT_EQ(count(given("deepseek-ai--DeepSeek-R1").value(), moe), 58);
  // use_sliding_window = false turns the window off that the config still prints.
  EXPECT_EQ(count(given("blis--qwen2.5-7b-instruct").value(), windowed), 0);
  EXPECT_EQ(count(given("simai--qwen3-235B-A22B_FP8").value(), windowed), 0);
  // GLM-5.2 runs its indexer in 21 of 78 layers; the others take over its choice.
  EXPECT_EQ(count(given("nvidia--GLM-5.2-NVFP4").value(),
                  [](const LayerGroup& g) { return g.attention.sparse->index_heads > 0; }),
            21);
}

TEST(HfConfig, an_interleaved_llama4_has_its_experts_in_every_other_layer) {
  const auto model = imported(R"({"architectures": ["Llama4ForConditionalGeneration"],
    "text_config": {"hidden_size": 5120, "num_hidden_layers": 48, "num_attention_heads": 40,
    "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 8192,
    "intermediate_size_mlp": 16384, "interleave_moe_layer_step": 2, "num_local_experts": 128,
    "num_experts_per_tok": 1, "attention_chunk_size": 8192, "vocab_size": 202048,
    "max_position_embeddings": 1048576}})");
  ASSERT_TRUE(model.ok()) << model.error().text();
  int moe = 0, dense = 0;
  for (const LayerGroup& g : model.value().layers) (g.ffn.experts ? moe : dense) += g.count;
  EXPECT_EQ(moe, 24);
  EXPECT_EQ(dense, 24);
  // The model card of Maverick: 400 billion, 17 of them active.
  EXPECT_NEAR(static_cast<double>(parameters(model.value()).total), 400e9, 1e9);
  EXPECT_NEAR(static_cast<double>(parameters(model.value()).active), 17e9, 0.5e9);
}

TEST(HfConfig, counts_are_compared_the_way_the_publisher_counts) {
  const auto model = imported(R"({"architectures": ["Glm4MoeForCausalLM"], "hidden_size": 5120,
    "num_hidden_layers": 92, "num_attention_heads": 96, "num_key_value_heads": 8, "head_dim": 128,
    "attention_bias": true, "use_qk_norm": true, "intermediate_size": 12288,
    "moe_intermediate_size": 1536, "n_routed_experts": 160, "n_shared_experts": 1,
    "num_experts_per_tok": 8, "first_k_dense_replace": 3, "num_nextn_predict_layers": 1,
    "vocab_size": 151552, "max_position_embeddings": 131072})");
  ASSERT_TRUE(model.ok()) << model.error().text();
  const PublishedCount glm = counted_as_published(model.value());
  EXPECT_NEAR(static_cast<double>(glm.total), 355e9, 0.5e9);
  EXPECT_NEAR(static_cast<double>(glm.active), 32e9, 0.16e9);
  if (absent()) GTEST_SKIP() << "the collection of configs is not here: " << folder;
  const PublishedCount oss = counted_as_published(given("openai--gpt-oss-120b").value());
  EXPECT_NEAR(static_cast<double>(oss.total), 116.83e9, 0.005e9);
  EXPECT_NEAR(static_cast<double>(oss.active), 5.13e9, 0.005e9);
}

TEST(HfConfig, a_pure_moe_config_needs_no_dense_width) {
  const auto model = imported(R"({"architectures": ["Qwen3MoeForCausalLM"],
    "model_type": "qwen3_moe", "hidden_size": 64, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "num_experts": 8,
    "num_experts_per_tok": 2, "moe_intermediate_size": 32, "vocab_size": 100,
    "max_position_embeddings": 512})");
  ASSERT_TRUE(model.ok()) << model.error().text();
  EXPECT_EQ(model.value().layers[0].ffn.experts->intermediate, 32);
}

TEST(HfConfig, what_cannot_be_read_is_refused_in_one_sentence) {
  EXPECT_EQ(refusal("{"), "test:1:2: this is no JSON");
  EXPECT_EQ(refusal("[1]"), "test: a config is a JSON object, found something else");
  EXPECT_EQ(refusal("{}"),
            "test: the config names no architecture (\"architectures\" or \"model_type\")");
  EXPECT_NE(refusal(R"({"architectures": ["LamaForCausalLM"]})")
                .find("did you mean \"LlamaForCausalLM\"?"),
            std::string::npos);
  EXPECT_EQ(refusal(llama_with(", \"head_dim\": -1")),
            "test: \"head_dim\" must be a whole number from 0 to 2147483647, found -1");
  EXPECT_EQ(refusal(llama_with(", \"head_dim\": 1e300")),
            "test: \"head_dim\" must be a whole number from 0 to 2147483647, found 1e+300");
  EXPECT_EQ(refusal(llama_with(", \"head_dim\": \"x\"")),
            "test: \"head_dim\" must be a whole number from 0 to 2147483647, found \"x\"");
  EXPECT_EQ(refusal(llama_with(", \"head_dim\": 2000000000")),
            "test: the shape contradicts itself: head dimension must be from 1 to 16384, found "
            "2000000000");
  EXPECT_EQ(refusal(R"({"model_type": "llama", "hidden_size": 64})"),
            "test: the key \"num_attention_heads\" is missing");
  EXPECT_EQ(refusal(llama_with(R"(, "quantization_config": {"quant_method": "aqlm"})")),
            "test: the quantisation method \"aqlm\" is not understood (known: fp8, fbgemm_fp8, "
            "mxfp4, modelopt, compressed-tensors, awq, gptq)");
  EXPECT_EQ(refusal(llama_with(R"(, "quantization_config": {"quant_algo": "FP3"})")),
            "test: the quantisation \"FP3\" is not understood");
  const std::string lookahead = llama_with(
      R"j(, "quantization_config": {"quant_method": "fp8", "ignored_layers": ["re:(?=x)"]})j");
  EXPECT_NE(refusal(lookahead).find("is not understood"), std::string::npos);
  EXPECT_EQ(refusal(R"({"quantization": {"quant_algo": "FP8"}})").find("test: this is an hf_quant"),
            0u);
}

TEST(HfConfig, pythons_infinity_is_read_over) {
  EXPECT_TRUE(imported(llama_with(", \"time_step_limit\": [0.0, Infinity, -Infinity, NaN]")).ok());
  EXPECT_EQ(refusal(llama_with(", \"head_dim\": Infinity")), "accepted");  // as if absent
}

TEST(HfConfig, a_file_beside_it_wins_over_the_config_itself) {
  const std::string own = llama_with(R"(, "quantization_config": {"quant_method": "fp8"})");
  EXPECT_EQ(imported(own).value().layers[0].ffn.weights, Format::fp8);
  const auto model = imported(own, R"({"quantization": {"quant_algo": "NVFP4",
      "kv_cache_quant_algo": "FP8", "exclude_modules": ["lm_head", "model.layers.0*"]}})");
  ASSERT_TRUE(model.ok()) << model.error().text();
  ASSERT_EQ(model.value().layers.size(), 2u);
  EXPECT_EQ(model.value().layers[0].ffn.weights, Format::bf16);
  EXPECT_EQ(model.value().layers[1].ffn.weights, Format::nvfp4);
  EXPECT_EQ(model.value().layers[1].attention.kv, Format::fp8);
}

Match matched(std::string_view entry, std::string_view name) {
  std::int64_t steps = 20'000;
  return entry_matches(entry, name, steps);
}

TEST(HfPattern, entries_match_as_the_engines_read_them) {
  const std::string_view q = "layers.3.self_attn.q_proj";
  for (const char* entry : {"self_attn", "self_attn.q_proj", "q_proj", "layers.3", "layers.3*",
                            "layers.*.self_attn", "*q_proj", "re:.*self_attn.*",
                            "re:layers\\.\\d+\\.", "re:.*(q|k|v)_proj$", "re:layers.[0-9].s+elf"})
    EXPECT_EQ(matched(entry, q), Match::yes) << entry;
  for (const char* entry :
       {"attn", "layers.33", "layers.3.self", "re:self_attn", "", "layers.*.mlp", "re:.*(k|v)_proj",
        "re:.*mlp\\.(gate|up|gate_up|down)_proj.*"})
    EXPECT_EQ(matched(entry, q), Match::no) << entry;
  for (const char* entry : {"re:(", "re:[", "re:*", "re:l{2}", "re:(?=x)", "re:\\", "re:(a|b"})
    EXPECT_EQ(matched(entry, q), Match::unclear) << entry;
}

TEST(HfPattern, no_pattern_runs_long) {
  EXPECT_EQ(matched("re:(a*)*(a*)*(a*)*b", std::string(200, 'a')), Match::unclear);
  EXPECT_EQ(matched("re:" + std::string(600, '('), "x"), Match::unclear);
  EXPECT_EQ(matched("re:.*.*.*.*.*.*x", std::string(200, 'a')), Match::unclear);
}

}  // namespace
}  // namespace racktwin::catalog
