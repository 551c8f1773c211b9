// The weight matrices of a model, and what follows from its shape alone: parameters, bytes of
// KV per token, bytes of state per sequence. That the parameters are counted right proves
// that the shape was read right (law: counted = published, 0.5 %).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "numerics/format.hpp"

namespace racktwin::catalog {

using numerics::Format;

struct Attention;
struct LayerGroup;
struct Model;

// How a weight matrix is split over the ranks of a replica.
enum class Shard : std::uint8_t {
  replicated,  // every attention rank holds all of it
  columns,     // the output dimension over tensor-parallel ranks
  rows,        // the input dimension over them: a sum over ranks follows
  experts,     // whole experts over expert-parallel ranks, their width over the rest
  vocabulary,  // embedding and head: over tensor-parallel ranks
};

enum class Module : std::uint8_t { attention, ffn, shared_expert, expert, router, embedding, head };

// One weight matrix of one layer (or of the model's ends): activations (tokens, in) times
// (in, out).
struct Matrix {
  std::string_view name;  // "q_a_proj", "gate_up_proj", "lm_head"
  Module module = Module::ffn;
  Shard shard = Shard::replicated;
  std::int64_t in = 0, out = 0;
  std::int64_t copies = 1;  // experts: how many lie in the layer
  std::int64_t active = 1;  // and how many of them a token multiplies with
  Format format = Format::bf16;
  bool multiplies = true;  // false: a table that is looked up (embedding)
};

// Every matrix of a layer of `group`, and those outside the layers. The single list that
// parameters, weight bytes and GEMMs come from.
std::vector<Matrix> matrices(const Model&, const LayerGroup& group);
std::vector<Matrix> end_matrices(const Model&);  // embedding, head

struct Parameters {
  std::int64_t total = 0;   // without MTP modules, as publishers count; norms and biases too
  std::int64_t active = 0;  // per token: experts touched only; the embedding table counts
  std::int64_t mtp = 0;     // of all modules, without the embedding and head they share
};
Parameters parameters(const Model&);

// Counted the way the publisher of this model counts (Counting), other parameters included:
// what published_total and published_active are to be compared with.
struct PublishedCount {
  std::int64_t total = 0, active = 0;
};
PublishedCount counted_as_published(const Model&);

// KV cache per token of one layer, all ranks together, without replication: bytes of keys
// and values (MLA: the latent and the rope part; DSA: the indexer's keys as well). 0 for
// layers that keep a state instead.
double kv_bytes_per_token(const Attention&);
double kv_bytes_per_token(const Model&);  // of layers without a window: what grows for ever
double kv_bytes_per_token_within_window(const Model&);  // of all layers, up to the window
double state_bytes_per_sequence(const Model&);          // of linear and Mamba layers

}  // namespace racktwin::catalog
