#include "catalog/hf_families.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace racktwin::catalog {
namespace {

constexpr std::string_view v4 =
    "its keys and values are compressed over tokens (compress_ratios) and its residual stream is "
    "several streams wide (hc_mult), and the operator walk has no such layers";
constexpr std::string_view k3 =
    "it has Kimi delta attention with full-rank gates and residuals of attention over blocks of "
    "layers, and the operator walk has no such layers";

constexpr std::array<HfFamily, 57> families = {{
    {"LlamaForCausalLM", hf_dense},
    {"llama", hf_dense},
    {"MistralForCausalLM", hf_dense},
    {"mistral", hf_dense},
    {"Qwen2ForCausalLM", hf_qwen2},
    {"qwen2", hf_qwen2},
    {"Qwen3ForCausalLM", hf_qwen3},
    {"qwen3", hf_qwen3},
    {"Qwen3VLForConditionalGeneration", hf_qwen3},
    {"qwen3_vl_text", hf_qwen3},
    {"MiMoForCausalLM", hf_mimo},
    {"mimo", hf_mimo},
    {"DeciLMForCausalLM", hf_nas},
    {"nemotron-nas", hf_nas},
    {"Gemma4ForConditionalGeneration", hf_gemma4},
    {"gemma4_text", hf_gemma4},
    {"MixtralForCausalLM", hf_mixtral},
    {"mixtral", hf_mixtral},
    {"PhiMoEForCausalLM", hf_phimoe},
    {"phimoe", hf_phimoe},
    {"Qwen2MoeForCausalLM", hf_qwen_moe},
    {"qwen2_moe", hf_qwen_moe},
    {"Qwen3MoeForCausalLM", hf_qwen_moe},
    {"qwen3_moe", hf_qwen_moe},
    {"Qwen3VLMoeForConditionalGeneration", hf_qwen_moe},
    {"qwen3_vl_moe_text", hf_qwen_moe},
    {"MiniMaxM2ForCausalLM", hf_minimax},
    {"minimax_m2", hf_minimax},
    {"GptOssForCausalLM", hf_gpt_oss},
    {"gpt_oss", hf_gpt_oss},
    {"Llama4ForConditionalGeneration", hf_llama4},
    {"llama4_text", hf_llama4},
    {"Glm4MoeForCausalLM", hf_glm4},
    {"glm4_moe", hf_glm4},
    {"MiMoV2FlashForCausalLM", hf_mimo_v2},
    {"mimo_v2_flash", hf_mimo_v2},
    {"Step3p7FlashForCausalLM", hf_step3},
    {"step3p7", hf_step3},
    {"DeepseekV2ForCausalLM", hf_latent},
    {"DeepseekV3ForCausalLM", hf_latent},
    {"deepseek_v3", hf_latent},
    {"DeepseekV32ForCausalLM", hf_latent},
    {"KimiK25ForConditionalGeneration", hf_latent},
    {"kimi_k2", hf_latent},
    {"GlmMoeDsaForCausalLM", hf_latent},
    {"glm_moe_dsa", hf_latent},
    {"Qwen3NextForCausalLM", hf_qwen_hybrid},
    {"qwen3_next", hf_qwen_hybrid},
    {"Qwen3_5ForConditionalGeneration", hf_qwen_hybrid},
    {"Qwen3_5MoeForConditionalGeneration", hf_qwen_hybrid},
    {"NemotronHForCausalLM", hf_nemotron_h},
    {"nemotron_h", hf_nemotron_h},
    {"DeepseekV4ForCausalLM", nullptr, v4},
    {"deepseek_v4", nullptr, v4},
    {"deepseek_ref", nullptr, v4},
    {"KimiK3ForConditionalGeneration", nullptr, k3},
    {"kimi_linear", nullptr, k3},
}};

// A reader in which every layer is `attention` and `ffn`.
HfShape uniform(int layers, const Attention& attention, const Ffn& ffn) {
  HfShape shape;
  const HfLayer layer{.group = {.count = 1, .attention = attention, .ffn = ffn}, .names = {}};
  shape.layers.assign(static_cast<std::size_t>(layers), layer);
  return shape;
}

Ffn dense_ffn(const HfObject& config) {
  return {.intermediate = hf_dimension(config, {"intermediate_size"}),
          .bias = config.flag("mlp_bias", false)};
}

// The window of a model that has one for all layers; use_sliding_window = false turns it off.
std::optional<std::int64_t> whole_window(const HfObject& config) {
  if (!config.has("sliding_window") || !config.flag("use_sliding_window", true))
    return std::nullopt;
  return config.require({"sliding_window"});
}

}  // namespace

const HfFamily* hf_family(std::string_view name) {
  for (const HfFamily& family : families)
    if (family.name == name) return &family;
  return nullptr;
}

