// Families whose attention is no plain KV cache: latent (MLA), linear and Mamba layers.
#include <fmt/format.h>

#include <algorithm>

#include "catalog/hf_families.hpp"

namespace racktwin::catalog {
namespace {

Attention latent_attention(const HfObject& config) {
  Attention a{.kind = AttentionKind::latent};
  a.heads = hf_dimension(config, {"num_attention_heads"});
  a.kv_heads = a.heads;
  a.nope_dim = hf_dimension(config, {"qk_nope_head_dim"});
  a.rope_dim = hf_dimension(config, {"qk_rope_head_dim"});
  // Never head_dim: in these configs it is the rotary part, or the other one.
  a.head_dim = config.failed() ? 0 : a.nope_dim + a.rope_dim;
  a.value_dim = hf_dimension(config, {"v_head_dim"});
  a.q_rank = static_cast<int>(config.integer("q_lora_rank", 0));
  a.kv_rank = hf_dimension(config, {"kv_lora_rank"});
  a.qkv_bias = a.output_bias = config.flag("attention_bias", false);
  if (config.has("index_topk")) {
    a.sparse = Attention::Sparse{.index_heads = hf_dimension(config, {"index_n_heads"}),
                                 .index_dim = hf_dimension(config, {"index_head_dim"}),
                                 .topk = config.require({"index_topk"})};
  }
  return a;
}

Format state_format(const HfObject& config, std::string_view key) {
  const std::string name = config.text(key);
  return name.empty() || name == "float32" ? Format::fp32 : Format::bf16;
}

// The order of modules in a Nemotron-H: M mamba, * attention, E experts, - MLP.
std::string nemotron_pattern(const HfObject& config) {
  std::string pattern = config.text("hybrid_override_pattern");
  std::string listed;
  for (const std::string& type : config.texts("layers_block_type")) {
    const char letter = type == "mamba"       ? 'M'
                        : type == "attention" ? '*'
                        : type == "moe"       ? 'E'
                        : type == "mlp"       ? '-'
                                              : '?';
    listed += letter;
  }
  if (pattern.empty()) pattern = listed;
  if (pattern.empty())
    config.fail(
        "the order of its layers is missing (hybrid_override_pattern or "
        "layers_block_type)");
  if (pattern.size() > 10'000 || pattern.find_first_not_of("M*E-") != std::string::npos)
    config.fail(
        "the order of its layers has a kind that is not understood (known: mamba, "
        "attention, moe, mlp)",
        Error::Code::unsupported);
  const std::int64_t layers =
      config.integer("num_hidden_layers", static_cast<std::int64_t>(pattern.size()));
  if (layers != static_cast<std::int64_t>(pattern.size()))
    config.fail(fmt::format("the order of its layers has {} entries for {} layers", pattern.size(),
                            layers));
  return config.failed() ? std::string() : pattern;
}

Attention mamba(const HfObject& config) {
  Attention a{.kind = AttentionKind::mamba};
  a.heads = hf_dimension(config, {"mamba_num_heads"});
  a.head_dim = a.value_dim = hf_dimension(config, {"mamba_head_dim"});
  a.state = Attention::State{.groups = hf_dimension(config, {"n_groups"}),
                             .state_dim = hf_dimension(config, {"ssm_state_size"}),
                             .conv_kernel = hf_dimension(config, {"conv_kernel"}),
                             .format = state_format(config, "mamba_ssm_cache_dtype")};
  return a;
}

Ffn nemotron_experts(const HfObject& config) {
  Ffn ffn{.gated = false, .experts = hf_experts(config)};
  Ffn::Experts& e = *ffn.experts;
  e.router_bias = true;
  e.shared = static_cast<int>(config.integer("n_shared_experts", 0));
  if (e.shared > 0)
    e.shared_intermediate = hf_dimension(config, {"moe_shared_expert_intermediate_size"});
  e.latent_dim = static_cast<int>(config.integer("moe_latent_size", 0));
  e.latent = e.latent_dim > 0;
  return ffn;
}

}  // namespace

// DeepSeek-V2 to V3.2, Kimi K2, GLM-5.
HfShape hf_latent(const HfObject& config) {
  const int layers = hf_layers(config);
  const auto moe = hf_moe_layers(config, layers);
  const Attention attention = latent_attention(config);
  Ffn dense, experts;
  if (std::find(moe.begin(), moe.end(), false) != moe.end())
    dense.intermediate = hf_dimension(config, {"intermediate_size"});
  experts.experts = hf_experts(config);
  experts.experts->router_bias = config.text("topk_method") == "noaux_tc";
  experts.experts->shared = static_cast<int>(config.integer("n_shared_experts", 0));
  experts.experts->shared_intermediate = experts.experts->intermediate;
  const std::vector<std::string> indexers = config.texts("indexer_types");
  if (!indexers.empty() && indexers.size() != moe.size())
    config.fail(
        fmt::format("\"indexer_types\" has {} entries for {} layers", indexers.size(), layers));
  const HfNames names{.attention = attention.q_rank > 0 ? "self_attn.q_b_proj" : "self_attn.q_proj",
                      .experts = "mlp.experts.0.up_proj",
                      .shared = "mlp.shared_experts.up_proj"};
  HfShape shape;
  for (std::size_t i = 0; i < moe.size() && !config.failed(); ++i) {
    HfLayer layer{.group = {.count = 1, .attention = attention, .ffn = moe[i] ? experts : dense},
                  .names = names};
    if (!indexers.empty() && indexers[i] != "full" && attention.sparse)
      layer.group.attention.sparse =
          Attention::Sparse{.index_heads = 0, .index_dim = 0, .topk = attention.sparse->topk};
    shape.layers.push_back(layer);
  }
  const std::int64_t modules = config.integer("num_nextn_predict_layers", 0);
  if (modules > 0) {
    shape.mtp = {
        {.group = {.count = static_cast<int>(modules), .attention = attention, .ffn = experts},
         .names = names}};
  }
  return shape;
}

// Qwen3-Next, Qwen3.5, Qwen3.6: gated delta nets, every few layers gated full attention.
HfShape hf_qwen_hybrid(const HfObject& config) {
  const int layers = hf_layers(config);
  const auto types = hf_layer_types(config, layers);
  const std::int64_t interval =
      std::max<std::int64_t>(1, config.integer("full_attention_interval", 4));
  Attention full = hf_attention(config);
  full.qk_norm = true;
  full.gated = config.flag("attn_output_gate", true);
  full.qkv_bias = full.output_bias = config.flag("attention_bias", false);
  Attention linear{.kind = AttentionKind::linear};
  linear.state = Attention::State{.key_heads = hf_dimension(config, {"linear_num_key_heads"}),
                                  .key_dim = hf_dimension(config, {"linear_key_head_dim"}),
                                  .value_heads = hf_dimension(config, {"linear_num_value_heads"}),
                                  .value_dim = hf_dimension(config, {"linear_value_head_dim"}),
                                  .conv_kernel = hf_dimension(config, {"linear_conv_kernel_dim"}),
                                  .format = state_format(config, "mamba_ssm_dtype")};
  Ffn ffn;
  if (config.integer("num_experts", 0) > 0) {
    ffn.experts = hf_experts(config);
    ffn.experts->shared = 1;
    ffn.experts->shared_intermediate = hf_dimension(config, {"shared_expert_intermediate_size"});
    ffn.experts->shared_gate = true;
    const auto step = config.integer("decoder_sparse_step", 1);
    if (step != 1 || !config.integers("mlp_only_layers").empty())
      config.fail("dense layers between the experts of a hybrid Qwen are not modelled",
                  Error::Code::unsupported);
  } else {
    ffn.intermediate = hf_dimension(config, {"intermediate_size"});
  }
  const HfNames of_full{.experts = "mlp.experts.0.up_proj", .shared = "mlp.shared_expert.up_proj"};
  HfNames of_linear = of_full;
  of_linear.attention = "linear_attn.in_proj_qkv";
  of_linear.output = "linear_attn.out_proj";
  HfShape shape;
  for (int i = 0; i < layers; ++i) {
    const std::string type = types.empty() ? "" : types[static_cast<std::size_t>(i)];
    if (!type.empty() && type != "linear_attention" && type != "full_attention")
      config.fail(fmt::format("the layer type \"{}\" is not understood", type),
                  Error::Code::unsupported);
    const bool is_full = type.empty() ? (i + 1) % interval == 0 : type == "full_attention";
    shape.layers.push_back({.group = {.count = 1, .attention = is_full ? full : linear, .ffn = ffn},
                            .names = is_full ? of_full : of_linear});
  }
  const std::int64_t modules = config.integer("mtp_num_hidden_layers", 0);
  if (modules > 0)
    shape.mtp = {{.group = {.count = static_cast<int>(modules), .attention = full, .ffn = ffn},
                  .names = of_full}};
  return shape;
}

// Nemotron-H and Nemotron 3: each layer is one module behind one norm.
HfShape hf_nemotron_h(const HfObject& config) {
  const std::string pattern = nemotron_pattern(config);
  Attention attention, recurrent, nothing{.kind = AttentionKind::none};
  Ffn mlp, experts;
  const auto has = [&](char kind) { return pattern.find(kind) != std::string::npos; };
  const bool predicts = config.integer("num_nextn_predict_layers", 0) > 0;
  if (has('*') || predicts) {
    attention.heads = hf_dimension(config, {"num_attention_heads"});
    attention.kv_heads = hf_dimension(config, {"num_key_value_heads"});
    attention.head_dim = attention.value_dim =
        hf_dimension(config, {"head_dim", "attention_head_dim"});
    attention.qkv_bias = attention.output_bias = config.flag("attention_bias", false);
    if (config.has("sliding_window")) attention.window = config.require({"sliding_window"});
  }
  if (has('M')) recurrent = mamba(config);
  if (has('-')) mlp = {.intermediate = hf_dimension(config, {"intermediate_size"}), .gated = false};
  if (has('E')) experts = nemotron_experts(config);
  const HfNames of_mamba{.attention = "mixer.in_proj", .output = "mixer.out_proj"};
  const HfNames of_attention{.attention = "mixer.q_proj", .output = "mixer.o_proj"};
  const HfNames of_ffn{.ffn = "mixer.up_proj",
                       .experts = "mixer.experts.0.up_proj",
                       .shared = "mixer.shared_experts.up_proj"};
  HfShape shape;
  for (const char kind : pattern) {
    HfLayer layer{.group = {.count = 1, .attention = nothing, .norms = 1}, .names = of_ffn};
    if (kind == 'M' || kind == '*') {
      layer.group.attention = kind == 'M' ? recurrent : attention;
      layer.names = kind == 'M' ? of_mamba : of_attention;
    } else {
      layer.group.ffn = kind == 'E' ? experts : mlp;
    }
    shape.layers.push_back(layer);
  }
  if (predicts) {
    if (!has('E'))
      config.fail("an MTP module without experts is not modelled", Error::Code::unsupported);
    HfNames names = of_ffn;
    names.attention = of_attention.attention;
    names.output = of_attention.output;
    const auto modules = config.integer("num_nextn_predict_layers", 0);
    shape.mtp = {
        {.group = {.count = static_cast<int>(modules), .attention = attention, .ffn = experts},
         .names = names}};
  }
  return shape;
}

}  // namespace racktwin::catalog
