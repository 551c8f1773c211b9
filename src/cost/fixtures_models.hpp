// Models for the tests and benchmarks of cost/, as literals: shapes from published configs.
#pragma once

#include "catalog/model.hpp"

namespace racktwin::cost::fixtures {

using catalog::AttentionKind;
using catalog::Format;
using catalog::LayerGroup;
using catalog::Model;

inline catalog::Attention gqa(int heads, int kv_heads, int dim) {
  return {.heads = heads, .kv_heads = kv_heads, .head_dim = dim, .value_dim = dim};
}

// meta-llama/Llama-3.1-8B config.json
inline Model llama_8b() {
  return {.name = "Llama-3.1-8B",
          .hidden = 4096,
          .vocabulary = 128256,
          .layers = {{.count = 32, .attention = gqa(32, 8, 128), .ffn = {.intermediate = 14336}}},
          .max_position = 131072};
}
inline Model llama_70b() {
  return {.name = "Llama-3.1-70B",
          .hidden = 8192,
          .vocabulary = 128256,
          .layers = {{.count = 80, .attention = gqa(64, 8, 128), .ffn = {.intermediate = 28672}}},
          .max_position = 131072};
}
// Qwen/Qwen3-235B-A22B-FP8 config.json
inline Model qwen3_235b_fp8() {
  catalog::Attention attention = gqa(64, 4, 128);
  attention.qk_norm = true;
  attention.weights = Format::fp8;
  const catalog::Ffn::Experts experts{
      .routed = 128, .active = 8, .intermediate = 1536, .weights = Format::fp8};
  return {.name = "Qwen3-235B-A22B-FP8",
          .hidden = 4096,
          .vocabulary = 151936,
          .layers = {{.count = 94, .attention = attention, .ffn = {.experts = experts}}},
          .max_position = 40960};
}
// deepseek-ai/DeepSeek-R1 config.json; NVFP4 experts and dense layers, 16-bit attention, FP8 KV
// as nvidia/DeepSeek-R1-FP4.
inline catalog::Attention mla() {
  return {.kind = AttentionKind::latent,
          .heads = 128,
          .kv_heads = 128,
          .head_dim = 192,
          .value_dim = 128,
          .q_rank = 1536,
          .kv_rank = 512,
          .nope_dim = 128,
          .rope_dim = 64,
          .kv = Format::fp8};
}
inline Model deepseek_r1(Format weights = Format::nvfp4) {
  const catalog::Ffn::Experts experts{.routed = 256,
                                      .active = 8,
                                      .intermediate = 2048,
                                      .shared = 1,
                                      .shared_intermediate = 2048,
                                      .router_bias = true,
                                      .weights = weights};
  catalog::Attention attention = mla();
  if (weights == Format::fp8) attention.weights = Format::fp8;
  const LayerGroup dense{
      .count = 3, .attention = attention, .ffn = {.intermediate = 18432, .weights = weights}};
  const LayerGroup moe{
      .count = 58, .attention = attention, .ffn = {.experts = experts, .weights = weights}};
  LayerGroup mtp = moe;
  mtp.count = 1;
  mtp.joins = true;
  return {.name = "DeepSeek-R1",
          .hidden = 7168,
          .vocabulary = 129280,
          .layers = {dense, moe},
          .mtp = mtp,
          .max_position = 163840};
}
// deepseek-ai/DeepSeek-V3.2: the same with the lightning indexer.
inline Model deepseek_v32() {
  Model model = deepseek_r1();
  model.name = "DeepSeek-V3.2";
  const catalog::Attention::Sparse sparse{.index_heads = 64, .index_dim = 128, .topk = 2048};
  for (LayerGroup& group : model.layers) group.attention.sparse = sparse;
  model.mtp->attention.sparse = sparse;
  return model;
}
// openai/gpt-oss-120b config.json
inline Model gpt_oss_120b() {
  catalog::Attention full = gqa(64, 8, 64);
  full.sinks = full.qkv_bias = full.output_bias = true;
  catalog::Attention sliding = full;
  sliding.window = 128;
  const catalog::Ffn::Experts experts{
      .routed = 128, .active = 4, .intermediate = 2880, .weights = Format::mxfp4};
  const catalog::Ffn ffn{.experts = experts, .bias = true};
  return {.name = "gpt-oss-120b",
          .hidden = 2880,
          .vocabulary = 201088,
          .layers = {{.count = 18, .attention = full, .ffn = ffn},
                     {.count = 18, .attention = sliding, .ffn = ffn}},
          .max_position = 131072};
}
// The shape of Qwen3-Next-80B-A3B: three gated delta-net layers to one of full attention.
inline Model qwen3_next() {
  catalog::Attention full = gqa(16, 2, 256);
  full.gated = full.qk_norm = true;
  const catalog::Attention linear{
      .kind = AttentionKind::linear,
      .state = catalog::Attention::State{
          .key_heads = 16, .key_dim = 128, .value_heads = 32, .value_dim = 128, .conv_kernel = 4}};
  const catalog::Ffn::Experts experts{
      .routed = 512, .active = 10, .intermediate = 512, .shared = 1, .shared_intermediate = 512};
  return {.name = "Qwen3-Next-80B-A3B",
          .hidden = 2048,
          .vocabulary = 151936,
          .layers = {{.count = 12, .attention = full, .ffn = {.experts = experts}},
                     {.count = 36, .attention = linear, .ffn = {.experts = experts}}},
          .max_position = 262144};
}
// The kinds of layer of Nemotron-H: Mamba alone, FFN alone, attention alone.
inline Model mamba_hybrid() {
  const catalog::Attention mamba{
      .kind = AttentionKind::mamba,
      .heads = 64,
      .head_dim = 64,
      .state = catalog::Attention::State{.groups = 8, .state_dim = 128, .conv_kernel = 4}};
  const catalog::Attention none{.kind = AttentionKind::none};
  const catalog::Ffn ffn{.intermediate = 16384, .gated = false};
  return {.name = "mamba-hybrid",
          .hidden = 4096,
          .vocabulary = 131072,
          .tied_embeddings = true,
          .layers = {{.count = 24, .attention = mamba},
                     {.count = 4, .attention = gqa(32, 8, 128)},
                     {.count = 24, .attention = none, .ffn = ffn}},
          .max_position = 8192};
}

}  // namespace racktwin::cost::fixtures
