// Families of mixture-of-experts models with ordinary attention.
#include <fmt/format.h>

#include <algorithm>

#include "catalog/hf_families.hpp"

namespace racktwin::catalog {
namespace {

HfLayer layer_of(const Attention& attention, const Ffn& ffn, HfNames names) {
  return {.group = {.count = 1, .attention = attention, .ffn = ffn}, .names = names};
}

// Layers that are `moe` where the flag says so, and `dense` elsewhere.
HfShape mixed(const std::vector<bool>& moe_layers, const HfLayer& moe, const HfLayer& dense) {
  HfShape shape;
  for (const bool is_moe : moe_layers) shape.layers.push_back(is_moe ? moe : dense);
  return shape;
}

bool any_dense(const std::vector<bool>& moe_layers) {
  return std::find(moe_layers.begin(), moe_layers.end(), false) != moe_layers.end();
}

std::vector<bool> all_moe(const HfObject& config) {
  return std::vector<bool>(static_cast<std::size_t>(hf_layers(config)), true);
}

// A dense FFN only where a layer needs it: a pure MoE config has no intermediate_size.
Ffn dense_if_needed(const HfObject& config, const std::vector<bool>& moe_layers,
                    std::string_view key) {
  Ffn ffn;
  if (any_dense(moe_layers)) ffn.intermediate = hf_dimension(config, {key});
  return ffn;
}

}  // namespace

HfShape hf_mixtral(const HfObject& config) {
  Attention a = hf_attention(config);
  if (config.has("sliding_window")) a.window = config.require({"sliding_window"});
  return mixed(
      all_moe(config),
      layer_of(a, {.experts = hf_experts(config)}, {.experts = "block_sparse_moe.experts.0.w1"}),
      {});
}

// Norms with a bias each, and one on the head: counted as norms where they are as long.
HfShape hf_phimoe(const HfObject& config) {
  HfShape shape = hf_mixtral(config);
  const bool bias = config.flag("attention_bias", false);
  for (HfLayer& layer : shape.layers) {
    layer.group.norms = 4;
    layer.group.attention.qkv_bias = layer.group.attention.output_bias = bias;
  }
  return shape;
}

HfShape hf_qwen_moe(const HfObject& config) {
  const int layers = hf_layers(config);
  const std::int64_t step = std::max<std::int64_t>(1, config.integer("decoder_sparse_step", 1));
  const auto dense_only = config.integers("mlp_only_layers");
  std::vector<bool> moe(static_cast<std::size_t>(layers));
  for (int i = 0; i < layers; ++i)
    moe[static_cast<std::size_t>(i)] =
        (i + 1) % step == 0 &&
        std::find(dense_only.begin(), dense_only.end(), i) == dense_only.end();
  Attention a = hf_attention(config);
  // Qwen 2 has a bias on q, k and v and no norm of them; Qwen 3 the other way round.
  const bool second = config.text("model_type") == "qwen2_moe";
  a.qkv_bias = config.flag("qkv_bias", second || config.flag("attention_bias", false));
  a.qk_norm = config.flag("use_qk_norm", !second);
  Ffn ffn{.experts = hf_experts(config)};
  if (const auto shared = config.integer("shared_expert_intermediate_size", 0); shared > 0) {
    ffn.experts->shared = 1;
    ffn.experts->shared_intermediate = static_cast<int>(shared);
    ffn.experts->shared_gate = true;
  }
  const HfNames names{.experts = "mlp.experts.0.up_proj", .shared = "mlp.shared_expert.up_proj"};
  return mixed(moe, layer_of(a, ffn, names),
               layer_of(a, dense_if_needed(config, moe, "intermediate_size"), names));
}

HfShape hf_minimax(const HfObject& config) {
  Attention a = hf_attention(config);
  a.qk_norm = config.flag("use_qk_norm", false);
  a.wide_qk_norm = a.qk_norm && config.text("qk_norm_type") == "per_layer";
  const auto kinds = config.integers("attn_type_list");
  if (std::any_of(kinds.begin(), kinds.end(), [](std::int64_t kind) { return kind != 1; }))
    config.fail("lightning attention layers (attn_type_list) are not modelled",
                Error::Code::unsupported);
  Ffn ffn{.experts = hf_experts(config)};
  ffn.experts->router_bias = config.flag("use_routing_bias", false);
  if (config.integer("shared_intermediate_size", 0) > 0)
    config.fail("a shared expert of MiniMax is not modelled", Error::Code::unsupported);
  HfShape shape =
      mixed(all_moe(config), layer_of(a, ffn, {.experts = "block_sparse_moe.experts.0.w1"}), {});
  if (config.flag("use_mtp", false))
    shape.notes.push_back(
        "the config announces MTP modules that the published weights do not "
        "hold: they are not counted");
  return shape;
}

HfShape hf_gpt_oss(const HfObject& config) {
  const int layers = hf_layers(config);
  const auto types = hf_layer_types(config, layers);
  Attention a = hf_attention(config);
  a.qkv_bias = a.output_bias = config.flag("attention_bias", true);
  a.sinks = true;
  Ffn ffn{.experts = hf_experts(config), .bias = true};
  ffn.experts->router_bias = true;
  const std::int64_t window = config.require({"sliding_window"});
  HfShape shape{.active_counts = Counting::without_embedding};  // arXiv 2508.10925, table 1
  for (int i = 0; i < layers; ++i) {
    // Without a list every other layer, the first included, has the window.
    const bool sliding =
        types.empty() ? i % 2 == 0 : types[static_cast<std::size_t>(i)] == "sliding_attention";
    a.window = sliding ? std::optional(window) : std::nullopt;
    shape.layers.push_back(layer_of(a, ffn, {.experts = "mlp.experts"}));
  }
  return shape;
}

HfShape hf_llama4(const HfObject& config) {
  const int layers = hf_layers(config);
  const auto count = static_cast<std::size_t>(layers);
  const std::int64_t step =
      std::max<std::int64_t>(1, config.integer("interleave_moe_layer_step", 1));
  std::vector<bool> moe(count);
  const auto listed = config.integers("moe_layers");
  for (std::size_t i = 0; i < count; ++i) moe[i] = (static_cast<std::int64_t>(i) + 1) % step == 0;
  if (!listed.empty()) {
    moe.assign(count, false);
    for (const std::int64_t layer : listed)
      if (layer < layers) moe[static_cast<std::size_t>(layer)] = true;
  }
  // 1 = with rotary embedding, and then in chunks; 0 = without, and then over all tokens.
  auto rotary = config.integers("no_rope_layers");
  if (!rotary.empty() && rotary.size() != count)
    config.fail(
        fmt::format("\"no_rope_layers\" has {} entries for {} layers", rotary.size(), layers));
  const std::int64_t interval =
      std::max<std::int64_t>(1, config.integer("no_rope_layer_interval", 4));
  if (rotary.size() != count) {
    rotary.resize(count);
    for (std::size_t i = 0; i < count; ++i)
      rotary[i] = (static_cast<std::int64_t>(i) + 1) % interval != 0;
  }
  Attention a = hf_attention(config);  // its norm of queries and keys has no weight
  a.qkv_bias = a.output_bias = config.flag("attention_bias", false);
  Ffn experts{.experts = hf_experts(config)};
  experts.experts->shared = 1;
  experts.experts->shared_intermediate = experts.experts->intermediate;
  const Ffn dense = dense_if_needed(config, moe, "intermediate_size_mlp");
  HfShape shape;
  for (std::size_t i = 0; i < count; ++i) {
    a.window = rotary[i] && config.has("attention_chunk_size")
                   ? std::optional(config.require({"attention_chunk_size"}))
                   : std::nullopt;
    shape.layers.push_back(layer_of(a, moe[i] ? experts : dense,
                                    {.ffn = "feed_forward.up_proj",
                                     .experts = "feed_forward.experts.0.up_proj",
                                     .shared = "feed_forward.shared_expert.up_proj"}));
  }
  return shape;
}

// GLM-4.5 to 4.7: grouped-query attention before DeepSeek's kind of experts.
HfShape hf_glm4(const HfObject& config) {
  const int layers = hf_layers(config);
  const auto moe = hf_moe_layers(config, layers);
  Attention a = hf_attention(config);
  a.qkv_bias = config.flag("attention_bias", false);
  a.qk_norm = config.flag("use_qk_norm", false);
  Ffn ffn{.experts = hf_experts(config)};
  ffn.experts->router_bias = true;
  ffn.experts->shared = static_cast<int>(config.integer("n_shared_experts", 0));
  ffn.experts->shared_intermediate = ffn.experts->intermediate;
  const HfNames names{.experts = "mlp.experts.0.up_proj", .shared = "mlp.shared_experts.up_proj"};
  const HfLayer last = layer_of(a, ffn, names);
  HfShape shape =
      mixed(moe, last, layer_of(a, dense_if_needed(config, moe, "intermediate_size"), names));
  shape.total_counts = Counting::mtp_without_ends;  // arXiv 2508.06471, table 1
  shape.active_counts = Counting::without_ends;
  const std::int64_t modules = config.integer("num_nextn_predict_layers", 0);
  if (modules > 0) {
    shape.mtp = {last};
    shape.mtp.front().group.count = static_cast<int>(modules);
  }
  return shape;
}

HfShape hf_mimo_v2(const HfObject& config) {
  const int layers = hf_layers(config);
  const auto moe = hf_moe_layers(config, layers);
  const auto pattern = config.integers("hybrid_layer_pattern");
  if (static_cast<int>(pattern.size()) != layers) {
    config.fail(fmt::format("\"hybrid_layer_pattern\" has {} entries for {} layers", pattern.size(),
                            layers));
    return {};
  }
  Attention full = hf_attention(config);
  full.qkv_bias = config.flag("attention_bias", false);
  full.sinks = config.flag("add_full_attention_sink_bias", false);
  Attention sliding = full;
  sliding.heads = static_cast<int>(config.integer("swa_num_attention_heads", full.heads));
  sliding.kv_heads = static_cast<int>(config.integer("swa_num_key_value_heads", full.kv_heads));
  sliding.head_dim = static_cast<int>(config.integer("swa_head_dim", full.head_dim));
  sliding.value_dim = static_cast<int>(config.integer("swa_v_head_dim", full.value_dim));
  sliding.sinks = config.flag("add_swa_attention_sink_bias", false);
  sliding.window = config.require({"sliding_window"});
  Ffn ffn{.experts = hf_experts(config)};
  ffn.experts->router_bias = config.text("topk_method") == "noaux_tc";
  const Ffn dense = dense_if_needed(config, moe, "intermediate_size");
  HfShape shape;
  for (std::size_t i = 0; i < pattern.size(); ++i)
    shape.layers.push_back(layer_of(pattern[i] ? sliding : full, moe[i] ? ffn : dense,
                                    {.experts = "mlp.experts.0.up_proj"}));
  shape.notes.push_back(
      "the MTP layers of the weights are not in the config: they are not counted");
  return shape;
}

HfShape hf_step3(const HfObject& config) {
  const int layers = hf_layers(config);
  const auto moe = hf_moe_layers(config, layers);
  const auto types = hf_layer_types(config, layers);
  if (types.empty()) {
    config.fail("the key \"layer_types\" is missing");
    return {};
  }
  Attention a = hf_attention(config);
  Ffn ffn{.experts = hf_experts(config)};
  ffn.experts->router_bias = config.flag("use_moe_router_bias", false);
  ffn.experts->shared = static_cast<int>(config.integer("n_shared_experts", 0));
  if (ffn.experts->shared > 0)
    ffn.experts->shared_intermediate = hf_dimension(config, {"share_expert_dim"});
  const Ffn dense = dense_if_needed(config, moe, "intermediate_size");
  const HfNames names{.experts = "moe.experts.0.up_proj", .shared = "share_expert.up_proj"};
  HfShape shape;
  for (std::size_t i = 0; i < types.size(); ++i) {
    const bool sliding = types[i] == "sliding_attention";
    a.window = sliding ? std::optional(config.require({"sliding_window"})) : std::nullopt;
    shape.layers.push_back(layer_of(a, moe[i] ? ffn : dense, names));
  }
  if (config.integer("num_nextn_predict_layers", 0) > 0)
    shape.notes.push_back("the config does not say the shape of its MTP layers: not counted");
  return shape;
}

}  // namespace racktwin::catalog
