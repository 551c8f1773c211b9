// What is served: the shape of a language model. No behaviour, and no counting of work:
// cost/operators walks these shapes; their matrices and parameters are in matrices.hpp.
//
// A model is groups of equal layers in order of depth; a hybrid or interleaved model has
// several groups, and `pattern` is not kept: the order of layers does not change any cost.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "catalog/matrices.hpp"
#include "numerics/format.hpp"

namespace racktwin::catalog {

enum class AttentionKind : std::uint8_t {
  full,    // multi-head, grouped-query, multi-query
  latent,  // MLA: one compressed KV vector per token, shared by the heads
  linear,  // gated delta net, lightning and kin: a state per sequence, no KV per token
  mamba,   // Mamba-2: likewise, without an FFN beside it in most models
  none,    // a layer that is only an FFN (Nemotron-H)
};

struct Attention {
  AttentionKind kind = AttentionKind::full;
  int heads = 0, kv_heads = 0;
  int head_dim = 0;   // of queries and keys; for MLA nope_dim + rope_dim
  int value_dim = 0;  // of values, per head
  // Tokens a query sees at most: sliding window or chunk; absent = all.
  std::optional<std::int64_t> window;
  bool gated = false;  // an output gate as wide as the heads (Qwen3-Next, Qwen3.5)
  bool qkv_bias = false, output_bias = false, qk_norm = false, sinks = false;
  bool wide_qk_norm = false;      // qk_norm over all heads at once (MiniMax), not one head
  bool values_from_keys = false;  // no matrix of its own makes the values (Gemma 4)
  // MLA (DeepSeek-V2, arXiv 2405.04434): ranks of the compressed query and KV; rope_dim is
  // the part of a key that is not compressed. q_rank 0 = queries are not compressed.
  int q_rank = 0, kv_rank = 0, nope_dim = 0, rope_dim = 0;
  // DSA (DeepSeek-V3.2): an indexer picks `topk` tokens for each query; without heads of its
  // own a layer takes the choice of an earlier one (GLM-5.2).
  struct Sparse {
    int index_heads = 0, index_dim = 0;
    std::int64_t topk = 0;
    friend bool operator==(const Sparse&, const Sparse&) = default;
  };
  std::optional<Sparse> sparse;
  struct State {  // of `linear` and `mamba`: what a sequence carries instead of KV
    int key_heads = 0, key_dim = 0, value_heads = 0, value_dim = 0;  // linear
    int groups = 0, state_dim = 0;  // mamba; its heads are heads x head_dim above
    int conv_kernel = 0;
    Format format = Format::fp32;  // of the recurrent state; the convolution's is bf16
    friend bool operator==(const State&, const State&) = default;
  };
  std::optional<State> state;
  Format weights = Format::bf16;
  std::optional<Format> output_weights;  // of the output projection; absent = as `weights`
  Format kv = Format::bf16;
  friend bool operator==(const Attention&, const Attention&) = default;
};

struct Ffn {
  int intermediate = 0;  // of the dense FFN; 0 = none (MoE layers, Mamba layers)
  bool gated = true;     // three matrices (SwiGLU), not two
  struct Experts {
    int routed = 0;        // per layer, all of them
    int active = 0;        // per token, without the shared ones
    int intermediate = 0;  // of one routed expert (moe_intermediate_size, not intermediate_size)
    int shared = 0;        // how many always-on experts
    int shared_intermediate = 0;  // of one shared expert
    bool shared_gate = false;     // a learnt gate scales the shared expert (Qwen)
    bool router_bias = false;     // DeepSeek's correction, gpt-oss's bias
    bool latent = false;          // experts work in a narrower space (Nemotron-3 Super)
    int latent_dim = 0;
    Format weights = Format::bf16;
    friend bool operator==(const Experts&, const Experts&) = default;
  };
  std::optional<Experts> experts;
  bool bias = false;              // on each of its matrices, the experts' and the dense FFN's
  Format weights = Format::bf16;  // of the dense FFN and the shared experts
  friend bool operator==(const Ffn&, const Ffn&) = default;
};

struct LayerGroup {
  int count = 0;
  Attention attention;
  Ffn ffn;
  bool joins = false;  // an MTP module: (embedding, hidden) is projected to hidden first
  int norms = 2;       // vectors of `hidden` in a layer, besides those of the attention
  friend bool operator==(const LayerGroup&, const LayerGroup&) = default;
};

// What a publisher counts as parameters.
enum class Counting : std::uint8_t {
  whole,              // all but the MTP modules (DeepSeek, Meta, Qwen)
  without_embedding,  // gpt-oss, active: the table that is looked up is left out
  without_ends,       // GLM-4.5, active: neither embedding nor head
  mtp_without_ends,   // GLM-4.5, total: the same, and the MTP modules with them
};

struct Model {
  std::string name;    // "DeepSeek-R1-NVFP4"
  std::string source;  // where the shape was published
  int hidden = 0;
  std::int64_t vocabulary = 0;
  bool tied_embeddings = false;
  std::vector<LayerGroup> layers;
  std::optional<LayerGroup> mtp;  // multi-token-prediction module(s); count = modules trained
  std::int64_t max_position = 0;  // longest sequence it is made for
  Format embedding = Format::bf16, head = Format::bf16;
  // Published parameter counts, in units; absent where nobody published them.
  std::optional<double> published_total, published_active;
  Counting total_counts = Counting::whole, active_counts = Counting::whole;
  std::int64_t other_parameters = 0;  // vision tower and the like: resident, not walked
  // What of the config is not modelled, in words: shown with every result.
  std::vector<std::string> notes;

  int layer_count() const;
};

}  // namespace racktwin::catalog
