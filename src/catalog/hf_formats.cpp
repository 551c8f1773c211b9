#include "catalog/hf_formats.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.hpp"
#include "catalog/hf_pattern.hpp"

namespace racktwin::catalog {
namespace {

using numerics::Format;

// Ways in which checkpoints call the stack of layers.
constexpr std::array<std::string_view, 6> prefixes = {
    "model.language_model.", "language_model.model.", "language_model.", "backbone.", "model.",
    "model.model."};

// `name` from "layers." on when only such a prefix precedes it; else `name` as it is.
std::string_view without_prefix(std::string_view name) {
  for (const std::string_view prefix : prefixes)
    if (name.starts_with(prefix) && name.substr(prefix.size()).starts_with("layers."))
      return name.substr(prefix.size());
  return name;
}

// The layer that `entry` is about: "layers.7.mlp" gives 7; absent for patterns over layers.
std::optional<std::int64_t> layer_of(std::string_view entry) {
  constexpr std::string_view head = "layers.";
  if (!entry.starts_with(head)) return std::nullopt;
  std::string_view rest = entry.substr(head.size());
  const std::size_t end = rest.find_first_not_of("0123456789");
  if (end != std::string_view::npos && rest[end] != '.') return std::nullopt;
  return parse_integer(rest.substr(0, end));
}

std::string module_name(std::int64_t layer, std::string_view suffix) {
  return fmt::format("layers.{}.{}", layer, suffix);
}

Format dtype_of(const HfObject& config, const HfObject& text) {
  for (const HfObject& at : {text, config})
    for (const std::string_view key : {"dtype", "torch_dtype"}) {
      const std::string name = at.text(key);
      if (name == "float16" || name == "half") return Format::fp16;
      if (!name.empty() && name != "bfloat16" && name != "float32" && name != "auto")
        at.fail(fmt::format("\"{}\" is \"{}\"; known: bfloat16, float16, float32", key, name),
                Error::Code::unsupported);
      if (!name.empty()) return Format::bf16;
    }
  return Format::bf16;
}

}  // namespace

HfFormats::HfFormats(HfObject config, HfObject text, HfObject beside) : errors_(config) {
  plain_ = base_ = kv_ = dtype_of(config, text);
  if (beside.has("quantization")) {
    read(beside.object("quantization"));
    return;
  }
  for (const HfObject& at : {config, text})
    for (const std::string_view key : {"quantization_config", "compression_config"})
      if (at.has(key)) {
        read(at.object(key));
        return;
      }
}

// The format of NVIDIA Model Optimizer's algorithm `name`.
Format HfFormats::algorithm(const HfObject& at, const std::string& name) {
  struct Row {
    std::string_view name;
    Format format;
  };
  constexpr std::array<Row, 16> rows = {{{"FP8", Format::fp8},
                                         {"FP8_PB_WO", Format::fp8},
                                         {"FP8_PB_REAL", Format::fp8},
                                         {"FP8_PER_CHANNEL_PER_TOKEN", Format::fp8},
                                         {"NVFP4", Format::nvfp4},
                                         {"NVFP4_AWQ", Format::nvfp4},
                                         {"W4A16_NVFP4", Format::nvfp4},
                                         {"W4A8_NVFP4_FP8", Format::nvfp4},
                                         {"MXFP4", Format::mxfp4},
                                         {"W4A8_MXFP4_FP8", Format::mxfp4},
                                         {"MXFP8", Format::mxfp8},
                                         {"INT8_SQ", Format::int8},
                                         {"W8A8_SQ_PER_CHANNEL", Format::int8},
                                         {"W8A16", Format::int8},
                                         {"W4A16_AWQ", Format::int4},
                                         {"INT4_AWQ", Format::int4}}};
  for (const Row& row : rows)
    if (row.name == name) return row.format;
  at.fail(fmt::format("the quantisation \"{}\" is not understood", name), Error::Code::unsupported);
  return Format::bf16;
}

// The format of a `weights` entry of a config group.
Format HfFormats::stored(const HfObject& weights) {
  const std::int64_t bits = weights.integer("num_bits", 0);
  const std::int64_t group = weights.integer("group_size", 0);
  const std::string type = weights.text("type");
  if (type == "float" && bits == 8) return group == 32 ? Format::mxfp8 : Format::fp8;
  if (type == "float" && bits == 4) return group == 32 ? Format::mxfp4 : Format::nvfp4;
  if (type == "int" && bits == 8) return Format::int8;
  if (type == "int" && bits == 4) return Format::int4;
  weights.fail(fmt::format("weights of {} bits of type \"{}\" are not understood", bits, type),
               Error::Code::unsupported);
  return Format::bf16;
}

void HfFormats::read_layers(HfObject layers) {
  by_layer_ = true;
  for (const std::string& name : layers.keys()) {
    const HfObject entry = layers.object(name);
    listed_[std::string(without_prefix(name))] = algorithm(entry, entry.text("quant_algo"));
  }
}

void HfFormats::read_groups(HfObject quantization) {
  const HfObject groups = quantization.object("config_groups");
  for (const std::string& name : groups.keys()) {
    const HfObject group = groups.object(name);
    if (!group.has("weights")) continue;
    const Format format = stored(group.object("weights"));
    std::vector<std::string> targets = group.texts("targets");
    if (targets.empty()) targets = {"Linear"};
    for (const std::string& target : targets) {
      if (target == "Linear") {
        base_ = format;
        continue;
      }
      by_layer_ = true;
      const bool pattern = target.starts_with("re:") || target.find('*') != std::string::npos;
      if (pattern)
        rules_.push_back({target, format});
      else
        listed_[std::string(without_prefix(target))] = format;
    }
  }
  if (base_ != plain_) by_layer_ = false;
}

void HfFormats::leave_out(const std::vector<std::string>& entries) {
  for (const std::string& entry : entries) {
    const std::string_view bare = without_prefix(entry);
    if (const auto layer = layer_of(bare))
      apart_[*layer].emplace_back(bare);
    else
      out_.emplace_back(bare);
  }
}

void HfFormats::read(HfObject q) {
  const std::string method = q.text("quant_method"), algo = q.text("quant_algo");
  if (method == "fp8" || method == "fbgemm_fp8") {
    base_ = Format::fp8;
  } else if (method == "mxfp4") {
    base_ = Format::mxfp4;
  } else if (method == "awq" || method == "gptq") {
    const std::int64_t bits = q.integer("bits", 4);
    if (bits != 4 && bits != 8)
      q.fail(fmt::format("{} of {} bits is not understood", method, bits),
             Error::Code::unsupported);
    base_ = bits == 4 ? Format::int4 : Format::int8;
  } else if (!method.empty() && method != "modelopt" && method != "compressed-tensors") {
    q.fail(fmt::format("the quantisation method \"{}\" is not understood (known: fp8, fbgemm_fp8, "
                       "mxfp4, modelopt, compressed-tensors, awq, gptq)",
                       method),
           Error::Code::unsupported);
  }
  if (q.has("quantized_layers"))
    read_layers(q.object("quantized_layers"));
  else if (!algo.empty() && algo != "MIXED_PRECISION")
    base_ = algorithm(q, algo);
  else if (q.has("config_groups"))
    read_groups(q);
  else if (method.empty() || method == "modelopt" || method == "compressed-tensors")
    if (q.has("quant_algo") || !method.empty())
      q.fail("the quantisation says neither an algorithm nor groups of modules",
             Error::Code::unsupported);
  bool lists = by_layer_;
  for (const std::string_view key :
       {"exclude_modules", "ignore", "modules_to_not_convert", "ignored_layers"}) {
    lists = lists || q.has(key);
    leave_out(q.texts(key));
  }
  if (!lists && base_ != plain_ && method != "fp8")
    notes_.push_back(
        "the quantisation lists no modules that stay as they are: only router, "
        "embedding and head are taken to");

  const std::string kv =
      q.text(q.is_text("kv_cache_scheme") ? "kv_cache_scheme" : "kv_cache_quant_algo");
  if (!kv.empty()) kv_ = algorithm(q, kv);
  if (!q.is_text("kv_cache_scheme") && q.has("kv_cache_scheme"))
    kv_ = stored(q.object("kv_cache_scheme"));
}

bool HfFormats::left_out(std::int64_t layer, const std::string& name) const {
  const auto any = [&](const std::vector<std::string>& entries) {
    for (const std::string& entry : entries) {
      Match match = entry_matches(entry, name, steps_);
      if (match == Match::no && entry.starts_with("re:"))
        for (const std::string_view prefix : prefixes)
          if (match == Match::no) match = entry_matches(entry, std::string(prefix) + name, steps_);
      if (match == Match::unclear)
        errors_.fail(fmt::format("the pattern \"{:.60}\" of modules is not understood, or the "
                                 "lists of modules are too long",
                                 entry),
                     Error::Code::unsupported);
      if (errors_.failed()) return true;
      if (match == Match::yes) return true;
    }
    return false;
  };
  const auto own = apart_.find(layer);
  return (own != apart_.end() && any(own->second)) || any(out_);
}

Format HfFormats::of(std::int64_t layer, std::string_view suffix) const {
  if (base_ == plain_ && !by_layer_) return plain_;
  const std::string name = module_name(layer, suffix);
  if (by_layer_) {
    // The module itself, or one it lies in ("layers.0.ffn.experts").
    for (std::string part = name;;) {
      const auto found = listed_.find(part);
      if (found != listed_.end()) return found->second;
      const std::size_t dot = part.rfind('.');
      if (dot == std::string::npos) break;
      part.resize(dot);
    }
    for (const Rule& rule : rules_)
      for (const std::string_view prefix : prefixes)
        if (entry_matches(rule.entry, std::string(prefix) + name, steps_) == Match::yes)
          return rule.format;
    return plain_;
  }
  return left_out(layer, name) ? plain_ : base_;
}

Format HfFormats::outside(std::string_view name) const {
  const auto found = listed_.find(std::string(name));
  return found == listed_.end() ? plain_ : found->second;
}

bool HfFormats::leaves_out(std::string_view prefix) const {
  for (const std::string& entry : out_)
    if (entry.starts_with(prefix)) return true;
  return by_layer_;
}

}  // namespace racktwin::catalog
