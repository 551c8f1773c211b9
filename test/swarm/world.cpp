// Drawing a world from its seed.
#include "world.hpp"

#include <fmt/format.h>

namespace racktwin::swarm {
namespace {

using serve::Cluster;
using serve::Role;
using serve::Rules;

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : rng_(seed, "world") {}
  bool chance(double part) { return rng_.uniform() < part; }
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(rng_.below(static_cast<std::uint64_t>(high - low + 1)));
  }
  int whole(std::int64_t low, std::int64_t high) { return static_cast<int>(between(low, high)); }
  double uniform() { return rng_.uniform(); }

 private:
  Rng rng_;
};

workload::Lengths lengths(Dice& dice, std::int64_t most) {
  using Kind = workload::Lengths::Kind;
  const std::int64_t high = dice.between(1, most);
  if (dice.chance(0.3)) return {.kind = Kind::fixed, .mean = static_cast<double>(high)};
  if (dice.chance(0.5)) return {.kind = Kind::uniform, .min = 1, .max = high};
  return {.kind = Kind::log_normal,
          .mean = 1 + static_cast<double>(high) / 2,
          .cv = 0.2 + 2 * dice.uniform(),
          .max = 2 * high};
}

// Rules of an engine, of a size at which everything happens within a hundred requests.
Rules rules(Dice& dice, int engine, std::int64_t longest) {
  Rules r;
  r.mixed = engine != 1;
  r.chunked_prefill = engine != 2 || dice.chance(0.2);
  r.reserve_output = engine == 2;
  r.estimate_output = r.preempt_least_done = engine == 1;
  r.block_tokens = dice.whole(1, 16);
  r.max_batch_tokens = dice.between(8, 200);
  if (dice.chance(0.3)) {
    r.speculation.draft_tokens = dice.whole(1, 3);
    for (int i = 0; i < r.speculation.draft_tokens; ++i)
      r.speculation.acceptance.push_back(dice.uniform());
    r.block_tokens += r.speculation.draft_tokens;
  }
  const std::int64_t per_sequence = 1 + r.speculation.draft_tokens;
  r.max_sequences = static_cast<int>(std::clamp<std::int64_t>(
      r.max_batch_tokens / per_sequence, 1, dice.chance(0.5) ? dice.between(1, 6) : 64));
  if (dice.chance(0.25)) r.window = dice.between(1, 60);
  r.prefix_caching = dice.chance(0.8);
  const std::int64_t one = longest / r.block_tokens + 3;
  r.blocks = dice.chance(0.6) ? one + dice.between(0, one) : one * dice.between(2, 20);
  if (dice.chance(0.1)) r.blocks = std::max<std::int64_t>(2, one / 2);
  return r;
}

serve::KvTiers tiers(Dice& dice, Bytes block) {
  serve::KvTiers t;
  if (dice.chance(0.7)) t.host = block * static_cast<double>(dice.between(1, 60));
  if (dice.chance(0.4)) t.nvme = block * static_cast<double>(dice.between(1, 100));
  if (dice.chance(0.3)) t.remote = block * static_cast<double>(dice.between(1, 200));
  t.host_bandwidth = (1 + 50 * dice.uniform()) * unit::GBps;
  t.nvme_bandwidth = (1 + 5 * dice.uniform()) * unit::GBps;
  t.remote_bandwidth = (0.1 + dice.uniform()) * unit::GBps;
  t.host_latency = dice.whole(0, 20) * unit::us;
  t.nvme_latency = dice.whole(0, 200) * unit::us;
  t.remote_latency = dice.whole(0, 2000) * unit::us;
  return t;
}

serve::RouterSpec router(Dice& dice) {
  serve::RouterSpec spec;
  const auto table = serve::router_table();
  spec.policy = table[static_cast<std::size_t>(dice.whole(0, int(table.size()) - 1))].name;
  if (dice.chance(0.3)) spec.staleness = dice.whole(1, 300) * unit::ms / 10;
  spec.replicas = dice.chance(0.3) ? dice.whole(2, 5) : 1;
  spec.overlap_weight = dice.chance(0.5) ? 1 : 2 * dice.uniform();
  if (dice.chance(0.2)) spec.temperature = dice.uniform();
  spec.balance_absolute = dice.whole(0, 10);
  return spec;
}

workload::Load load(Dice& dice, std::int64_t isl_most, std::int64_t osl_most, bool reasonable) {
  const workload::Lengths isl = lengths(dice, isl_most), osl = lengths(dice, osl_most);
  const int kind = dice.whole(0, 3);
  if (kind == 0) {
    workload::OpenLoop open{.rate = (reasonable ? dice.whole(50, 400) : dice.whole(1, 3000)) *
                                    unit::per_second};
    open.clients.push_back({.name = "one", .isl = isl, .osl = osl});
    if (dice.chance(0.5)) {
      open.clients[0].kind = workload::Arrivals::Kind::gamma;
      open.clients[0].cv = 3;
    }
    return open;
  }
  if (kind == 1)
    return workload::ClosedLoop{.concurrency = dice.between(1, 40),
                                .requests = dice.between(1, 250),
                                .isl = isl,
                                .osl = osl};
  if (kind == 2) return workload::Burst{.requests = dice.between(1, 120), .isl = isl, .osl = osl};
  workload::Sessions s;
  s.starts.rate = dice.whole(5, 200) * unit::per_second;
  if (dice.chance(0.5)) s.concurrency = dice.between(1, 20);
  s.turns = {.kind = workload::Lengths::Kind::uniform, .min = 1, .max = dice.between(1, 6)};
  s.first_prompt = isl;
  s.new_tokens = {.kind = workload::Lengths::Kind::uniform, .min = 1, .max = 30};
  s.osl = osl;
  s.think_ms = {.kind = workload::Lengths::Kind::uniform, .min = 0, .max = dice.between(0, 50)};
  s.system_prompt = std::min<std::int64_t>(dice.between(0, 40), isl_most);
  if (dice.chance(0.3)) s.sub_agents = 0.5;
  s.max_context = isl_most + osl_most;
  s.block_tokens = dice.whole(1, 16);
  return s;
}

}  // namespace

