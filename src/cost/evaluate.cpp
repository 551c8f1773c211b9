#include <algorithm>
#include <cmath>

#include "base/check.hpp"
#include "cost/walk.hpp"

namespace racktwin::cost {
namespace {

using catalog::Attention;
using catalog::AttentionKind;
using catalog::LayerGroup;
using catalog::Matrix;
using catalog::Model;
using catalog::Shard;

// ln C(n, k)
double log_choose(double n, double k) {
  return std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1);
}

std::int64_t part(std::int64_t whole, int parts) {
  return (whole + parts - 1) / parts;
}

}  // namespace

double groups_met(int groups, int routed, int active) {
  const double outside = routed - static_cast<double>(routed) / groups;
  if (outside < active) return groups;
  return groups * (1 - std::exp(log_choose(outside, active) - log_choose(routed, active)));
}

RankWork micro_batch(const RankWork& work, int pp) {
  if (pp == 1) return work;
  return {.prefill_tokens = part(work.prefill_tokens, pp),
          .prefill_sequences = part(work.prefill_sequences, pp),
          .prefill_pairs = part(work.prefill_pairs, pp),
          .prefill_pairs_windowed = part(work.prefill_pairs_windowed, pp),
          .decode_sequences = part(work.decode_sequences, pp),
          .decode_tokens = part(work.decode_tokens, pp),
          .decode_context = part(work.decode_context, pp),
          .decode_context_windowed = part(work.decode_context_windowed, pp)};
}

Load load_of(const RankWork& work) {
  const auto real = [](std::int64_t count) { return static_cast<double>(count); };
  return {.tokens = real(work.prefill_tokens + work.decode_tokens),
          .head = real(work.prefill_sequences + work.decode_tokens),
          .drafts = real(work.decode_sequences),
          .prefill_tokens = real(work.prefill_tokens),
          .prefill_pairs = real(work.prefill_pairs),
          .prefill_bounded = real(work.prefill_pairs_windowed),
          .prompts = real(work.prefill_sequences),
          .decode_tokens = real(work.decode_tokens),
          .context = real(work.decode_context),
          .context_bounded = real(work.decode_context_windowed),
          .sequences = real(work.decode_sequences)};
}

double touched_experts(const ExpertShare& share, double all_tokens) {
  if (share.chance >= 1) return all_tokens > 0 ? share.experts : 0;
  return -share.experts * std::expm1(all_tokens * std::log1p(-share.chance));
}

double far_part(const ExpertShare& share, int ranks, int domains) {
  if (domains == 1) return 0;
  const double apart = static_cast<double>(ranks) / share.groups;  // GPUs that share an expert
  const double near =
      groups_met(share.groups, share.routed, share.active) * apart * (ranks - 1) / ranks;
  const double far = groups_met(domains, share.routed, share.active) * (domains - 1) / domains;
  return std::min(1.0, far / near);
}

Amount amount(const Row& row, const Load& load) {
  switch (row.driver) {
    case Driver::tokens:
      return {.tokens = load.tokens};
    case Driver::head:
      return {.tokens = load.head};
    case Driver::draft:
      return {.tokens = load.drafts};
    case Driver::prefill:
      return {.tokens = load.prefill_tokens,
              .pairs = row.bounded ? load.prefill_bounded : load.prefill_pairs,
              .sequences = load.prompts};
    case Driver::decode:
    case Driver::draft_decode:
      return {.tokens = row.driver == Driver::decode ? load.decode_tokens : load.sequences,
              .pairs = row.bounded ? load.context_bounded : load.context,
              .sequences = load.sequences};
    case Driver::experts:
      return {.tokens = row.share.choices * load.all_tokens};
    case Driver::draft_experts:
      return {.tokens = row.share.choices * load.all_drafts};
    case Driver::exchange:
      return {.tokens = load.busiest_tokens};
    case Driver::draft_exchange:
      return {.tokens = load.busiest_drafts};
  }
  return {};
}

Operator evaluate(const Row& row, const Load& load) {
  Operator op = row.shape;
  const Amount by = amount(row, load);
  op.flops = row.flops.at(by.tokens, by.pairs, by.sequences) * unit::flop;
  op.activations = row.activations.at(by.tokens, by.pairs, by.sequences) * unit::byte;
  op.kv = row.kv.at(by.tokens, by.pairs, by.sequences) * unit::byte;
  const bool drafts = row.driver == Driver::draft_experts || row.driver == Driver::draft_exchange;
  const double all = drafts ? load.all_drafts : load.all_tokens;
  double rows = by.tokens;
  if (!by.any()) {
    op.weights = Bytes{};
  } else if (row.driver == Driver::experts || row.driver == Driver::draft_experts) {
    const double touched = touched_experts(row.share, all);
    op.weights = op.weights * (touched / row.share.experts);
    if (op.kind == OperatorKind::expert_gemm) rows = by.tokens / touched;
  }
  op.traffic = std::max(row.traffic * by.tokens, row.traffic_in * all) * unit::byte;
  op.rows = static_cast<std::int64_t>(std::ceil(rows));
  return op;
}

std::vector<int> stage_layers(const Model& model, int pp) {
  const int layers = model.layer_count();
  const int held = (layers + pp - 1) / pp;
  std::vector<int> counts;
  std::vector<std::pair<double, std::size_t>> rest;
  int given = 0;
  for (const LayerGroup& group : model.layers) {
    const double share = static_cast<double>(group.count) * held / layers;
    rest.emplace_back(std::floor(share) - share, counts.size());
    counts.push_back(static_cast<int>(std::floor(share)));
    given += counts.back();
  }
  std::sort(rest.begin(), rest.end());
  for (std::size_t i = 0; given < held; ++i, ++given) ++counts[rest[i].second];
  return counts;
}

double matrix_bytes(const Matrix& matrix, const Attention& attention, const Parallelism& shape) {
  const double in = static_cast<double>(matrix.in), out = static_cast<double>(matrix.out);
  double elements = in * out * static_cast<double>(matrix.copies);
  switch (matrix.shard) {
    case Shard::replicated:
      break;
    case Shard::experts:
      elements /= shape.ep * shape.expert_tp();
      break;
    case Shard::rows:
    case Shard::vocabulary:
      elements /= shape.tp;
      break;
    case Shard::columns: {
      // Each rank holds at least one KV head.
      const bool replicates = attention.kind == AttentionKind::full &&
                              attention.kv_heads < shape.tp && matrix.name == "qkv_proj";
      const double held =
          replicates ? attention.head_dim + (attention.values_from_keys ? 0 : attention.value_dim)
                     : 0;
      const double kv = held * attention.kv_heads;
      elements = in * ((out - kv) / shape.tp + held) * static_cast<double>(matrix.copies);
      break;
    }
  }
  return elements * format_bytes(matrix.format);
}

double kv_bytes_per_gpu(const Attention& attention, const Parallelism& shape) {
  const double whole = catalog::kv_bytes_per_token(attention);
  if (attention.kind != AttentionKind::full || attention.kv_heads == 0) return whole;
  return whole / std::min(shape.tp, attention.kv_heads);
}

double state_bytes_per_gpu(const Attention& attention, const Parallelism& shape) {
  Model one;
  one.layers.push_back({.count = 1, .attention = attention});
  return catalog::state_bytes_per_sequence(one) / shape.tp;
}

}  // namespace racktwin::cost
