#include <fmt/format.h>

#include "catalog/read.hpp"

namespace racktwin::catalog {
namespace {

constexpr int wide = 1 << 20;   // of a hidden or intermediate size
constexpr int heads = 1 << 16;  // of head counts
constexpr int head = 1 << 14;   // of the dimension of a head
constexpr double most_parameters = 1e15;

struct Bound {
  const char* name;
  std::int64_t value, low, high;
};

std::optional<std::string> first_out(std::initializer_list<Bound> bounds) {
  for (const Bound& b : bounds)
    if (b.value < b.low || b.value > b.high)
      return fmt::format("{} must be from {} to {}, found {}", b.name, b.low, b.high, b.value);
  return std::nullopt;
}

std::optional<std::string> state_flaw(const Attention& a) {
  if (!a.state) return "a layer that keeps a state needs the shape of it";
  const Attention::State& s = *a.state;
  if (a.kind == AttentionKind::linear)
    return first_out({{"key heads", s.key_heads, 1, heads},
                      {"key dimension", s.key_dim, 1, head},
                      {"value heads", s.value_heads, 1, heads},
                      {"value dimension", s.value_dim, 1, head},
                      {"convolution kernel", s.conv_kernel, 0, head}});
  return first_out({{"heads", a.heads, 1, heads},
                    {"head dimension", a.head_dim, 1, head},
                    {"groups", s.groups, 1, heads},
                    {"state dimension", s.state_dim, 1, head},
                    {"convolution kernel", s.conv_kernel, 0, head}});
}

std::optional<std::string> attention_flaw(const Attention& a) {
  if (a.kind == AttentionKind::none) return std::nullopt;
  if (a.kind == AttentionKind::linear || a.kind == AttentionKind::mamba) return state_flaw(a);
  if (auto out = first_out({{"heads", a.heads, 1, heads},
                            {"head dimension", a.head_dim, 1, head},
                            {"value dimension", a.value_dim, 1, head}}))
    return out;
  if (a.window && *a.window < 1)
    return fmt::format("an attention window must be at least 1 token, found {}", *a.window);
  if (a.sparse) {
    if (auto out = first_out({{"index heads", a.sparse->index_heads, 0, heads},
                              {"index dimension", a.sparse->index_dim, 0, head},
                              {"top-k of the indexer", a.sparse->topk, 1, INT32_MAX}}))
      return out;
    if (a.kind != AttentionKind::latent) return "a sparse indexer is understood with MLA only";
  }
  if (a.kind == AttentionKind::latent) {
    if (a.nope_dim + a.rope_dim != a.head_dim)
      return fmt::format("the query head of {} is not its parts: {} + {}", a.head_dim, a.nope_dim,
                         a.rope_dim);
    return first_out({{"q rank", a.q_rank, 0, wide},
                      {"kv rank", a.kv_rank, 1, wide},
                      {"nope dimension", a.nope_dim, 1, head},
                      {"rope dimension", a.rope_dim, 1, head}});
  }
  if (auto out = first_out({{"kv heads", a.kv_heads, 1, heads}})) return out;
  if (a.heads % a.kv_heads != 0)
    return fmt::format("{} heads cannot share {} kv heads evenly", a.heads, a.kv_heads);
  return std::nullopt;
}

std::optional<std::string> ffn_flaw(const Ffn& ffn) {
  if (auto out = first_out({{"intermediate size", ffn.intermediate, 0, wide}})) return out;
  if (!ffn.experts) return std::nullopt;
  const Ffn::Experts& e = *ffn.experts;
  if (auto out =
          first_out({{"routed experts", e.routed, 1, heads},
                     {"intermediate size of an expert", e.intermediate, 1, wide},
                     {"shared experts", e.shared, 0, heads},
                     {"latent dimension of the experts", e.latent_dim, e.latent ? 1 : 0, wide},
                     {"active experts", e.active, 1, e.routed}}))
    return out;
  return first_out({{"width of all shared experts", std::int64_t{e.shared} * e.shared_intermediate,
                     e.shared > 0 ? 1 : 0, wide}});
}

double size_of(const Model& model, const LayerGroup& group) {
  double sum = 0;
  for (const Matrix& m : matrices(model, group))
    sum += static_cast<double>(m.in) * static_cast<double>(m.out) * static_cast<double>(m.copies);
  return sum * group.count;
}

}  // namespace

std::optional<std::string> flaw(const Model& model) {
  if (auto out = first_out({{"hidden size", model.hidden, 1, wide},
                            {"vocabulary", model.vocabulary, 1, 1 << 26},
                            {"longest sequence", model.max_position, 1, INT32_MAX}}))
    return out;
  if (model.layers.empty()) return "a model needs at least one layer";
  std::int64_t layers = 0;
  double parameters = 2.0 * model.hidden * static_cast<double>(model.vocabulary);
  std::vector<const LayerGroup*> groups;
  for (const LayerGroup& group : model.layers) groups.push_back(&group);
  if (model.mtp) groups.push_back(&*model.mtp);
  for (const LayerGroup* group : groups) {
    layers += group->count;
    if (auto out = first_out({{"layers", group->count, 1, 10'000}, {"layers", layers, 1, 10'000}}))
      return out;
    if (auto out = attention_flaw(group->attention)) return out;
    if (auto out = ffn_flaw(group->ffn)) return out;
    parameters += size_of(model, *group);
  }
  if (parameters > most_parameters)
    return fmt::format("{:.3g} parameters: a shape beyond {:.0e} is taken for a mistake",
                       parameters, most_parameters);
  return std::nullopt;
}

}  // namespace racktwin::catalog
