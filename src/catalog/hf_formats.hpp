// Which number format each module of a checkpoint is stored in, from quantization_config or
// hf_quant_config.json: fp8, mxfp4, modelopt, compressed-tensors, awq, gptq, with their lists
// of modules left out or quantised apart. Used by the hf_*.cpp files only.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "catalog/hf_json.hpp"
#include "numerics/format.hpp"

namespace racktwin::catalog {

class HfFormats {
 public:
  // `beside` is an hf_quant_config.json, an empty object when there is none; it wins. Errors
  // are kept in the document of `config`.
  HfFormats(HfObject config, HfObject text, HfObject beside);

  // Of module `suffix` of layer `layer`, e.g. (3, "self_attn.q_proj").
  numerics::Format of(std::int64_t layer, std::string_view suffix) const;
  // Of a module by its own name, e.g. "lm_head": unquantised unless it is listed as quantised.
  numerics::Format outside(std::string_view name) const;
  // Whether the modules named `prefix`... are left out, e.g. "mtp".
  bool leaves_out(std::string_view prefix) const;

  numerics::Format plain() const { return plain_; }  // of what is not quantised
  numerics::Format kv() const { return kv_; }
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  struct Rule {
    std::string entry;
    numerics::Format format;
  };
  void read(HfObject quantization);
  void read_groups(HfObject quantization);
  void read_layers(HfObject layers);
  void leave_out(const std::vector<std::string>& entries);
  numerics::Format algorithm(const HfObject& at, const std::string& name);
  numerics::Format stored(const HfObject& weights);
  bool left_out(std::int64_t layer, const std::string& name) const;

  HfObject errors_;
  // Of matching patterns: what real checkpoints need is below a tenth of it.
  mutable std::int64_t steps_ = 5'000'000;
  numerics::Format plain_ = numerics::Format::bf16, base_ = numerics::Format::bf16,
                   kv_ = numerics::Format::bf16;
  bool by_layer_ = false;                                   // only what is listed is quantised
  std::map<std::string, numerics::Format> listed_;          // by name without the model's prefix
  std::vector<Rule> rules_;                                 // targets that are patterns
  std::map<std::int64_t, std::vector<std::string>> apart_;  // left out, of one layer
  std::vector<std::string> out_;                            // left out, any layer
  std::vector<std::string> notes_;
};

}  // namespace racktwin::catalog
