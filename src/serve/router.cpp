#include "serve/router.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/rng.hpp"
#include "serve/lru_index.hpp"

namespace racktwin::serve {
namespace {

using workload::RequestView;
using Views = std::span<const ReplicaView>;
using Choice = std::optional<std::size_t>;

// The accepting view with the least cost; ties are broken at random, so that equal replicas
// share the load. `cost` maps a view to a number.
template <class Cost>
Choice least(Views views, Rng& rng, Cost cost) {
  Choice best;
  double best_cost = 0;
  std::uint64_t ties = 0;
  for (std::size_t i = 0; i < views.size(); ++i) {
    if (!views[i].accepts) continue;
    const double c = cost(views[i]);
    if (!best || c < best_cost) {
      best = i;
      best_cost = c;
      ties = 1;
    } else if (c == best_cost && rng.below(++ties) == 0) {
      best = i;  // reservoir: each of the tied is kept with equal chance
    }
  }
  return best;
}

// For tables by replica: a router may be asked about some of its pool only.
std::size_t ids_below(Views views) {
  std::uint32_t most = 0;
  for (const ReplicaView& view : views) most = std::max(most, view.id.index);
  return std::size_t{most} + 1;
}

double load(const ReplicaView& view) {
  return view.waiting + view.running;
}

// The one whose turn was longest ago: right also where a request may only go to some of them.
class RoundRobin final : public Router {
 public:
  Choice route(const RequestView&, Views views) override {
    last_turn_.resize(std::max(last_turn_.size(), ids_below(views)));
    Choice best;
    for (std::size_t i = 0; i < views.size(); ++i)
      if (views[i].accepts && (!best || turn_of(views[i]) < turn_of(views[*best]))) best = i;
    if (best) last_turn_[views[*best].id.index] = ++turn_;
    return best;
  }

 private:
  std::uint64_t turn_of(const ReplicaView& view) const { return last_turn_[view.id.index]; }
  std::vector<std::uint64_t> last_turn_;  // [replica]
  std::uint64_t turn_ = 0;
};

class Random final : public Router {
 public:
  explicit Random(Rng rng) : rng_(rng) {}
  Choice route(const RequestView&, Views views) override {
    return least(views, rng_, [](const ReplicaView&) { return 0.0; });
  }

 private:
  Rng rng_;
};

class LeastLoaded final : public Router {
 public:
  explicit LeastLoaded(Rng rng) : rng_(rng) {}
  Choice route(const RequestView&, Views views) override { return least(views, rng_, load); }

 private:
  Rng rng_;
};

// Mitzenmacher 2001: the better of two random choices.
class PowerOfTwo final : public Router {
 public:
  explicit PowerOfTwo(Rng rng) : rng_(rng) {}
  Choice route(const RequestView&, Views views) override {
    const Choice a = pick(views), b = pick(views);
    if (!a || !b) return a;
    return load(views[*b]) < load(views[*a]) ? b : a;
  }

 private:
  Choice pick(Views views) {
    // Probing from a random start: uniform while all accept, near enough when few do not.
    const std::size_t start = rng_.below(views.size());
    for (std::size_t k = 0; k < views.size(); ++k)
      if (const std::size_t i = (start + k) % views.size(); views[i].accepts) return i;
    return std::nullopt;
  }
  Rng rng_;
};

// Rendezvous hashing (Thaler & Ravishankar 1998): a session stays where it is as long as its
// replica accepts, and only its sessions move when one leaves.
class Session final : public Router {
 public:
  explicit Session(Rng rng) : rng_(rng) {}
  Choice route(const RequestView& request, Views views) override {
    if (!request.session) return least(views, rng_, load);
    Choice best;
    std::uint64_t best_weight = 0;
    for (std::size_t i = 0; i < views.size(); ++i) {
      if (!views[i].accepts) continue;
      const std::uint64_t weight = mix(request.session->index, views[i].id.index);
      if (!best || weight > best_weight) {
        best = i;
        best_weight = weight;
      }
    }
    return best;
  }

 private:
  Rng rng_;
};

// Dynamo's KV router: cost = blocks still to prefill there, with this prompt and without what
// is cached, plus blocks being decoded. Here in tokens: the block size cancels out.
class KvAware final : public Router {
 public:
  KvAware(const RouterSpec& spec, Rng rng) : spec_(spec), rng_(rng) {}
  Choice route(const RequestView& request, Views views) override {
    const auto cost = [&](const ReplicaView& view) {
      const double credit = spec_.overlap_weight * static_cast<double>(view.cached_tokens);
      const double prefill = static_cast<double>(view.prefill_tokens + request.isl) - credit;
      return std::max(prefill, 0.0) + static_cast<double>(view.kv_tokens);
    };
    if (spec_.temperature <= 0) return least(views, rng_, cost);
    return soft(views, cost);
  }

