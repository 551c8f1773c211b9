#include <fmt/format.h>

#include "base/text.hpp"
#include "catalog/read.hpp"

namespace racktwin::catalog {
namespace {

using yaml::Range;
using yaml::Section;

constexpr Range dimension{.low = 1, .high = 2147483647};
constexpr Range count{.low = 0, .high = 2147483647};

void format(Section section, std::string_view key, Format& value) {
  int index = static_cast<int>(value);
  section.choice(key, index, numerics::format_names());
  value = static_cast<Format>(index);
}

void format(Section section, std::string_view key, std::optional<Format>& value) {
  if (!section.has(key)) return;
  Format given = Format::bf16;
  format(section, key, given);
  value = given;
}

Attention read_attention(Section at) {
  Attention a;
  int kind = 0;
  at.choice("kind", kind, {"full", "latent", "linear", "mamba", "none"});
  a.kind = static_cast<AttentionKind>(kind);
  at.field("heads", a.heads, dimension);
  a.kv_heads = a.heads;
  at.field("kv_heads", a.kv_heads, dimension);
  at.field("q_rank", a.q_rank, count);
  at.field("kv_rank", a.kv_rank, dimension);
  at.field("nope_dim", a.nope_dim, dimension);
  at.field("rope_dim", a.rope_dim, dimension);
  if (a.kind == AttentionKind::latent) a.head_dim = a.nope_dim + a.rope_dim;
  at.field("head_dim", a.head_dim, dimension);
  a.value_dim = a.head_dim;
  at.field("value_dim", a.value_dim, dimension);
  at.field("window", a.window, dimension);
  at.field("gated", a.gated);
  at.field("qkv_bias", a.qkv_bias);
  at.field("output_bias", a.output_bias);
  at.field("qk_norm", a.qk_norm);
  at.field("wide_qk_norm", a.wide_qk_norm);
  at.field("sinks", a.sinks);
  at.field("values_from_keys", a.values_from_keys);
  if (at.has("sparse")) {
    Section sparse = at.section("sparse");
    a.sparse = Attention::Sparse{};
    for (const char* key : {"index_heads", "index_dim", "topk"}) sparse.require(key);
    sparse.field("index_heads", a.sparse->index_heads, dimension);
    sparse.field("index_dim", a.sparse->index_dim, dimension);
    sparse.field("topk", a.sparse->topk, dimension);
  }
  if (at.has("state")) {
    Section state = at.section("state");
    a.state = Attention::State{};
    state.field("key_heads", a.state->key_heads, count);
    state.field("key_dim", a.state->key_dim, count);
    state.field("value_heads", a.state->value_heads, count);
    state.field("value_dim", a.state->value_dim, count);
    state.field("groups", a.state->groups, count);
    state.field("state_dim", a.state->state_dim, count);
    state.field("conv_kernel", a.state->conv_kernel, count);
    format(state, "format", a.state->format);
  }
  return a;
}

Ffn read_ffn(Section at) {
  Ffn ffn;
  at.field("intermediate", ffn.intermediate, count);
  at.field("gated", ffn.gated);
  at.field("bias", ffn.bias);
  if (!at.has("experts")) return ffn;
  Section section = at.section("experts");
  Ffn::Experts e;
  for (const char* key : {"routed", "active", "intermediate"}) section.require(key);
  section.field("routed", e.routed, dimension);
  section.field("active", e.active, dimension);
  section.field("intermediate", e.intermediate, dimension);
  section.field("shared", e.shared, count);
  if (e.shared > 0) section.require("shared_intermediate");
  section.field("shared_intermediate", e.shared_intermediate, count);
  section.field("shared_gate", e.shared_gate);
  section.field("router_bias", e.router_bias);
  section.field("latent_dim", e.latent_dim, count);
  e.latent = e.latent_dim > 0;
  ffn.experts = e;
  return ffn;
}

LayerGroup read_group(Section at) {
  LayerGroup group{.count = 1};
  at.require("count");
  at.field("count", group.count, dimension);
  at.field("norms", group.norms, count);
  if (at.has("attention"))
    group.attention = read_attention(at.section("attention"));
  else
    group.attention.kind = AttentionKind::none;
  group.ffn = read_ffn(at.section("ffn"));
  return group;
}

void apply_format(Section formats, LayerGroup& group) {
  Attention& a = group.attention;
  format(formats, "attention", a.weights);
  format(formats, "attention_output", a.output_weights);
  format(formats, "kv", a.kv);
  format(formats, "ffn", group.ffn.weights);
  Format experts = group.ffn.experts ? group.ffn.experts->weights : Format::bf16;
  format(formats, "experts", experts);
  if (group.ffn.experts) group.ffn.experts->weights = experts;
}

// Formats of the whole model; what is not named keeps its own. `mtp` is one format for all of
// the MTP module: quantised checkpoints often leave it as it was trained.
void apply_formats(Section formats, Model& model) {
  for (LayerGroup& group : model.layers) apply_format(formats, group);
  if (model.mtp) {
    LayerGroup& group = *model.mtp;
    apply_format(formats, group);
    if (formats.has("mtp")) {
      Format whole = Format::bf16;
      format(formats, "mtp", whole);
      group.attention.weights = group.ffn.weights = whole;
      group.attention.output_weights.reset();
      if (group.ffn.experts) group.ffn.experts->weights = whole;
    }
  }
  format(formats, "embedding", model.embedding);
  format(formats, "head", model.head);
}

void read_shape(Section top, Model& model) {
  for (const char* key : {"hidden", "vocabulary", "max_position", "layers"}) top.require(key);
  top.field("hidden", model.hidden, dimension);
  top.field("vocabulary", model.vocabulary, dimension);
  top.field("max_position", model.max_position, dimension);
  top.field("tied_embeddings", model.tied_embeddings);
  for (Section group : top.list("layers")) model.layers.push_back(read_group(group));
  if (top.has("mtp")) {
    model.mtp = read_group(top.section("mtp"));
    model.mtp->joins = true;
    model.mtp->norms += 3;  // of the embedding, of the hidden state, before the head
  }
}

void read_published(Section top, FigureReader& reader, Model& model) {
  if (!top.has("published")) return;
  Section published = top.section("published");
  reader.prefix = "published.";
  double total = 0, active = 0;
  reader.read(published, "total", total, yaml::positive);
  reader.read(published, "active", active, yaml::positive);
  reader.prefix.clear();
  if (total > 0) model.published_total = total;
  if (active > 0) model.published_active = active;
  const auto counts = [&](std::string_view key, Counting& counting) {
    int index = static_cast<int>(counting);
    published.choice(key, index,
                     {"whole", "without_embedding", "without_ends", "mtp_without_ends"});
    counting = static_cast<Counting>(index);
  };
  counts("total_counts", model.total_counts);
  counts("active_counts", model.active_counts);
}

}  // namespace

std::string base_of(yaml::Document& document) {
  std::string base;
  document.top().field("base", base);
  return base;
}

Result<Model> read_model(yaml::Document& document, const ModelLookup& known,
                         std::vector<Figure>& figures) {
  Section top = document.top();
  FigureReader reader(top, figures);
  Model model;
  if (const std::string base = base_of(document); !base.empty()) {
    const Model* found = known(base);
    if (found) model = *found;
    if (found)
      model.notes.clear();
    else
      top.fail("base", fmt::format("there is no model \"{}\" to be the base", base),
               Error::Code::not_found);
  } else {
    read_shape(top, model);
  }
  top.require("name");
  top.field("name", model.name);
  top.require("shape");
  reader.note(top.section("shape"), "shape", fmt::format("{} layers", model.layer_count()));
  if (!figures.empty()) model.source = figures.back().source;
  apply_formats(top.section("formats"), model);
  read_published(top, reader, model);
  reader.read(top, "other_parameters", model.other_parameters, Range{.low = 0, .high = 1e12});
  top.field("notes", model.notes);
  RACKTWIN_TRY_DONE(document.finish());
  if (const auto fault = flaw(model)) {
    top.fail({}, *fault);
    RACKTWIN_TRY_DONE(document.finish());
  }
  return model;
}

}  // namespace racktwin::catalog