World draw_world(std::uint64_t seed) {
  Dice dice(seed);
  World world;
  const bool round = dice.chance(0.4);  // round times: many things happen at one instant
  const auto time = [&](double most) {
    const double t = most * dice.uniform();
    return round ? std::ceil(t / 1000) * 1000 : t;
  };
  world.model = std::make_unique<serve::fixtures::LinearModel>(
      serve::fixtures::LinearModel::Parts{.base = 1000 + time(500'000),
                                          .token = time(20'000),
                                          .pair = dice.chance(0.5) ? time(50) : 0,
                                          .context = dice.chance(0.7) ? time(300) : 0});
  Cluster::Setup& setup = world.setup;
  setup = serve::fixtures::small_setup(*world.model);
  setup.pools.clear();
  setup.router = router(dice);
  setup.decode_router = router(dice);
  const std::int64_t isl_most = dice.between(1, 150), osl_most = dice.between(1, 80);
  const int block_tokens = dice.whole(4, 16);
  const bool disaggregated = dice.chance(0.5);
  const int pools = disaggregated ? dice.whole(2, 4) : 1;
  for (int p = 0; p < pools; ++p) {
    Cluster::PoolSetup pool{.pool = {},
                            .rules = rules(dice, dice.whole(0, 2), isl_most + osl_most),
                            .model = world.model.get(),
                            .block_bytes = {}};
    pool.pool.name = fmt::format("p{}", p);
    pool.pool.role = !disaggregated ? Role::mixed : p % 2 == 0 ? Role::prefill : Role::decode;
    if (pool.pool.role == Role::prefill) pool.rules.reserve_output = false;
    pool.pool.replicas = dice.whole(1, 3);
    pool.pool.parallelism.dp = dice.chance(0.4) ? dice.whole(2, 4) : 1;
    pool.block_bytes = dice.whole(1, 64) * unit::KB;
    if (dice.chance(0.7)) {  // divides the names' blocks, or not
      const int draft = pool.rules.speculation.draft_tokens;
      if (block_tokens > draft) pool.rules.block_tokens = block_tokens;
    }
    if (dice.chance(0.3)) pool.pool.tiers = tiers(dice, pool.block_bytes);
    setup.pools.push_back(std::move(pool));
  }
  setup.disaggregation.local_prefill_below = dice.chance(0.3) ? dice.whole(1, 60) : 0;
  setup.disaggregation.layerwise_overlap = dice.chance(0.3);
  setup.disaggregation.prefer_domain = dice.chance(0.6);
  setup.disaggregation.descriptor_cost = dice.whole(0, 100) * unit::us;
  setup.ports.domain = dice.chance(0.5) ? 4 : 64;
  setup.kv_bytes_per_token = dice.whole(1, 100) * 1000.0;
  setup.layers = dice.whole(1, 8);
  setup.interval_ns = 10'000'000;
  setup.seed = seed;
  serve::fixtures::place_in_order(setup);
  world.horizon = dice.whole(1, 400) * unit::ms;
  world.load = load(dice, isl_most, osl_most, dice.chance(0.7));
  if (auto* s = std::get_if<workload::Sessions>(&world.load)) s->block_tokens = block_tokens;
  return world;
}

std::string World::text() const {
  std::string out = fmt::format(
      "router {} x{} stale {} ms, decode router {} x{} stale {} ms, local below {}, horizon {} ms, "
      "load {}, domain {}\n",
      setup.router.policy, setup.router.replicas, setup.router.staleness.in(unit::ms),
      setup.decode_router.policy, setup.decode_router.replicas,
      setup.decode_router.staleness.in(unit::ms), setup.disaggregation.local_prefill_below,
      horizon.in(unit::ms), load.index(), setup.ports.domain);
  for (const Cluster::PoolSetup& p : setup.pools) {
    const Rules& r = p.rules;
    out += fmt::format(
        "  {} role {} x{} dp {}: mixed {} chunked {} reserve {} estimate {} sequences {} batch {} "
        "block {} blocks {} window {} caching {} drafts {} tiers {:.0f}/{:.0f}/{:.0f}\n",
        p.pool.name, static_cast<int>(p.pool.role), p.pool.replicas, p.pool.parallelism.dp, r.mixed,
        r.chunked_prefill, r.reserve_output, r.estimate_output, r.max_sequences, r.max_batch_tokens,
        r.block_tokens, r.blocks, r.window.value_or(-1), r.prefix_caching,
        r.speculation.draft_tokens, p.pool.tiers.host / p.block_bytes,
        p.pool.tiers.nvme / p.block_bytes, p.pool.tiers.remote / p.block_bytes);
  }
  return out;
}

}  // namespace racktwin::swarm
