#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.hpp"
#include "catalog/catalog.hpp"
#include "catalog/hf_families.hpp"
#include "catalog/hf_formats.hpp"
#include "catalog/hf_json.hpp"
#include "catalog/read.hpp"

namespace racktwin::catalog {
namespace {

// The family that "architectures" or "model_type" name: of the config, then of its text part.
const HfFamily* family_of(const HfObject& config, const HfObject& text) {
  for (const HfObject& at : {config, text}) {
    for (const std::string& name : at.texts("architectures"))
      if (const HfFamily* family = hf_family(name)) return family;
    if (const HfFamily* family = hf_family(at.text("model_type"))) return family;
  }
  return nullptr;
}

Error unknown_family(const HfObject& config) {
  std::string name = config.text("model_type");
  const auto architectures = config.texts("architectures");
  if (!architectures.empty()) name = architectures.front();
  if (name.empty() && config.has("quantization"))
    return {Error::Code::invalid_input,
            "this is an hf_quant_config.json: it lies beside a config.json and says how that "
            "model is quantised; give the config.json",
            {}};
  if (name.empty())
    return {Error::Code::invalid_input,
            "the config names no architecture (\"architectures\" or \"model_type\")",
            {}};
  return {Error::Code::unsupported,
          unknown_name("architecture", name, hf_family_names()) +
              "; its layers are not understood, and not guessed",
          {}};
}

void give_formats(HfLayer& layer, std::int64_t index, const HfFormats& formats) {
  Attention& a = layer.group.attention;
  const HfNames& names = layer.names;
  if (a.kind != AttentionKind::none) {
    a.weights = formats.of(index, names.attention);
    const Format output = formats.of(index, names.output);
    if (output != a.weights) a.output_weights = output;
    a.kv = formats.kv();
  }
  Ffn& ffn = layer.group.ffn;
  ffn.weights = formats.plain();
  if (ffn.intermediate > 0)
    ffn.weights = formats.of(index, names.ffn);
  else if (ffn.experts && ffn.experts->shared > 0)
    ffn.weights = formats.of(index, names.shared);
  if (ffn.experts) ffn.experts->weights = formats.of(index, names.experts);
}

// Equal layers become one group, wherever they lie.
std::vector<LayerGroup> folded(const std::vector<HfLayer>& layers) {
  std::vector<LayerGroup> groups;
  for (const HfLayer& layer : layers) {
    const auto same = std::find_if(groups.begin(), groups.end(), [&](LayerGroup group) {
      group.count = layer.group.count;
      return group == layer.group;
    });
    if (same == groups.end())
      groups.push_back(layer.group);
    else
      same->count += layer.group.count;
  }
  return groups;
}

// Parts beside the language model.
void note_other_parts(const HfObject& config, Model& model) {
  for (const auto& [key, part] :
       {std::pair{"vision_config", "vision tower"}, std::pair{"audio_config", "audio tower"}})
    if (config.has(key))
      model.notes.push_back(
          fmt::format("the {} is not counted: only the language model is read", part));
}

Model assemble(const HfObject& config, const HfObject& text, const HfFormats& formats,
               HfShape shape) {
  Model model;
  model.hidden = hf_dimension(text, {"hidden_size"});
  model.vocabulary = text.require({"vocab_size"});
  model.max_position = text.require({"max_position_embeddings", "max_sequence_length"});
  // Either level may say it; the text part knows better.
  model.tied_embeddings =
      text.flag("tie_word_embeddings", config.flag("tie_word_embeddings", false));
  for (std::size_t i = 0; i < shape.layers.size(); ++i)
    give_formats(shape.layers[i], static_cast<std::int64_t>(i), formats);
  model.layers = folded(shape.layers);
  if (!shape.mtp.empty()) {
    HfLayer& mtp = shape.mtp.front();
    if (formats.leaves_out("mtp")) {
      mtp.group.attention.weights = formats.plain();
      mtp.group.attention.kv = formats.kv();
      mtp.group.ffn.weights = formats.plain();
      if (mtp.group.ffn.experts) mtp.group.ffn.experts->weights = formats.plain();
    } else {
      give_formats(mtp, static_cast<std::int64_t>(shape.layers.size()), formats);
    }
    mtp.group.joins = true;
    mtp.group.norms += 3;
    model.mtp = mtp.group;
  }
  model.embedding = formats.plain();
  model.head = model.tied_embeddings ? formats.plain() : formats.outside("lm_head");
  model.total_counts = shape.total_counts;
  model.active_counts = shape.active_counts;
  model.notes = std::move(shape.notes);
  for (const std::string& note : formats.notes()) model.notes.push_back(note);
  note_other_parts(config, model);
  return model;
}

}  // namespace

Result<Model> import_hf_config(std::string_view json, std::string_view quantization,
                               std::string name) {
  RACKTWIN_TRY(const HfDocument document, HfDocument::parse(json, name));
  RACKTWIN_TRY(const HfDocument beside,
               HfDocument::parse(quantization.empty() ? "{}" : quantization,
                                 name + " (hf_quant_config.json)"));
  const auto placed = [&](Error error) {
    if (error.where.empty()) error.where = name;
    return error;
  };
  const HfObject config = document.top();
  HfObject text = config;
  for (const std::string_view key : {"text_config", "llm_config", "language_config"})
    if (config.has(key)) {
      text = config.object(key);
      break;
    }
  const HfFamily* family = family_of(config, text);
  if (document.error()) return placed(*document.error());
  if (!family) return placed(unknown_family(config));
  if (!family->read)
    return placed({Error::Code::unsupported,
                   fmt::format("the architecture \"{}\" is known, and not modelled: {}",
                               family->name, family->note),
                   {}});
  const HfFormats formats(config, text, beside.top());
  HfShape shape = family->read(text);
  if (document.error()) return placed(*document.error());
  if (beside.error()) return placed(*beside.error());
  Model model = assemble(config, text, formats, std::move(shape));
  if (document.error()) return placed(*document.error());
  if (auto fault = flaw(model))
    return placed({Error::Code::invalid_input, "the shape contradicts itself: " + *fault, {}});
  model.source = name;
  model.name = std::move(name);
  return model;
}

}  // namespace racktwin::catalog
