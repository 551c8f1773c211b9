#include "cost/walk.hpp"

#include <algorithm>
#include <cmath>

#include "base/check.hpp"

namespace racktwin::cost {
namespace {

using catalog::Attention;
using catalog::AttentionKind;
using catalog::Ffn;
using catalog::Format;
using catalog::LayerGroup;
using catalog::Matrix;
using catalog::Model;
using catalog::Shard;

constexpr double bf16_bytes = 2;
// Queries of one prompt that a flash-attention tile holds, so that one read of the cached
// keys serves them all (FlashAttention-2/3 forward: 128 query rows per thread block).
// Simplified: prompts' tails of fewer new tokens are charged as if the tile were full. Wrong
// for a prefix-cached prompt with less than 128 new tokens.
constexpr double query_tile = 128;
// Tokens per chunk of chunked linear attention and Mamba-2 scans (arXiv 2405.21060, 2412.06464).
constexpr double scan_chunk = 64;
// Flops per token and element of the state: decay, rank-one update, read (multiply-adds).
constexpr double state_flops = 6;

// What activations are turned into before they meet weights of this format.
Format activation_format(Format weights) {
  switch (weights) {
    case Format::fp8:
    case Format::int8:
    case Format::mxfp8:
    case Format::nvfp4:
      return weights;
    case Format::mxfp4:
      return Format::mxfp8;
    case Format::fp32:
    case Format::bf16:
    case Format::fp16:
    case Format::int4:
      return Format::bf16;
  }
  return Format::bf16;
}

// Read in 16 bits, written in what the weights want; none when that is 16 bits as well.
double quantise_bytes(Format weights, double elements) {
  const Format format = activation_format(weights);
  return format == Format::bf16 ? 0 : elements * (bf16_bytes + format_bytes(format));
}

// MLA kernels multiply an 8-bit float cache as it is; 4-bit caches are widened to it.
Format cache_math(Format kv) {
  const Format math = numerics::info(kv).math;
  return math == Format::fp8 || math == Format::nvfp4 ? Format::fp8 : Format::bf16;
}

struct Pass {  // of the model's own layers, or a later pass of the MTP module
  Driver tokens = Driver::tokens, prefill = Driver::prefill, decode = Driver::decode;
  Driver experts = Driver::experts, exchange = Driver::exchange;
  bool prompts = true;
  double queries = 1;  // per decoding sequence
};

class Walk {
 public:
  Walk(const Model& model, const Parallelism& shape, double skew)
      : model_(model), shape_(shape), skew_(skew), hidden_(model.hidden) {}

  void layer(const LayerGroup& group, int count, const Pass& pass) {
    if (count == 0) return;
    count_ = count;
    pass_ = pass;
    const std::vector<Matrix> all = catalog::matrices(model_, group);
    if (group.attention.kind != AttentionKind::none) attention(group.attention, all);
    ffn(group, all);
  }

  void ends(const Pass& pass, int count, Driver head);
  void embedding();
  void stage_sends();
  std::vector<Row> take() { return std::move(rows_); }

 private:
  Row& add(std::string_view name, OperatorKind kind, Driver driver) {
    Row& row = rows_.emplace_back();
    row.shape.name = name;
    row.shape.kind = kind;
    row.shape.count = count_;
    row.driver = driver;
    return row;
  }
  void elementwise(std::string_view name, double bytes_per_token) {
    if (bytes_per_token > 0)
      add(name, OperatorKind::elementwise, pass_.tokens).activations.token = bytes_per_token;
  }
  void all_reduce(std::string_view name) {
    if (shape_.tp == 1) return;
    Row& row = add(name, OperatorKind::collective, pass_.tokens);
    row.shape.collective = CollectiveKind::all_reduce;
    row.shape.ranks = shape_.tp;
    row.traffic = hidden_ * bf16_bytes;
  }
  void gemm(const Matrix& matrix, const Attention& of, Driver driver);
  void attention(const Attention& of, const std::vector<Matrix>& all);
  void softmax_attention(const Attention& of);
  void indexer(const Attention& of);
  void scan(const Attention& of);
  void ffn(const LayerGroup& group, const std::vector<Matrix>& all);
  void experts(const Ffn::Experts& of, const std::vector<Matrix>& all);
  void exchange(std::string_view name, const ExpertShare& share, double width, Format format,
                CollectiveKind within);
  ExpertShare share_of(const Ffn::Experts& of) const;

