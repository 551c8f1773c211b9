// A serving engine as data: its batching rules, memory rule and overheads, by name and
// version ("trtllm-1.3", "sglang-0.5", "vllm-0.2x"). Read from data/engines/.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/units.hpp"

namespace racktwin::catalog {

enum class Batching : std::uint8_t {
  vllm_v1,  // one token budget per step, decodes first, chunked prefill, recompute preemption
  trtllm,   // in-flight batching; a request is admitted when its longest end fits, so that
            // nothing is ever evicted (GUARANTEED_NO_EVICT), or by prompt (MAX_UTILIZATION)
  sglang,   // prefill batches go before decode batches; retraction when memory runs out
};
enum class MemoryBasis : std::uint8_t {
  of_total,  // weights, activations and KV together may use this part of HBM (vLLM, SGLang)
  of_free,   // KV may use this part of what weights and activations leave (TRT-LLM)
};

struct Engine {
  std::string name;
  Batching batching = Batching::vllm_v1;
  int block_tokens = 16;  // tokens per KV block
  double memory_fraction = 0.9;
  MemoryBasis memory_basis = MemoryBasis::of_total;
  Bytes reserved;  // CUDA context, NCCL, graphs, workspaces: per GPU
  int max_sequences = 256;
  std::int64_t max_batch_tokens = 8192;
  bool chunked_prefill = true;
  bool reserve_full_output = false;  // TRT-LLM's GUARANTEED_NO_EVICT
  // Overheads: host work per step and per sequence of it, hidden behind the GPU when the
  // engine overlaps scheduling; and per request, before the first step sees it.
  Seconds step_overhead, sequence_overhead, request_overhead;
  bool overlap_scheduling = true;
  std::vector<int> graph_sizes;  // decode batches are padded up to the next; empty = no graphs
};

}  // namespace racktwin::catalog
