// What the families of Hugging Face configs say about their layers. hf_config.cpp finds the
// family, gives each layer its formats and folds equal layers into groups.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/hf_json.hpp"
#include "catalog/model.hpp"

namespace racktwin::catalog {

// Module names of one layer of a checkpoint, as quantisation lists use them; empty where the
// layer has no such module.
struct HfNames {
  std::string_view attention = "self_attn.q_proj", output = "self_attn.o_proj", ffn = "mlp.up_proj",
                   experts, shared;
};

struct HfLayer {
  LayerGroup group;
  HfNames names;
};

// What a family makes of its config, before formats.
struct HfShape {
  std::vector<HfLayer> layers;
  std::vector<HfLayer> mtp;  // at most one; `count` modules of it
  Counting total_counts = Counting::whole, active_counts = Counting::whole;
  std::vector<std::string> notes;
};

// A family's reader. `config` is the text part; errors are kept in its document.
using HfReader = HfShape (*)(const HfObject& config);

struct HfFamily {
  std::string_view name;  // an entry of "architectures", or a "model_type"
  HfReader read;          // nullptr: known, and refused with `note`
  std::string_view note = {};
};
const HfFamily* hf_family(std::string_view name);
std::vector<std::string> hf_family_names();  // that are read

// Readers and their common parts.
int hf_dimension(const HfObject& config, std::initializer_list<std::string_view> keys);
int hf_layers(const HfObject& config);  // 1 to 10,000
Attention hf_attention(const HfObject& config);
Ffn::Experts hf_experts(const HfObject& config);
// Per layer: is it MoE? From mlp_layer_types, moe_layer_freq, first_k_dense_replace.
std::vector<bool> hf_moe_layers(const HfObject& config, int layers);
// layer_types; empty when absent, an error unless there are `layers` entries.
std::vector<std::string> hf_layer_types(const HfObject& config, int layers);

HfShape hf_dense(const HfObject& config);
HfShape hf_qwen2(const HfObject& config);
HfShape hf_qwen3(const HfObject& config);
HfShape hf_mimo(const HfObject& config);
HfShape hf_nas(const HfObject& config);
HfShape hf_gemma4(const HfObject& config);
HfShape hf_mixtral(const HfObject& config);
HfShape hf_phimoe(const HfObject& config);
HfShape hf_qwen_moe(const HfObject& config);
HfShape hf_minimax(const HfObject& config);
HfShape hf_gpt_oss(const HfObject& config);
HfShape hf_llama4(const HfObject& config);
HfShape hf_glm4(const HfObject& config);
HfShape hf_mimo_v2(const HfObject& config);
HfShape hf_step3(const HfObject& config);
HfShape hf_latent(const HfObject& config);
HfShape hf_qwen_hybrid(const HfObject& config);
HfShape hf_nemotron_h(const HfObject& config);

}  // namespace racktwin::catalog