 private:
  // Soft-max over -cost / range / temperature.
  template <class Cost>
  Choice soft(Views views, Cost cost) {
    double low = 0, high = 0;
    bool any = false;
    for (const ReplicaView& view : views) {
      if (!view.accepts) continue;
      const double c = cost(view);
      low = any ? std::min(low, c) : c;
      high = any ? std::max(high, c) : c;
      any = true;
    }
    if (!any) return std::nullopt;
    const double range = std::max(high - low, 1e-9);
    weights_.clear();
    double total = 0;
    for (const ReplicaView& view : views) {
      if (view.accepts) total += std::exp(-(cost(view) - low) / range / spec_.temperature);
      weights_.push_back(total);
    }
    const double draw = rng_.uniform() * total;
    for (std::size_t i = 0; i < views.size(); ++i)
      if (views[i].accepts && draw < weights_[i]) return i;
    return least(views, rng_, cost);
  }
  RouterSpec spec_;
  Rng rng_;
  std::vector<double> weights_;
};

// SGLang's cache-aware policy: the replica whose remembered prompts match best, unless the
// load is out of balance. It remembers what it sent, not what the engines really hold.
class CacheAware final : public Router {
 public:
  CacheAware(const RouterSpec& spec, Rng rng) : spec_(spec), rng_(rng) {}
  Choice route(const RequestView& request, Views views) override {
    trees_.resize(std::max(trees_.size(), ids_below(views)));
    const Choice choice = choose(request, views);
    if (choice) remember(trees_[views[*choice].id.index], request);
    return choice;
  }

 private:
  static constexpr std::size_t tree_limit = std::size_t{1} << 20;  // blocks per replica

  Choice choose(const RequestView& request, Views views) {
    std::int32_t lowest = INT32_MAX, highest = 0;
    for (const ReplicaView& view : views) {
      if (!view.accepts) continue;
      lowest = std::min(lowest, view.in_flight);
      highest = std::max(highest, view.in_flight);
    }
    const auto in_flight = [](const ReplicaView& view) { return double(view.in_flight); };
    if (highest - lowest > spec_.balance_absolute && highest > spec_.balance_relative * lowest)
      return least(views, rng_, in_flight);
    Choice best;
    std::size_t best_match = 0;
    for (std::size_t i = 0; i < views.size(); ++i) {
      if (!views[i].accepts) continue;
      const std::size_t match = matched(trees_[views[i].id.index], request);
      if (match > best_match) {
        best = i;
        best_match = match;
      }
    }
    const auto asked = static_cast<double>(request.blocks.size());
    if (best && static_cast<double>(best_match) > spec_.cache_threshold * asked) return best;
    const auto tree_size = [&](const ReplicaView& view) {
      return static_cast<double>(trees_[view.id.index].size());
    };
    return least(views, rng_, tree_size);
  }
  static std::size_t matched(const LruIndex& tree, const RequestView& request) {
    std::size_t count = 0;
    while (count < request.blocks.size() && tree.find(request.blocks[count]) != LruIndex::none)
      ++count;
    return count;
  }
  static void remember(LruIndex& tree, const RequestView& request) {
    // The end of the prompt first, so that it is forgotten before the beginning.
    for (std::size_t i = request.blocks.size(); i-- > 0;) {
      std::uint32_t slot = tree.find(request.blocks[i]);
      if (slot == LruIndex::none)
        slot = tree.insert(request.blocks[i]);
      else
        tree.unlink(slot);
      tree.link(slot);
    }
    while (tree.size() > tree_limit) {
      const std::uint32_t oldest = tree.oldest();
      tree.unlink(oldest);
      tree.erase(oldest);
    }
  }
  RouterSpec spec_;
  Rng rng_;
  std::vector<LruIndex> trees_;  // [replica]
};

Rng stream(std::uint64_t seed, std::uint64_t index) {
  return Rng(seed, "router", index);
}

template <class Policy>
std::unique_ptr<Router> plain(const RouterSpec&, std::uint64_t seed, std::uint64_t index) {
  return std::make_unique<Policy>(stream(seed, index));
}
template <class Policy>
std::unique_ptr<Router> with_spec(const RouterSpec& spec, std::uint64_t seed, std::uint64_t index) {
  return std::make_unique<Policy>(spec, stream(seed, index));
}
std::unique_ptr<Router> round_robin(const RouterSpec&, std::uint64_t, std::uint64_t) {
  return std::make_unique<RoundRobin>();
}

constexpr std::array<RouterRow, 7> table = {{
    {"round-robin", "each replica in turn", false, false, round_robin},
    {"random", "any replica, by chance", false, false, plain<Random>},
    {"least-loaded", "fewest requests waiting and running", false, true, plain<LeastLoaded>},
    {"power-of-two", "the less loaded of two random replicas", false, true, plain<PowerOfTwo>},
    {"session", "a session keeps its replica (rendezvous hash)", false, true, plain<Session>},
    {"kv-aware", "least prefill left after cache hits, plus KV in use (Dynamo)", true, false,
     with_spec<KvAware>},
    {"cache-aware", "best remembered prefix unless unbalanced (SGLang)", false, false,
     with_spec<CacheAware>},
}};

}  // namespace

std::span<const RouterRow> router_table() {
  return table;
}

const RouterRow* router_row(std::string_view name) {
  const auto row =
      std::find_if(table.begin(), table.end(), [&](const RouterRow& r) { return r.name == name; });
  return row == table.end() ? nullptr : &*row;
}

std::vector<std::string> router_names() {
  std::vector<std::string> names;
  for (const RouterRow& row : table) names.emplace_back(row.name);
  return names;
}

}  // namespace racktwin::serve
