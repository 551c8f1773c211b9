#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/text.hpp"
#include "cost/step_model.hpp"

namespace racktwin::cost {
namespace {

// Bytes per logit of the sampler's scratch. vLLM profiles its PyTorch sampler: logits in 16 and
// 32 bits, sorted values and 64-bit indices, probabilities, their running sum, masks; its
// memory profile of Llama-3-8B shows 1.26 GiB of activations at tp 1 and at tp 2 alike
// (github.com/vllm-project/vllm/pull/10511): 256 sequences * 128,256 logits * 41 B.
// The others sample with fused kernels: logits in 16 and 32 bits, and probabilities.
double sampler_bytes(catalog::Batching batching) {
  switch (batching) {
    case catalog::Batching::vllm_v1:
      return 41;
    case catalog::Batching::trtllm:
    case catalog::Batching::sglang:
      return 10;
  }
  return 10;
}

std::string gib(Bytes bytes) {
  return fmt::format("{:.2f} GiB", bytes.in(unit::GiB));
}

}  // namespace

std::string MemoryPlan::text() const {
  return fmt::format(
      "HBM {}, weights {}, activations {}, reserved {}, left for KV {} = {} tokens of {:.1f} KiB "
      "({} blocks){}",
      gib(hbm), gib(weights), gib(activations), gib(reserved), gib(kv), kv_tokens,
      kv_per_token / 1024, kv_blocks,
      state_per_sequence > Bytes{} ? fmt::format(", beside {:.1f} MiB of state per sequence",
                                                 state_per_sequence.in(unit::MiB))
                                   : std::string());
}

Result<MemoryPlan> plan_memory(const StepModelSpec& spec, std::int64_t min_tokens) {
  const catalog::Engine& engine = spec.engine;
  const Footprint need =
      footprint(spec.model, spec.parallelism, engine.max_batch_tokens, spec.draft_tokens);
  const double logits = static_cast<double>(engine.max_sequences) * (1 + spec.draft_tokens) *
                        static_cast<double>(spec.model.vocabulary);
  MemoryPlan plan{.hbm = spec.gpu.hbm_capacity,
                  .weights = need.weights,
                  .activations = std::max(need.activations,
                                          logits * sampler_bytes(engine.batching) * unit::byte),
                  .reserved = engine.reserved,
                  .kv_per_token = need.kv_per_token,
                  .state_per_sequence = need.state_per_sequence};
  const Bytes taken = plan.weights + plan.activations + plan.reserved;
  plan.kv = engine.memory_basis == catalog::MemoryBasis::of_total
                ? engine.memory_fraction * plan.hbm - taken
                : engine.memory_fraction * (plan.hbm - taken);
  const Bytes states = static_cast<double>(engine.max_sequences) * plan.state_per_sequence;
  const double room = (plan.kv - states).in(unit::byte);
  if (room > 0) {
    // Without per-token KV the cache never fills; sequences are bounded by the engine.
    const double tokens = plan.kv_per_token > 0
                              ? room / plan.kv_per_token
                              : static_cast<double>(engine.max_sequences) *
                                    static_cast<double>(std::max<std::int64_t>(
                                        spec.model.max_position, engine.block_tokens));
    plan.kv_blocks = static_cast<std::int64_t>(std::floor(tokens / engine.block_tokens));
    plan.kv_tokens = plan.kv_blocks * engine.block_tokens;
  }
  plan.kv = std::max(plan.kv, Bytes{});
  if (plan.kv_blocks < 1 || plan.kv_tokens < min_tokens) {
    return Error{
        .code = Error::Code::unsupported,
        .message = fmt::format(
            "{} does not fit on {} with tp {} pp {} dp {} ep {}: room for {} KV tokens on a rank, "
            "at least {} needed; {}{}",
            spec.model.name, spec.gpu.name, spec.parallelism.tp, spec.parallelism.pp,
            spec.parallelism.dp, spec.parallelism.ep, plan.kv_tokens,
            std::max<std::int64_t>(min_tokens, engine.block_tokens), plan.text(),
            states > Bytes{}
                ? fmt::format(", {} for {} sequences", gib(states), engine.max_sequences)
                : std::string())};
  }
  return plan;
}

}  // namespace racktwin::cost