std::vector<std::string> hf_family_names() {
  std::vector<std::string> names;
  for (const HfFamily& family : families)
    if (family.read && family.name.starts_with(family.name.substr(0, 1)) && family.name[0] >= 'A' &&
        family.name[0] <= 'Z')
      names.emplace_back(family.name);
  return names;
}

int hf_dimension(const HfObject& config, std::initializer_list<std::string_view> keys) {
  return static_cast<int>(config.require(keys));
}

int hf_layers(const HfObject& config) {
  const std::int64_t layers = config.require({"num_hidden_layers", "n_layer", "num_layers"});
  if (layers <= 10'000) return static_cast<int>(layers);
  config.fail(fmt::format("\"num_hidden_layers\" must be from 1 to 10000, found {}", layers));
  return 0;
}

Attention hf_attention(const HfObject& config) {
  Attention a;
  a.heads = hf_dimension(config, {"num_attention_heads"});
  a.kv_heads = static_cast<int>(config.integer("num_key_value_heads", a.heads));
  const int hidden = hf_dimension(config, {"hidden_size"});
  a.head_dim = static_cast<int>(config.integer("head_dim", 0));
  if (a.head_dim == 0 && a.heads > 0) {
    if (hidden % a.heads != 0)
      config.fail(
          fmt::format("a hidden size of {} does not divide over {} heads", hidden, a.heads));
    a.head_dim = hidden / a.heads;
  }
  a.value_dim = static_cast<int>(config.integer("v_head_dim", a.head_dim));
  return a;
}

Ffn::Experts hf_experts(const HfObject& config) {
  Ffn::Experts e;
  e.routed = hf_dimension(config, {"n_routed_experts", "num_experts", "num_local_experts"});
  e.active = hf_dimension(config, {"num_experts_per_tok", "num_experts_per_token",
                                   "experts_per_token", "top_k_experts"});
  e.intermediate = hf_dimension(config, {"moe_intermediate_size", "intermediate_size"});
  return e;
}

std::vector<std::string> hf_layer_types(const HfObject& config, int layers) {
  std::vector<std::string> types = config.texts("layer_types");
  if (!types.empty() && static_cast<int>(types.size()) != layers)
    config.fail(fmt::format("\"layer_types\" has {} entries for {} layers", types.size(), layers));
  types.resize(types.empty() ? 0 : static_cast<std::size_t>(layers));
  return types;
}

std::vector<bool> hf_moe_layers(const HfObject& config, int layers) {
  const auto count = static_cast<std::size_t>(layers);
  std::vector<bool> moe(count, true);
  const std::vector<std::string> types = config.texts("mlp_layer_types");
  const bool listed = config.is_list("moe_layer_freq");
  const std::vector<std::int64_t> freq =
      listed ? config.integers("moe_layer_freq") : std::vector<std::int64_t>();
  for (const auto& [name, size, given] :
       {std::tuple{"mlp_layer_types", types.size(), !types.empty()},
        std::tuple{"moe_layer_freq", freq.size(), listed}})
    if (given && size != count) {
      config.fail(fmt::format("\"{}\" has {} entries for {} layers", name, size, layers));
      return moe;
    }
  const std::int64_t every =
      listed ? 1 : std::max<std::int64_t>(1, config.integer("moe_layer_freq", 1));
  const std::int64_t dense = config.integer("first_k_dense_replace", 0);
  for (std::size_t i = 0; i < count; ++i) {
    const auto layer = static_cast<std::int64_t>(i);
    if (!types.empty())
      moe[i] = types[i] != "dense";
    else if (listed)
      moe[i] = freq[i] != 0;
    else
      moe[i] = layer >= dense && layer % every == 0;
  }
  return moe;
}

HfShape hf_dense(const HfObject& config) {
  Attention a = hf_attention(config);
  a.qkv_bias = a.output_bias = config.flag("attention_bias", false);
  a.window = whole_window(config);
  return uniform(hf_layers(config), a, dense_ffn(config));
}

// Layers from max_window_layers on have the window, if it is used at all.
HfShape hf_qwen2(const HfObject& config) {
  Attention a = hf_attention(config);
  a.qkv_bias = true;
  const int layers = hf_layers(config);
  HfShape shape = uniform(layers, a, dense_ffn(config));
  if (!config.flag("use_sliding_window", false) || !config.has("sliding_window")) return shape;
  const std::int64_t window = config.require({"sliding_window"});
  const std::int64_t from = config.integer("max_window_layers", 0);
  for (std::size_t i = 0; i < shape.layers.size(); ++i)
    if (static_cast<std::int64_t>(i) >= from) shape.layers[i].group.attention.window = window;
  return shape;
}

HfShape hf_qwen3(const HfObject& config) {
  HfShape shape = hf_qwen2(config);
  const bool bias = config.flag("attention_bias", false);
  for (HfLayer& layer : shape.layers) {
    layer.group.attention.qkv_bias = layer.group.attention.output_bias = bias;
    layer.group.attention.qk_norm = true;
  }
  return shape;
}

HfShape hf_mimo(const HfObject& config) {
  HfShape shape = hf_qwen2(config);
  const std::int64_t modules = config.integer("num_nextn_predict_layers", 0);
  if (modules > 0 && !shape.layers.empty()) {
    shape.mtp = {shape.layers.front()};
    shape.mtp.front().group.count = static_cast<int>(modules);
  }
  return shape;
}

// Llama-Nemotron after neural architecture search: each layer says its own shape.
HfShape hf_nas(const HfObject& config) {
  HfShape shape;
  const int heads = hf_dimension(config, {"num_attention_heads"});
  const int hidden = hf_dimension(config, {"hidden_size"});
  const auto blocks = config.objects("block_configs");
  if (static_cast<int>(blocks.size()) != hf_layers(config))
    config.fail(fmt::format("\"block_configs\" has {} entries for {} layers", blocks.size(),
                            hf_layers(config)));
  for (const HfObject& block : blocks) {
    const HfObject attention = block.object("attention"), ffn = block.object("ffn");
    for (const HfObject& part : {attention, ffn})
      if (part.flag("replace_with_linear", false) || part.has("sparsify"))
        config.fail("a block replaced by a linear layer or sparsified is not understood",
                    Error::Code::unsupported);
    HfLayer layer{.group = {.count = 1, .norms = 0}, .names = {}};
    Attention& a = layer.group.attention;
    a.kind = AttentionKind::none;
    if (!attention.flag("no_op", false)) {
      const std::int64_t shared = attention.require({"n_heads_in_group"});
      if (config.failed() || heads % shared != 0 || hidden % heads != 0) {
        config.fail("the heads of a block do not divide");
        return shape;
      }
      a = {.heads = heads, .kv_heads = static_cast<int>(heads / shared)};
      a.head_dim = a.value_dim = hidden / heads;
      if (attention.has("window_length")) a.window = attention.require({"window_length"});
      ++layer.group.norms;
    }
    if (!ffn.flag("no_op", false)) {
      const double width = 2.0 * ffn.real("ffn_mult", 0) * hidden / 3.0;
      if (!(width >= 1 && width < 1e9)) config.fail("\"ffn_mult\" of a block is out of range");
      // The least multiple of 256 that is not below.
      const std::int64_t whole = config.failed() ? 0 : static_cast<std::int64_t>(width);
      layer.group.ffn.intermediate = static_cast<int>((whole + 255) / 256 * 256);
      ++layer.group.norms;
    }
    shape.layers.push_back(layer);
  }
  return shape;
}

HfShape hf_gemma4(const HfObject& config) {
  HfShape shape;
  if (config.integer("hidden_size_per_layer_input", 0) > 0 ||
      config.integer("num_kv_shared_layers", 0) > 0 || config.flag("use_double_wide_mlp", false))
    config.fail(
        "per-layer inputs, shared KV layers and double-wide MLPs (Gemma 4 E2B, E4B) are "
        "not modelled",
        Error::Code::unsupported);
  const int layers = hf_layers(config);
  const auto types = hf_layer_types(config, layers);
  if (types.empty()) config.fail("the key \"layer_types\" is missing");
  const bool moe = config.flag("enable_moe_block", false);
  Ffn ffn{.intermediate = hf_dimension(config, {"intermediate_size"})};
  if (moe) ffn.experts = hf_experts(config);
  Attention sliding = hf_attention(config);
  sliding.qk_norm = true;
  Attention full = sliding;
  sliding.window = config.require({"sliding_window"});
  full.head_dim = static_cast<int>(config.integer("global_head_dim", full.head_dim));
  full.value_dim = full.head_dim;
  full.kv_heads = static_cast<int>(config.integer("num_global_key_value_heads", full.kv_heads));
  full.values_from_keys = config.flag("attention_k_eq_v", false);
  for (const std::string& type : types) {
    HfLayer layer{.group = {.count = 1, .ffn = ffn, .norms = moe ? 7 : 4},
                  .names = {.experts = "experts.0.up_proj"}};
    if (type != "sliding_attention" && type != "full_attention")
      config.fail(fmt::format("the layer type \"{}\" is not understood", type),
                  Error::Code::unsupported);
    layer.group.attention = type == "sliding_attention" ? sliding : full;
    shape.layers.push_back(layer);
  }
  return shape;
}

}  // namespace racktwin::catalog
