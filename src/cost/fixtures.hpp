// Models and machines for the tests and benchmarks of cost/, as literals: shapes from the
// published configs, peaks from the data sheets that data/gpus cites.
#pragma once

#include <string>
#include <vector>

#include "cost/step_model.hpp"

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
// meta-llama/Llama-2-7b-hf config.json
inline Model llama2_7b() {
  return {.name = "Llama-2-7B",
          .hidden = 4096,
          .vocabulary = 32000,
          .layers = {{.count = 32, .attention = gqa(32, 32, 128), .ffn = {.intermediate = 11008}}},
          .max_position = 4096};
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
inline std::vector<Model> models() {
  return {llama_8b(),     llama_70b(),    qwen3_235b_fp8(), deepseek_r1(),
          deepseek_v32(), gpt_oss_120b(), qwen3_next(),     mamba_hybrid()};
}

inline catalog::Gpu h200() {
  return {.name = "H200",
          .peak_dense = {{Format::bf16, 989 * unit::TFLOPS}, {Format::fp8, 1979 * unit::TFLOPS}},
          .hbm_capacity = 143771 * unit::MiB,
          .hbm_bandwidth = 4.8 * unit::TBps,
          .nvlink_bandwidth = 450 * unit::GBps,
          .max_power = 700 * unit::watt};
}
inline catalog::Gpu h100() {
  catalog::Gpu gpu = h200();
  gpu.name = "H100";
  gpu.hbm_capacity = 79.22 * unit::GiB;
  gpu.hbm_bandwidth = 3.35 * unit::TBps;
  return gpu;
}
inline catalog::Gpu gb300() {
  return {.name = "GB300",
          .peak_dense = {{Format::bf16, 2.5 * unit::PFLOPS},
                         {Format::fp8, 5 * unit::PFLOPS},
                         {Format::nvfp4, 15 * unit::PFLOPS}},
          .hbm_capacity = 284208 * unit::MiB,
          .hbm_bandwidth = 8 * unit::TBps,
          .nvlink_bandwidth = 900 * unit::GBps,
          .max_power = 1400 * unit::watt};
}
inline catalog::System hgx() {
  return {.name = "H200-8",
          .gpu = "H200",
          .nvlink_domain = 8,
          .nic_bandwidth = 400 * unit::Gbps,
          .nic_latency = 4 * unit::us,
          .nvlink_latency = 1.5 * unit::us};
}
inline catalog::System nvl72() {
  return {.name = "GB300-NVL72",
          .gpu = "GB300",
          .gpus_per_node = 4,
          .nvlink_domain = 72,
          .gpus_per_rack = 72,
          .nic_bandwidth = 800 * unit::Gbps,
          .nic_latency = 4 * unit::us,
          .nvlink_latency = 1.5 * unit::us};
}
inline catalog::Engine engine() {
  return {.name = "vllm-0.2x",
          .reserved = 3.5 * unit::GiB,
          .step_overhead = 450 * unit::us,
          .sequence_overhead = 3 * unit::us,
          .graph_sizes = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512}};
}

// The calibration of the tree, read from its file so that a test needs no embedded copy.
inline Calibration calibration() {
  Result<Calibration> read = load_calibration("datasheet");
  RACKTWIN_CHECK(read.ok());
  return std::move(read).value();
}

inline StepModelSpec on_h200(Model model, Parallelism shape = {}) {
  return {.model = std::move(model),
          .gpu = h200(),
          .system = hgx(),
          .engine = engine(),
          .parallelism = shape,
          .calibration = calibration()};
}
inline StepModelSpec on_gb300(Model model, Parallelism shape = {}) {
  return {.model = std::move(model),
          .gpu = gb300(),
          .system = nvl72(),
          .engine = engine(),
          .parallelism = shape,
          .calibration = calibration()};
}

// A prompt of `tokens` new tokens after `cached` ones.
inline RankWork prompt(std::int64_t tokens, std::int64_t cached = 0, std::int64_t count = 1) {
  const std::int64_t pairs = tokens * cached + tokens * (tokens + 1) / 2;
  return {.prefill_tokens = tokens * count,
          .prefill_sequences = count,
          .prefill_pairs = pairs * count,
          .prefill_pairs_windowed = std::min<std::int64_t>(pairs, tokens * 2048) * count};
}
inline RankWork decode(std::int64_t sequences, std::int64_t context, std::int64_t drafts = 0) {
  return {.decode_sequences = sequences,
          .decode_tokens = sequences * (1 + drafts),
          .decode_context = sequences * context,
          .decode_context_windowed = sequences * std::min<std::int64_t>(context, 2048)};
}
inline RankWork both(RankWork a, const RankWork& b) {
  a.prefill_tokens += b.prefill_tokens;
  a.prefill_sequences += b.prefill_sequences;
  a.prefill_pairs += b.prefill_pairs;
  a.prefill_pairs_windowed += b.prefill_pairs_windowed;
  a.decode_sequences += b.decode_sequences;
  a.decode_tokens += b.decode_tokens;
  a.decode_context += b.decode_context;
  a.decode_context_windowed += b.decode_context_windowed;
  return a;
}

}  // namespace racktwin::cost::fixtures
