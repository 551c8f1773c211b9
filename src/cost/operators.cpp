#include "cost/operators.hpp"

#include <algorithm>
#include <string>

#include "cost/walk.hpp"

namespace racktwin::cost {
namespace {

using catalog::Attention;
using catalog::AttentionKind;
using catalog::LayerGroup;
using catalog::Matrix;
using catalog::Model;

Error refusal(std::string message) {
  return {.code = Error::Code::invalid_input, .message = std::move(message)};
}

Result<Done> check_group(const Model& model, const LayerGroup& group, const Parallelism& shape) {
  const Attention& attention = group.attention;
  const bool heads = attention.kind == AttentionKind::full ||
                     attention.kind == AttentionKind::latent ||
                     attention.kind == AttentionKind::mamba;
  const auto divides = [&](const char* what, int count) -> Result<Done> {
    if (count % shape.tp == 0) return Done{};
    return refusal("tp = " + std::to_string(shape.tp) + " does not divide the " +
                   std::to_string(count) + " " + what + " of " + model.name);
  };
  if (heads) RACKTWIN_TRY_DONE(divides("attention heads", attention.heads));
  if (attention.kind == AttentionKind::linear && attention.state) {
    RACKTWIN_TRY_DONE(divides("value heads", attention.state->value_heads));
  }
  const int kv = attention.kv_heads;
  if (attention.kind == AttentionKind::full && kv > 0 && kv % shape.tp != 0 && shape.tp % kv != 0) {
    return refusal("tp = " + std::to_string(shape.tp) +
                   " neither divides nor is a multiple of the " + std::to_string(kv) +
                   " KV heads of " + model.name);
  }
  if (group.ffn.experts && group.ffn.experts->routed % shape.ep != 0) {
    return refusal("ep = " + std::to_string(shape.ep) + " does not divide the " +
                   std::to_string(group.ffn.experts->routed) + " routed experts of " + model.name);
  }
  return Done{};
}

// Bytes that one token needs while a layer works on it: the residual stream in and out, the
// normed input, and the widest matrix's input and output; with experts, each of its choices
// as well, on the busiest GPU.
double activation_bytes(const Model& model, const LayerGroup& group, const Parallelism& shape) {
  constexpr double element = 2;
  double widest = 0, experts = 0;
  for (const Matrix& matrix : catalog::matrices(model, group)) {
    const double in = static_cast<double>(matrix.in), out = static_cast<double>(matrix.out);
    if (matrix.module == catalog::Module::expert) {
      // All ranks' tokens arrive, and those that chose experts here are permuted.
      const double choices = static_cast<double>(matrix.active) * shape.dp / shape.ep;
      experts = std::max(experts, choices * (in + out / shape.expert_tp()));
      continue;
    }
    const bool columns = matrix.shard == catalog::Shard::columns;
    const bool rows = matrix.shard == catalog::Shard::rows;
    widest = std::max(widest, (rows ? in / shape.tp : in) + (columns ? out / shape.tp : out));
  }
  return element * (3.0 * model.hidden + std::max(widest, experts));
}

}  // namespace

Result<Done> check(const Model& model, const Parallelism& shape) {
  const std::pair<const char*, int> degrees[] = {
      {"tp", shape.tp}, {"pp", shape.pp}, {"dp", shape.dp}, {"ep", shape.ep}};
  for (const auto& [name, degree] : degrees) {
    if (degree < 1)
      return refusal(std::string(name) + " = " + std::to_string(degree) +
                     " is no degree of parallelism; it must be at least 1");
  }
  if (shape.tp * shape.dp % shape.ep != 0)
    return refusal("ep = " + std::to_string(shape.ep) + " does not divide tp * dp = " +
                   std::to_string(shape.tp * shape.dp) + ", the GPUs that hold the experts");
  bool moe = false;
  for (const LayerGroup& group : model.layers) {
    moe |= group.ffn.experts.has_value();
    RACKTWIN_TRY_DONE(check_group(model, group, shape));
  }
  if (shape.ep > 1 && !moe)
    return refusal("ep = " + std::to_string(shape.ep) + " on " + model.name +
                   ", which has no experts; ep must be 1");
  if (shape.pp > model.layer_count())
    return refusal("pp = " + std::to_string(shape.pp) + " stages are more than the " +
                   std::to_string(model.layer_count()) + " layers of " + model.name);
  return Done{};
}

std::optional<std::int64_t> attention_bound(const Model& model) {
  std::optional<std::int64_t> bound;
  const auto take = [&](std::int64_t tokens) { bound = std::min(bound.value_or(tokens), tokens); };
  for (const LayerGroup& group : model.layers) {
    if (group.attention.window) take(*group.attention.window);
    if (group.attention.sparse) take(group.attention.sparse->topk);
  }
  return bound;
}

std::vector<Operator> operators(const Model& model, const Parallelism& shape, const RankWork& rank,
                                std::int64_t total_tokens, double expert_skew, int draft_tokens) {
  Load load = load_of(micro_batch(rank, shape.pp));
  const double own = static_cast<double>(rank.prefill_tokens + rank.decode_tokens);
  load.all_tokens = static_cast<double>((total_tokens + shape.pp - 1) / shape.pp);
  load.all_drafts =
      own > 0 ? load.all_tokens * static_cast<double>(rank.decode_sequences) / own : 0;
  load.busiest_tokens = load.tokens;
  load.busiest_drafts = load.drafts;
  std::vector<Operator> list;
  for (const Row& row : walk(model, shape, expert_skew, draft_tokens)) {
    if (amount(row, load).any()) list.push_back(evaluate(row, load));
  }
  return list;
}

Footprint footprint(const Model& model, const Parallelism& shape, std::int64_t batch_tokens,
                    int draft_tokens) {
  Footprint sum;
  double per_token = 0;
  const auto add = [&](const LayerGroup& group, int count) {
    double bytes = 0;
    for (const Matrix& matrix : catalog::matrices(model, group))
      bytes += matrix_bytes(matrix, group.attention, shape);
    sum.weights += count * bytes * unit::byte;
    per_token = std::max(per_token, activation_bytes(model, group, shape));
    const double kv = count * kv_bytes_per_gpu(group.attention, shape);
    if (kept_per_sequence(group.attention)) {
      const double held = static_cast<double>(*group.attention.window) * kv;
      sum.state_per_sequence += held * unit::byte;
    } else {
      sum.kv_per_token += kv;
    }
    sum.state_per_sequence += count * state_bytes_per_gpu(group.attention, shape) * unit::byte;
  };
  const std::vector<int> layers = stage_layers(model, shape.pp);
  for (std::size_t i = 0; i < layers.size(); ++i) add(model.layers[i], layers[i]);

  Bytes first, last;
  for (const Matrix& matrix : catalog::end_matrices(model)) {
    const Bytes bytes = matrix_bytes(matrix, Attention{}, shape) * unit::byte;
    (matrix.module == catalog::Module::embedding ? first : last) += bytes;
  }
  const Bytes layers_only = sum.weights;
  if (draft_tokens > 0 && model.mtp) add(*model.mtp, std::max(1, model.mtp->count));
  last += sum.weights - layers_only;
  // Vision towers and the like: 16-bit, split as the rest.
  first += 2 * static_cast<double>(model.other_parameters) / shape.tp * unit::byte;
  const Bytes ends = shape.pp == 1 ? first + last : std::max(first, last);
  sum.weights = layers_only + ends;
  sum.activations = per_token * static_cast<double>(batch_tokens) * unit::byte;
  return sum;
}

bool kept_per_sequence(const Attention& attention) {
  return attention.window && *attention.window <= longest_kept_window;
}

}  // namespace racktwin::cost
