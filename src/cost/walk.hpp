// Internal to cost: the operator walk as rows of coefficients. One row is one kind of kernel;
// its flops and bytes are linear in what drives it, so that a step is a sum of products, and
// what depends on a token count alone can be kept in tables. operators(), the step model and
// its explanation all evaluate these rows.
#pragma once

#include <cstdint>
#include <vector>

#include "cost/operators.hpp"

namespace racktwin::cost {

// What a row grows with.
enum class Driver : std::uint8_t {
  tokens,          // of the rank: the one GEMM pass over prefill and decode tokens
  head,            // tokens whose logits are wanted
  draft,           // rows of the second and later passes of the MTP module: one per sequence
  prefill,         // new tokens, query-key pairs, prompts
  decode,          // query tokens, context read, sequences
  draft_decode,    // the same for later passes of the MTP module
  experts,         // tokens of all ranks
  draft_experts,   // and in later passes of the MTP module
  exchange,        // the busiest rank's tokens out, the mean of all ranks' in
  draft_exchange,  // and in later passes of the MTP module
};

struct Linear {  // base units per token, per pair (or token of context), per sequence
  double token = 0, pair = 0, sequence = 0;
  double at(double tokens, double pairs, double sequences) const {
    return token * tokens + pair * pairs + sequence * sequences;
  }
  Linear scaled(double k) const { return {token * k, pair * k, sequence * k}; }
  friend bool operator==(const Linear&, const Linear&) = default;
};

// Experts of the busiest GPU of the EP group.
struct ExpertShare {
  double experts = 0;  // that lie on it
  double choices = 0;  // expert-token pairs it gets per token of the replica
  double chance = 0;   // that a token chooses one given expert of it
  int groups = 1, active = 0, routed = 0;
};

struct Row {
  Operator shape;  // what no load changes: name, kind, format, count, collective, ranks;
                   // weights: all that lie on the GPU
  Driver driver = Driver::tokens;
  bool bounded = false;  // attention sees at most attention_bound() tokens
  Linear flops, activations, kv;
  double traffic = 0;     // collectives: bytes per token of the rank
  double traffic_in = 0;  // exchanges: bytes that reach the busiest GPU per token of all ranks
  ExpertShare share;      // experts and exchanges
};

// One micro-batch: tokens and pairs as in RankWork, after padding.
struct Load {
  double tokens = 0, head = 0, drafts = 0;
  double prefill_tokens = 0, prefill_pairs = 0, prefill_bounded = 0, prompts = 0;
  double decode_tokens = 0, context = 0, context_bounded = 0, sequences = 0;
  double all_tokens = 0, all_drafts = 0;          // of all ranks
  double busiest_tokens = 0, busiest_drafts = 0;  // of the rank that sends most
};

// Rows of one micro-batch on the busiest GPU of a pipeline stage.
std::vector<Row> walk(const catalog::Model&, const Parallelism&, double expert_skew,
                      int draft_tokens);

// A pp-th of the work, rounded up: what one micro-batch carries.
RankWork micro_batch(const RankWork&, int pp);
// Without padding; `all_*` and `busiest_*` are left for the caller.
Load load_of(const RankWork&);

// What drives the row under this load: tokens (expert GEMMs: expert-token pairs), pairs,
// sequences. A row without any is not launched.
struct Amount {
  double tokens = 0, pairs = 0, sequences = 0;
  bool any() const { return tokens + pairs + sequences > 0; }
};
Amount amount(const Row&, const Load&);
Operator evaluate(const Row&, const Load&);
// Of `groups` equal parts of `routed` experts, how many a token with `active` choices meets:
// groups * (1 - C(routed - routed/groups, active) / C(routed, active)).
double groups_met(int groups, int routed, int active);
double touched_experts(const ExpertShare&, double all_tokens);
// Of the bytes a rank puts into an exchange over `ranks` GPUs in `domains` NVLink domains, the
// part that leaves the domain when a token crosses once per domain that holds a chosen expert.
double far_part(const ExpertShare&, int ranks, int domains);

// Layers of each group on one stage: ceil(layers / pp) in the model's proportions (largest
// remainder). Simplified: leading dense layers are spread over the stages. Wrong by the
// difference between a dense and an MoE layer on the first stage.
std::vector<int> stage_layers(const catalog::Model&, int pp);

inline double format_bytes(catalog::Format format) {
  return numerics::bytes_per_element(format).in(unit::byte);
}

// Bytes of `matrix` that lie on one GPU.
double matrix_bytes(const catalog::Matrix& matrix, const catalog::Attention& attention,
                    const Parallelism&);
// Ranks of a tensor-parallel group that share one KV head's cache: kv_heads / tp, at least 1
// (a head is replicated when tp > kv_heads); MLA's latent is held whole by every rank.
double kv_bytes_per_gpu(const catalog::Attention&, const Parallelism&);
// Of the state of a linear or Mamba layer, on one GPU.
double state_bytes_per_gpu(const catalog::Attention&, const Parallelism&);

}  // namespace racktwin::cost
