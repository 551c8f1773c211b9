// The one place that counts. A forward step is a list of operators; time, memory, traffic
// and energy are folds over it, so that they cannot disagree.
//
// Parallelism. A replica is tp * pp * dp GPUs: `dp` attention-data-parallel ranks, each a
// group of `tp` tensor-parallel GPUs, per pipeline stage of `pp`. Experts are spread over
// `ep` of the tp * dp GPUs of a stage; what is left, tp * dp / ep, splits each expert's
// width. Engines differ in what they call EP: here it is always the number of expert groups.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/units.hpp"
#include "catalog/model.hpp"

namespace racktwin::cost {

struct Parallelism {
  int tp = 1, pp = 1, dp = 1, ep = 1;
  int gpus() const { return tp * pp * dp; }
  int expert_tp() const { return tp * dp / ep; }
  friend bool operator==(const Parallelism&, const Parallelism&) = default;
};

// Refuses a shape that cannot be: a degree < 1, ep that does not divide tp * dp, experts that
// ep does not divide, heads that tp does not divide (KV heads may be replicated), ep > 1 on
// a dense model, more stages than layers.
Result<Done> check(const catalog::Model&, const Parallelism&);

// What one attention rank computes in a step. Sums over its sequences.
struct RankWork {
  std::int64_t prefill_tokens = 0;     // new prompt tokens
  std::int64_t prefill_sequences = 0;  // prompts they belong to
  // Query-key pairs of those tokens: a chunk of n tokens after c cached ones has
  // n * c + n * (n + 1) / 2. `_windowed`: each query sees at most Model's window (or top-k).
  std::int64_t prefill_pairs = 0, prefill_pairs_windowed = 0;
  std::int64_t decode_sequences = 0;
  std::int64_t decode_tokens = 0;  // = sequences, or more with speculation (draft + 1 each)
  // Tokens of KV that those sequences read; `_windowed`: each at most the window.
  std::int64_t decode_context = 0, decode_context_windowed = 0;
  friend bool operator==(const RankWork&, const RankWork&) = default;
};

// The shortest of the model's windows and top-k, in tokens; absent when all layers see all.
// Simplified: one bound per model. Wrong for a model with two different windows (none built in).
std::optional<std::int64_t> attention_bound(const catalog::Model&);

enum class OperatorKind : std::uint8_t {
  gemm,
  attention_prefill,
  attention_decode,
  expert_gemm,
  elementwise,  // norms, activations, quantisation, sampling: bytes only
  collective,
};

enum class CollectiveKind : std::uint8_t {
  all_reduce,
  all_gather,
  reduce_scatter,
  all_to_all,
  send
};

struct Operator {  // per GPU and layer; `count` equal layers
  std::string_view name;
  OperatorKind kind = OperatorKind::gemm;
  catalog::Format format = catalog::Format::bf16;  // of the multiplication
  int count = 1;
  Flops flops;
  Bytes weights, activations, kv;  // read or written in HBM
  std::int64_t rows = 0;           // GEMM m: tokens of this GPU, per expert for expert GEMMs
  // Collectives: over how many ranks, and the bytes each rank puts in.
  CollectiveKind collective = CollectiveKind::all_reduce;
  int ranks = 1;
  Bytes traffic;
};

// Operators of one step whose busiest rank does `rank`, with `total_tokens` tokens on all
// ranks of the replica together. Experts: `total_tokens` * active choices spread over ep
// ranks, the busiest taking `expert_skew` >= 1 times the mean (never more than all choices); an
// expert's weights are read only if some token chose it: on a GPU with n experts,
// n * (1 - (1 - p)^total_tokens) of them, p = skew * active / routed.
// With pp > 1: one micro-batch, a pp-th of the work, on one stage. `draft_tokens`: passes of
// the MTP module; without one the guesses come from outside the model and cost nothing here.
std::vector<Operator> operators(const catalog::Model&, const Parallelism&, const RankWork& rank,
                                std::int64_t total_tokens, double expert_skew,
                                int draft_tokens = 0);

// Bytes per GPU (the fullest one).
struct Footprint {
  Bytes weights;             // resident: all experts of the rank, MTP modules if `draft_tokens` > 0
  double kv_per_token = 0;   // bytes of one token's KV, on one GPU of the rank that holds it
  Bytes state_per_sequence;  // linear and Mamba layers; short windows, as if full
  Bytes activations;         // peak of the forward pass, for `batch_tokens` on the rank
};
Footprint footprint(const catalog::Model&, const Parallelism&, std::int64_t batch_tokens,
                    int draft_tokens);

// Layers whose window is this short keep one window of KV per sequence, as hybrid KV managers
// do; longer ones are counted per token. Simplified: no cache of a long window is given back.
// Wrong, on the safe side, for prompts beyond a window of 4,096 or 8,192 tokens.
inline constexpr std::int64_t longest_kept_window = 1024;
bool kept_per_sequence(const catalog::Attention&);

}  // namespace racktwin::cost
