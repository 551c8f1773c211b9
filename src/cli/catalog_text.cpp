#include "cli/catalog_text.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cli/overrides.hpp"

namespace racktwin::cli {
namespace {

void add_once(std::vector<std::string>& names, std::string name) {
  if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(std::move(name));
}

// 671026419200 -> "671.0 B".
std::string billions(double count) {
  return count >= 1e9 ? fmt::format("{:.1f} B", count / 1e9) : fmt::format("{:.1f} M", count / 1e6);
}

std::string whole(double count) {
  return grouped(static_cast<std::int64_t>(count + 0.5));
}

std::string published(const std::optional<double>& count) {
  return count ? " (published: " + billions(*count) + ")" : "";
}

std::string ffn_text(const catalog::Ffn& ffn) {
  std::string text;
  if (ffn.intermediate > 0)
    text = fmt::format("dense FFN {} in {}", ffn.intermediate, numerics::info(ffn.weights).name);
  if (const auto& e = ffn.experts) {
    text += fmt::format("{}{} experts of {} in {}, {} active", text.empty() ? "" : ", ", e->routed,
                        e->intermediate, numerics::info(e->weights).name, e->active);
    if (e->shared > 0) text += fmt::format(", {} shared", e->shared);
  }
  return text.empty() ? "no FFN" : text;
}

std::string layer_text(const catalog::LayerGroup& group) {
  const catalog::Attention& a = group.attention;
  std::string text = fmt::format("  {:>3} x {}", group.count, attention_name(a));
  if (a.kind != catalog::AttentionKind::none)
    text += fmt::format(" in {}", numerics::info(a.weights).name);
  if (a.kind == catalog::AttentionKind::full)
    text += fmt::format(" ({} heads, {} of KV, {} wide)", a.heads, a.kv_heads, a.head_dim);
  if (const double kv = catalog::kv_bytes_per_token(a); kv > 0)
    text += fmt::format(", {} B of KV per token in {}", whole(kv), numerics::info(a.kv).name);
  return text + "; " + ffn_text(group.ffn) + "\n";
}

}  // namespace

std::string attention_name(const catalog::Attention& a) {
  switch (a.kind) {
    case catalog::AttentionKind::latent:
      return a.sparse ? "sparse latent" : "latent";
    case catalog::AttentionKind::linear:
      return "linear";
    case catalog::AttentionKind::mamba:
      return "mamba";
    case catalog::AttentionKind::none:
      return "none";
    case catalog::AttentionKind::full:
      break;
  }
  const std::string window = a.window ? fmt::format("window {} ", *a.window) : "";
  if (a.kv_heads == a.heads) return window + "multi-head";
  return window + (a.kv_heads == 1 ? "multi-query" : "grouped-query");
}

ModelFacts facts_of(const catalog::Model& model) {
  std::vector<std::string> kinds, formats;
  for (const catalog::LayerGroup& group : model.layers) {
    add_once(kinds, attention_name(group.attention));
    for (const catalog::Matrix& matrix : catalog::matrices(model, group))
      add_once(formats, std::string(numerics::info(matrix.format).name));
  }
  return {.attention = fmt::format("{}", fmt::join(kinds, " + ")), .formats = std::move(formats)};
}

std::string model_text(const catalog::Model& model) {
  const catalog::Parameters counted = catalog::parameters(model);
  std::string text = model.name + "\n";
  const auto line = [&](std::string_view key, const std::string& value) {
    text += fmt::format("  {:<12} {}\n", key, value);
  };
  line("parameters", billions(double(counted.total)) + published(model.published_total));
  line("active",
       billions(double(counted.active)) + " per token" + published(model.published_active));
  if (counted.mtp > 0) line("MTP", billions(double(counted.mtp)) + " besides");
  line("KV cache", whole(catalog::kv_bytes_per_token(model)) + " B per token");
  if (const double state = catalog::state_bytes_per_sequence(model); state > 0)
    line("state", whole(state) + " B per sequence");
  line("longest", grouped(model.max_position) + " tokens");
  line("layers", fmt::format("{}, {} wide", model.layer_count(), model.hidden));
  for (const catalog::LayerGroup& group : model.layers) text += "  " + layer_text(group);
  for (const std::string& what : model.notes) line("note", what);
  if (!model.source.empty()) line("source", model.source);
  return text;
}

std::string wrapped(std::string_view head, const std::vector<std::string>& names) {
  std::string text, line = std::string(head);
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string word = names[i] + (i + 1 < names.size() ? ", " : "");
    if (line.size() + word.size() > 100) {
      text += line + "\n";
      line.assign(head.size(), ' ');
    }
    line += word;
  }
  return text + line + "\n";
}

std::string figure_table(const std::vector<catalog::Figure>& figures) {
  std::string text;
  for (const catalog::Figure& f : figures) {
    text += fmt::format("  {:<22} {:<16} {}", f.key, f.value, name(f.origin));
    if (!f.source.empty()) text += ": " + f.source;
    if (!f.read.empty()) text += " (read " + f.read + ")";
    text += "\n";
    if (!f.note.empty()) text += fmt::format("  {:<22} {}\n", "", f.note);
  }
  return text;
}

}  // namespace racktwin::cli