  const Model& model_;
  const Parallelism& shape_;
  double skew_;
  double hidden_;
  int count_ = 0;
  Pass pass_;
  std::vector<Row> rows_;
};

void Walk::gemm(const Matrix& matrix, const Attention& of, Driver driver) {
  Row& row = add(matrix.name, OperatorKind::gemm, driver);
  row.shape.format = matrix.format;
  const double bytes = matrix_bytes(matrix, of, shape_);
  row.shape.weights = bytes * unit::byte;
  row.flops.token = 2 * bytes / format_bytes(matrix.format);
  const double in = static_cast<double>(matrix.in), out = static_cast<double>(matrix.out);
  const double split = shape_.tp;
  const bool wide_in = matrix.shard == Shard::rows;
  const bool wide_out = matrix.shard == Shard::columns || matrix.shard == Shard::vocabulary;
  row.activations.token =
      (wide_in ? in / split : in) * format_bytes(activation_format(matrix.format)) +
      (wide_out ? out / split : out) * bf16_bytes;
}

void Walk::attention(const Attention& of, const std::vector<Matrix>& all) {
  bool sums = false;
  double quantise = quantise_bytes(of.weights, hidden_);
  elementwise("attention_norm", 4 * hidden_ * bf16_bytes);
  for (const Matrix& matrix : all) {
    if (matrix.module != catalog::Module::attention || !matrix.multiplies) continue;
    gemm(matrix, of, pass_.tokens);
    if (matrix.shard != Shard::rows) continue;
    sums = true;
    quantise += quantise_bytes(matrix.format, static_cast<double>(matrix.in) / shape_.tp);
  }
  elementwise("attention_quantise", quantise);
  const double heads = static_cast<double>(of.heads) / shape_.tp;
  if (of.gated) elementwise("attention_gate", 3 * heads * of.value_dim * bf16_bytes);
  if (of.kind == AttentionKind::linear || of.kind == AttentionKind::mamba)
    scan(of);
  else
    softmax_attention(of);
  if (sums) all_reduce("attention_all_reduce");
}

// Scores and values over the cached tokens. MLA: prompts expand the latent into heads
// (`kv_b_proj` on every new token), decoding absorbs that product into queries and outputs,
// so that one latent of kv_rank + rope_dim serves all heads (DeepSeek-V2, arXiv 2405.04434,
// 2.1.2); with top-k (DSA) prompts work on the latent as well.
// Simplified: cached latents are not expanded again for later chunks of a prompt. Wrong by up
// to a fifth of the attention time of a chunk of 2,048 tokens.
void Walk::softmax_attention(const Attention& of) {
  const double heads = static_cast<double>(of.heads) / shape_.tp;
  const bool latent = of.kind == AttentionKind::latent;
  const double value = of.value_dim > 0 ? of.value_dim : of.head_dim;
  const double expanded = of.head_dim + value;
  const double absorbed = latent ? 2.0 * of.kv_rank + of.rope_dim : expanded;
  const double latent_bytes = (of.kv_rank + of.rope_dim) * format_bytes(of.kv);
  const double kv = latent ? latent_bytes : kv_bytes_per_gpu(of, shape_);
  const double prefill = of.sparse ? absorbed : expanded;

  const double written = latent ? of.kv_rank + of.rope_dim : kv / format_bytes(of.kv);
  const double rotated = heads * of.head_dim + written;
  elementwise("rope_and_cache", (of.qk_norm ? 4 : 2) * rotated * bf16_bytes + kv);
  if (of.sparse) indexer(of);

  if (pass_.prompts) {
    Row& row = add("attention_prefill", OperatorKind::attention_prefill, pass_.prefill);
    row.bounded = of.window || of.sparse;
    row.flops.pair = 2 * heads * prefill;
    row.activations.token = heads * prefill * bf16_bytes;
    row.kv.token = latent && !of.sparse ? heads * expanded * bf16_bytes : kv;
    row.kv.pair = of.sparse ? kv : latent ? 0 : kv / query_tile;
  }
  Row& row = add("attention_decode", OperatorKind::attention_decode, pass_.decode);
  row.shape.format = latent ? cache_math(of.kv) : Format::bf16;
  row.bounded = of.window || of.sparse;
  row.flops.pair = 2 * heads * absorbed * pass_.queries;
  row.activations.token = heads * absorbed * bf16_bytes;
  row.kv.pair = kv;
}

// DeepSeek-V3.2's lightning indexer: every query against every key, one small vector per
// token, replicated on all ranks. Its keys are what kv_bytes_per_token() holds beyond the latent.
void Walk::indexer(const Attention& of) {
  const double latent = (of.kv_rank + of.rope_dim) * format_bytes(of.kv);
  const double key = std::max(0.0, catalog::kv_bytes_per_token(of) - latent);
  const double flops = 2.0 * of.sparse->index_heads * of.sparse->index_dim;
  if (pass_.prompts) {
    Row& row = add("indexer_prefill", OperatorKind::attention_prefill, pass_.prefill);
    row.shape.format = Format::fp8;
    row.flops.pair = flops;
    row.kv.pair = key / query_tile;
  }
  Row& row = add("indexer_decode", OperatorKind::attention_decode, pass_.decode);
  row.shape.format = Format::fp8;
  row.flops.pair = flops * pass_.queries;
  row.kv.pair = key;
}

// Linear attention and Mamba: a state per sequence is read and written once per step; prompts
// are scanned in chunks, with attention inside a chunk.
void Walk::scan(const Attention& of) {
  const Attention::State state = of.state.value_or(Attention::State{});
  const bool mamba = of.kind == AttentionKind::mamba;
  const double heads = mamba ? of.heads : state.value_heads;
  const double rows = mamba ? state.state_dim : state.key_dim;
  const double columns = mamba ? of.head_dim : state.value_dim;
  const double keys = mamba ? state.groups * state.state_dim : state.key_heads * state.key_dim;
  const double elements = heads * rows * columns / shape_.tp;
  const double moved = 2 * (keys + heads * columns) / shape_.tp * bf16_bytes;
  const double bytes = state_bytes_per_gpu(of, shape_);
  if (pass_.prompts) {
    Row& row = add("scan_prefill", OperatorKind::attention_prefill, pass_.prefill);
    row.flops.token =
        state_flops * elements + 2 * scan_chunk * heads * (rows + columns) / shape_.tp;
    row.activations.token = moved;
    row.kv.sequence = 2 * bytes;
  }
  Row& row = add("scan_decode", OperatorKind::attention_decode, pass_.decode);
  row.flops.token = state_flops * elements;
  row.activations.token = moved;
  row.kv.sequence = 2 * bytes;
}

void Walk::ffn(const LayerGroup& group, const std::vector<Matrix>& all) {
  bool any = false, sums = false;
  for (const Matrix& matrix : all) any |= matrix.module != catalog::Module::attention;
  if (!any) return;
  elementwise("ffn_norm", 4 * hidden_ * bf16_bytes);
  double quantise = 0;
  for (const Matrix& matrix : all) {
    const bool outside = matrix.module == catalog::Module::attention ||
                         matrix.module == catalog::Module::expert || !matrix.multiplies;
    if (outside) continue;
    gemm(matrix, group.attention, pass_.tokens);
    const bool rows = matrix.shard == Shard::rows;
    sums |= rows;
    if (rows)
      elementwise(
          matrix.module == catalog::Module::shared_expert ? "shared_activation" : "ffn_activation",
          (group.ffn.gated ? 3 : 2) * static_cast<double>(matrix.in) / shape_.tp * bf16_bytes);
    if (!rows) continue;
    quantise += quantise_bytes(matrix.format, static_cast<double>(matrix.in) / shape_.tp + hidden_);
  }
  elementwise("ffn_quantise", quantise);
  const bool moe = group.ffn.experts.has_value();
  if (moe) experts(*group.ffn.experts, all);
  if (sums || (moe && shape_.dp == 1)) all_reduce("ffn_all_reduce");
}

ExpertShare Walk::share_of(const Ffn::Experts& of) const {
  const double experts = static_cast<double>(of.routed) / shape_.ep;
  const double mean = static_cast<double>(of.active) / shape_.ep;
  const double most = std::min(static_cast<double>(of.active), experts);
  const double skew = std::min(skew_, most / mean);
  return {.experts = experts,
          .choices = mean * skew,
          .chance = std::min(1.0, skew * of.active / of.routed),
          .groups = shape_.ep,
          .active = of.active,
          .routed = of.routed};
}

void Walk::experts(const Ffn::Experts& of, const std::vector<Matrix>& all) {
  const ExpertShare share = share_of(of);
  const double width = of.latent ? of.latent_dim : hidden_;
  const Format moved = activation_format(of.weights);
  elementwise("route", of.routed * 3 * bf16_bytes);
  if (shape_.dp > 1) exchange("dispatch", share, width, moved, CollectiveKind::all_gather);

  // Permutation by expert, and quantisation with it.
  Row& permute = add("permute", OperatorKind::elementwise, pass_.experts);
  permute.share = share;
  permute.activations.token = width * (bf16_bytes + format_bytes(moved));
  for (const Matrix& matrix : all) {
    if (matrix.module != catalog::Module::expert) continue;
    Row& row = add(matrix.name, OperatorKind::expert_gemm, pass_.experts);
    row.share = share;
    row.shape.format = matrix.format;
    const Attention none;
    const double bytes = matrix_bytes(matrix, none, shape_);
    row.shape.weights = bytes * unit::byte;
    row.flops.token = 2 * bytes / format_bytes(matrix.format) / share.experts;
    const double split = shape_.expert_tp();
    const bool opens = static_cast<double>(matrix.in) == width;
    const double in = static_cast<double>(matrix.in) / (opens ? 1 : split);
    const double out = static_cast<double>(matrix.out) / (opens ? split : 1);
    row.activations.token = in * format_bytes(moved) + out * bf16_bytes;
    if (!opens) continue;
    Row& act = add("expert_activation", OperatorKind::elementwise, pass_.experts);
    act.share = share;
    act.activations.token = out * 1.5 * bf16_bytes;
  }
  Row& finalise = add("finalise", OperatorKind::elementwise, pass_.experts);
  finalise.share = share;
  finalise.activations.token = 2 * width * bf16_bytes;
  if (shape_.dp > 1)
    exchange("combine", share, width, Format::bf16, CollectiveKind::reduce_scatter);
}

// Tokens travel to the distinct expert groups they chose, to every GPU that holds a part of
// the expert's width, and back; each of a rank's tp GPUs sends its share of the tokens. With
// one group every token goes everywhere: an all-gather, and a reduce-scatter back.
void Walk::exchange(std::string_view name, const ExpertShare& share, double width, Format format,
                    CollectiveKind within) {
  const int gpus = shape_.tp * shape_.dp;
  const double bytes = width * format_bytes(format);
  Row& row = add(name, OperatorKind::collective, pass_.exchange);
  row.share = share;
  row.shape.ranks = gpus;
  row.shape.format = format;
  if (share.groups == 1) {
    row.shape.collective = within;
    const double whole = within == CollectiveKind::all_gather ? 1 : gpus;
    row.traffic = bytes / shape_.tp * whole;
    return;
  }
  row.shape.collective = CollectiveKind::all_to_all;
  const double copies = groups_met(share.groups, share.routed, share.active) * shape_.expert_tp();
  const double away = static_cast<double>(gpus - 1) / gpus;
  row.traffic = bytes / shape_.tp * copies * away;
  const double mean = static_cast<double>(share.active) / share.groups;
  row.traffic_in = row.traffic / shape_.dp * share.choices / mean;
}

void Walk::ends(const Pass& pass, int count, Driver head) {
  count_ = count;
  pass_ = pass;
  pass_.tokens = head;
  const Attention none;
  elementwise("final_norm", 2 * hidden_ * bf16_bytes);
  for (Matrix matrix : catalog::end_matrices(model_)) {
    if (matrix.module != catalog::Module::head) continue;
    matrix.copies = 1;  // a tied head lies in memory once, as the embedding, and is read here
    gemm(matrix, none, head);
  }
  const double vocabulary = static_cast<double>(model_.vocabulary);
  if (shape_.tp > 1) {
    Row& row = add("logits_gather", OperatorKind::collective, head);
    row.shape.collective = CollectiveKind::all_gather;
    row.shape.ranks = shape_.tp;
    row.traffic = vocabulary / shape_.tp * bf16_bytes;
  }
  // Soft-max and choice on 32-bit logits: read, exponentiate, scan.
  elementwise("sampling", vocabulary * (bf16_bytes + 3 * 4));
}

void Walk::embedding() {
  count_ = 1;
  pass_ = Pass{};
  elementwise("embedding", 2 * hidden_ * bf16_bytes);
  all_reduce("embedding_all_reduce");
}

void Walk::stage_sends() {
  if (shape_.pp == 1) return;
  count_ = shape_.pp - 1;
  Row& row = add("stage_send", OperatorKind::collective, Driver::tokens);
  row.shape.collective = CollectiveKind::send;
  row.shape.ranks = 2;
  row.traffic = hidden_ / shape_.tp * bf16_bytes;
}

}  // namespace

std::vector<Row> walk(const Model& model, const Parallelism& shape, double expert_skew,
                      int draft_tokens) {
  RACKTWIN_CHECK(expert_skew >= 1 && draft_tokens >= 0);
  Walk walk(model, shape, expert_skew);
  Pass own;
  own.queries = 1 + draft_tokens;
  walk.embedding();
  const std::vector<int> layers = stage_layers(model, shape.pp);
  for (std::size_t i = 0; i < layers.size(); ++i) walk.layer(model.layers[i], layers[i], own);
  walk.ends(own, 1, Driver::head);
  walk.stage_sends();
  if (draft_tokens > 0 && model.mtp) {
    // The first pass sees what the model saw; each later one a single token per sequence.
    walk.layer(*model.mtp, 1, own);
    const Pass later{.tokens = Driver::draft,
                     .decode = Driver::draft_decode,
                     .experts = Driver::draft_experts,
                     .exchange = Driver::draft_exchange,
                     .prompts = false};
    walk.layer(*model.mtp, draft_tokens - 1, later);
    walk.ends(later, draft_tokens, Driver::draft);
  }
  return walk.take();
}

}  // namespace racktwin::cost
