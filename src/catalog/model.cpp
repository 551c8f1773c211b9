#include "catalog/model.hpp"

namespace racktwin::catalog {
namespace {

using Wide = std::int64_t;

Wide product(int a, int b) {
  return Wide{a} * b;
}

struct Builder {
  std::vector<Matrix> list;

  void add(std::string_view name, Module module, Shard shard, Wide in, Wide out, Format format) {
    if (in > 0 && out > 0)
      list.push_back(
          {.name = name, .module = module, .shard = shard, .in = in, .out = out, .format = format});
  }
};

void add_full(Builder& to, const Attention& a, Wide hidden) {
  const Wide queries = product(a.heads, a.head_dim) * (a.gated ? 2 : 1);
  const Wide keys = product(a.kv_heads, a.head_dim);
  const Wide values = a.values_from_keys ? 0 : product(a.kv_heads, a.value_dim);
  to.add("qkv_proj", Module::attention, Shard::columns, hidden, queries + keys + values, a.weights);
  to.add("o_proj", Module::attention, Shard::rows, product(a.heads, a.value_dim), hidden,
         a.output_weights.value_or(a.weights));
}

void add_latent(Builder& to, const Attention& a, Wide hidden) {
  const Wide queries = product(a.heads, a.head_dim);
  if (a.q_rank > 0) {
    to.add("q_a_proj", Module::attention, Shard::replicated, hidden, a.q_rank, a.weights);
    to.add("q_b_proj", Module::attention, Shard::columns, a.q_rank, queries, a.weights);
  } else {
    to.add("q_proj", Module::attention, Shard::columns, hidden, queries, a.weights);
  }
  to.add("kv_a_proj", Module::attention, Shard::replicated, hidden, Wide{a.kv_rank} + a.rope_dim,
         a.weights);
  to.add("kv_b_proj", Module::attention, Shard::columns, a.kv_rank,
         Wide{a.heads} * (Wide{a.nope_dim} + a.value_dim), a.weights);
  to.add("o_proj", Module::attention, Shard::rows, product(a.heads, a.value_dim), hidden,
         a.output_weights.value_or(a.weights));
  if (!a.sparse) return;
  to.add("indexer_q_proj", Module::attention, Shard::replicated, a.q_rank > 0 ? a.q_rank : hidden,
         product(a.sparse->index_heads, a.sparse->index_dim), a.weights);
  to.add("indexer_k_proj", Module::attention, Shard::replicated, hidden, a.sparse->index_dim,
         a.weights);
  to.add("indexer_weights_proj", Module::attention, Shard::replicated, hidden,
         a.sparse->index_heads, Format::bf16);
}

// Gated delta net as in Qwen3-Next: queries and keys share their width.
void add_linear(Builder& to, const Attention& a, Wide hidden) {
  const Attention::State& s = *a.state;
  const Wide keys = product(s.key_heads, s.key_dim), values = product(s.value_heads, s.value_dim);
  to.add("in_proj", Module::attention, Shard::columns, hidden, 2 * keys + 2 * values, a.weights);
  to.add("in_proj_ba", Module::attention, Shard::columns, hidden, 2 * Wide{s.value_heads},
         Format::bf16);
  to.add("out_proj", Module::attention, Shard::rows, values, hidden,
         a.output_weights.value_or(a.weights));
}

void add_mamba(Builder& to, const Attention& a, Wide hidden) {
  const Attention::State& s = *a.state;
  const Wide inner = product(a.heads, a.head_dim);
  to.add("in_proj", Module::attention, Shard::columns, hidden,
         2 * inner + 2 * product(s.groups, s.state_dim) + a.heads, a.weights);
  to.add("out_proj", Module::attention, Shard::rows, inner, hidden,
         a.output_weights.value_or(a.weights));
}

void add_attention(Builder& to, const Attention& a, Wide hidden) {
  switch (a.kind) {
    case AttentionKind::full:
      return add_full(to, a, hidden);
    case AttentionKind::latent:
      return add_latent(to, a, hidden);
    case AttentionKind::linear:
      return add_linear(to, a, hidden);
    case AttentionKind::mamba:
      return add_mamba(to, a, hidden);
    case AttentionKind::none:
      return;
  }
}

void add_experts(Builder& to, const Ffn& ffn, Wide hidden) {
  const Ffn::Experts& e = *ffn.experts;
  const Wide up = ffn.gated ? 2 : 1;
  to.add("router", Module::router, Shard::replicated, hidden, e.routed, Format::bf16);
  const Wide width = e.latent ? Wide{e.latent_dim} : hidden;
  if (e.latent) {
    to.add("latent_down_proj", Module::ffn, Shard::replicated, hidden, width, ffn.weights);
    to.add("latent_up_proj", Module::ffn, Shard::replicated, width, hidden, ffn.weights);
  }
  const auto expert = [&](std::string_view name, Wide in, Wide out) {
    to.add(name, Module::expert, Shard::experts, in, out, e.weights);
    to.list.back().copies = e.routed;
    to.list.back().active = e.active;
  };
  if (e.intermediate > 0) {
    expert(ffn.gated ? "expert_gate_up_proj" : "expert_up_proj", width, up * e.intermediate);
    expert("expert_down_proj", e.intermediate, width);
  }
  const Wide shared = product(e.shared, e.shared_intermediate);
  to.add(ffn.gated ? "shared_gate_up_proj" : "shared_up_proj", Module::shared_expert,
         Shard::columns, hidden, up * shared, ffn.weights);
  to.add("shared_down_proj", Module::shared_expert, Shard::rows, shared, hidden, ffn.weights);
  if (e.shared_gate)
    to.add("shared_gate", Module::shared_expert, Shard::replicated, hidden, 1, Format::bf16);
}

// Parameters that multiply nothing: norms, biases, sinks, convolutions.
Wide attention_vectors(const Attention& a) {
  const Wide queries = product(a.heads, a.head_dim), keys = product(a.kv_heads, a.head_dim);
  switch (a.kind) {
    case AttentionKind::full: {
      Wide sum = a.sinks ? a.heads : 0;
      if (a.qkv_bias) sum += queries + keys + product(a.kv_heads, a.value_dim);
      if (a.qk_norm) sum += a.wide_qk_norm ? queries + keys : 2 * Wide{a.head_dim};
      return sum;
    }
    case AttentionKind::latent:
      // The indexer's key norm has a weight and a bias.
      return Wide{a.q_rank} + a.kv_rank + (a.sparse ? 2 * Wide{a.sparse->index_dim} : 0);
    case AttentionKind::linear: {
      const Attention::State& s = *a.state;
      const Wide width = 2 * product(s.key_heads, s.key_dim) + product(s.value_heads, s.value_dim);
      return width * s.conv_kernel + 2 * Wide{s.value_heads} + s.value_dim;
    }
    case AttentionKind::mamba: {
      const Attention::State& s = *a.state;
      const Wide inner = queries;
      const Wide width = inner + 2 * product(s.groups, s.state_dim);
      return width * (Wide{s.conv_kernel} + 1) + 3 * Wide{a.heads} + inner;
    }
    case AttentionKind::none:
      return 0;
  }
  return 0;
}

struct Counted {
  Wide total = 0, active = 0;
};

// A layer's parameters; `active`: those a token meets.
Counted layer_parameters(const Model& model, const LayerGroup& group) {
  Counted sum;
  for (const Matrix& m : matrices(model, group)) {
    sum.total += m.in * m.out * m.copies;
    sum.active += m.in * m.out * m.active;
  }
  const Wide hidden = model.hidden;
  Wide vectors = Wide{group.norms} * hidden + attention_vectors(group.attention);
  if (group.attention.output_bias) vectors += hidden;
  const Ffn& ffn = group.ffn;
  const Wide up = ffn.gated ? 2 : 1;
  if (ffn.bias && ffn.intermediate > 0) vectors += up * ffn.intermediate + hidden;
  if (ffn.experts && ffn.experts->router_bias) vectors += ffn.experts->routed;
  sum.total += vectors;
  sum.active += vectors;
  if (ffn.bias && ffn.experts) {
    const Wide each = up * ffn.experts->intermediate + hidden;
    sum.total += each * ffn.experts->routed;
    sum.active += each * ffn.experts->active;
  }
  return sum;
}

double bytes_of(Format format) {
  return numerics::bytes_per_element(format).in(unit::byte);
}

double state_bytes(const Attention& a) {
  if (!a.state) return 0;
  const Attention::State& s = *a.state;
  const bool linear = a.kind == AttentionKind::linear;
  const Wide recurrent = linear ? product(s.value_heads, s.key_dim) * s.value_dim
                                : product(a.heads, a.head_dim) * s.state_dim;
  const Wide width = linear
                         ? 2 * product(s.key_heads, s.key_dim) + product(s.value_heads, s.value_dim)
                         : product(a.heads, a.head_dim) + 2 * product(s.groups, s.state_dim);
  const Wide past = s.conv_kernel > 0 ? s.conv_kernel - 1 : 0;
  return static_cast<double>(recurrent) * bytes_of(s.format) +
         static_cast<double>(width * past) * bytes_of(Format::bf16);
}

}  // namespace

int Model::layer_count() const {
  int sum = 0;
  for (const LayerGroup& group : layers) sum += group.count;
  return sum;
}

std::vector<Matrix> matrices(const Model& model, const LayerGroup& group) {
  Builder to;
  const Wide hidden = model.hidden;
  if (group.joins)
    to.add("eh_proj", Module::ffn, Shard::replicated, 2 * hidden, hidden, Format::bf16);
  add_attention(to, group.attention, hidden);
  const Ffn& ffn = group.ffn;
  if (ffn.intermediate > 0) {
    to.add(ffn.gated ? "gate_up_proj" : "up_proj", Module::ffn, Shard::columns, hidden,
           (ffn.gated ? 2 : 1) * Wide{ffn.intermediate}, ffn.weights);
    to.add("down_proj", Module::ffn, Shard::rows, ffn.intermediate, hidden, ffn.weights);
  }
  if (ffn.experts) add_experts(to, ffn, hidden);
  return std::move(to.list);
}

std::vector<Matrix> end_matrices(const Model& model) {
  Builder to;
  to.add("embedding", Module::embedding, Shard::vocabulary, model.vocabulary, model.hidden,
         model.embedding);
  to.list.back().multiplies = false;
  to.add("lm_head", Module::head, Shard::vocabulary, model.hidden, model.vocabulary, model.head);
  // A tied head multiplies with the embedding's own bytes: nothing lies in memory twice.
  if (model.tied_embeddings) to.list.back().copies = 0;
  return std::move(to.list);
}

Parameters parameters(const Model& model) {
  Parameters sum;
  for (const Matrix& m : end_matrices(model)) {
    sum.total += m.in * m.out * m.copies;
    sum.active += m.in * m.out * m.copies;
  }
  sum.total += model.hidden;  // the norm before the head
  sum.active += model.hidden;
  for (const LayerGroup& group : model.layers) {
    const Counted layer = layer_parameters(model, group);
    sum.total += group.count * layer.total;
    sum.active += group.count * layer.active;
  }
  if (model.mtp) sum.mtp = model.mtp->count * layer_parameters(model, *model.mtp).total;
  return sum;
}

PublishedCount counted_as_published(const Model& model) {
  const Parameters p = parameters(model);
  Wide ends = 0;
  for (const Matrix& m : end_matrices(model)) ends += m.in * m.out * m.copies;
  const auto change = [&](Counting counting) {
    switch (counting) {
      case Counting::whole:
        return Wide{0};
      case Counting::without_embedding:
        return -Wide{model.hidden} * model.vocabulary;
      case Counting::without_ends:
        return -ends;
      case Counting::mtp_without_ends:
        return p.mtp - ends;
    }
    return Wide{0};
  };
  return {.total = p.total + model.other_parameters + change(model.total_counts),
          .active = p.active + change(model.active_counts)};
}

double kv_bytes_per_token(const Attention& a) {
  switch (a.kind) {
    case AttentionKind::full:
      return static_cast<double>(Wide{a.kv_heads} * (Wide{a.head_dim} + a.value_dim)) *
             bytes_of(a.kv);
    case AttentionKind::latent: {
      const double latent = static_cast<double>(Wide{a.kv_rank} + a.rope_dim) * bytes_of(a.kv);
      // vLLM and SGLang keep the indexer's keys in FP8 with one FP32 scale per 128 elements,
      // whatever the format of the cache (vllm/v1/attention/backends/mla/indexer.py).
      const double keys =
          a.sparse ? a.sparse->index_dim + 4.0 * ((a.sparse->index_dim + 127) / 128) : 0.0;
      return latent + keys;
    }
    case AttentionKind::linear:
    case AttentionKind::mamba:
    case AttentionKind::none:
      return 0;
  }
  return 0;
}

double kv_bytes_per_token(const Model& model) {
  double sum = 0;
  for (const LayerGroup& group : model.layers)
    if (!group.attention.window) sum += group.count * kv_bytes_per_token(group.attention);
  return sum;
}

double kv_bytes_per_token_within_window(const Model& model) {
  double sum = 0;
  for (const LayerGroup& group : model.layers)
    sum += group.count * kv_bytes_per_token(group.attention);
  return sum;
}

double state_bytes_per_sequence(const Model& model) {
  double sum = 0;
  for (const LayerGroup& group : model.layers) sum += group.count * state_bytes(group.attention);
  return sum;
}

}  // namespace racktwin::catalog
