// Machines and work for the tests and benchmarks of cost/, as literals: peaks from the data
// sheets that data/gpus cites.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "cost/fixtures_models.hpp"
#include "cost/step_model.hpp"

namespace racktwin::cost::fixtures {

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
