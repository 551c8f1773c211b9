#include "sim/build.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"
#include "serve/placement.hpp"

namespace racktwin::sim {
namespace {

// Steps of the first replica of each pool that the time-line view shows.
constexpr std::size_t traced_steps = 2000;

catalog::Engine with_overrides(catalog::Engine engine, const serve::Pool& pool) {
  engine.max_sequences = pool.max_sequences.value_or(engine.max_sequences);
  engine.max_batch_tokens = pool.max_batch_tokens.value_or(engine.max_batch_tokens);
  engine.block_tokens = pool.block_tokens.value_or(engine.block_tokens);
  engine.memory_fraction = pool.memory_fraction.value_or(engine.memory_fraction);
  return engine;
}

// Bandwidths that the scenario leaves open are those of the machine.
serve::KvTiers with_defaults(serve::KvTiers tiers, const catalog::System& system, int gpus) {
  const auto open = [](BytesPerSecond b) { return !(b > BytesPerSecond{}); };
  if (open(tiers.host_bandwidth)) tiers.host_bandwidth = system.host_bandwidth * gpus;
  if (open(tiers.nvme_bandwidth)) tiers.nvme_bandwidth = system.nvme_bandwidth * gpus;
  if (open(tiers.remote_bandwidth)) tiers.remote_bandwidth = system.nic_bandwidth * gpus;
  return tiers;
}

// What a hand-over moves, all layers once: per token, and per sequence for layers that keep a
// state or one short window.
void set_moved_bytes(const catalog::Model& model, serve::Cluster::Setup& cluster) {
  double per_sequence = catalog::state_bytes_per_sequence(model);
  for (const catalog::LayerGroup& group : model.layers) {
    const double bytes = group.count * catalog::kv_bytes_per_token(group.attention);
    if (cost::kept_per_sequence(group.attention))
      per_sequence += bytes * static_cast<double>(*group.attention.window);
    else
      cluster.kv_bytes_per_token += bytes;
  }
  cluster.state_bytes = per_sequence * unit::byte;
}

Error in_pool(Error error, const serve::Pool& pool) {
  error.message = fmt::format("pool \"{}\": {}", pool.name, error.message);
  return error;
}

Result<Done> build_pool(const serve::Pool& pool, const catalog::Catalog& catalog,
                        const cost::Calibration& calibration, Parts& parts) {
  const auto checked = cost::check(parts.model, pool.parallelism);
  if (!checked.ok()) return in_pool(checked.error(), pool);
  PoolParts made;
  RACKTWIN_TRY(made.engine, catalog.engine(pool.engine));
  made.engine = with_overrides(std::move(made.engine), pool);
  const int draft = pool.speculation.draft_tokens;
  const cost::StepModelSpec spec{.model = parts.model,
                                 .gpu = parts.gpu,
                                 .system = parts.system,
                                 .engine = made.engine,
                                 .parallelism = pool.parallelism,
                                 .calibration = calibration,
                                 .draft_tokens = draft};
  auto memory = cost::plan_memory(spec, made.engine.block_tokens);
  if (!memory.ok()) return in_pool(std::move(memory).error(), pool);
  made.memory = std::move(memory).value();
  made.model = cost::speed_of_light(spec);

  serve::Cluster::PoolSetup setup{.pool = pool, .rules = serve::rules_of(made.engine, pool)};
  serve::Rules& rules = setup.rules;
  if (pool.role == serve::Role::prefill) rules.reserve_output = false;  // it writes no output
  rules.blocks = pool.kv_blocks.value_or(made.memory.kv_blocks);
  rules.window = cost::attention_bound(parts.model);
  if (rules.block_tokens <= draft)
    return in_pool({Error::Code::invalid_input,
                    fmt::format("{} draft tokens do not fit a KV block of {} tokens", draft,
                                rules.block_tokens),
                    {}},
                   pool);
  setup.model = made.model.get();
  setup.pool.tiers = with_defaults(pool.tiers, parts.system, pool.parallelism.gpus());
  setup.block_bytes = parts.cluster.kv_bytes_per_token * rules.block_tokens * unit::byte;
  parts.cluster.pools.push_back(std::move(setup));
  if (pool.role != serve::Role::decode)
    parts.request_overhead = std::max(parts.request_overhead, made.engine.request_overhead);
  parts.pools.push_back(std::move(made));
  return Done{};
}

Result<Done> check_router(const serve::RouterSpec& spec, std::string_view where) {
  if (serve::router_row(spec.policy) != nullptr) return Done{};
  return Error{Error::Code::not_found,
               unknown_name("router policy", spec.policy, serve::router_names()),
               std::string(where)};
}

}  // namespace

Result<Parts> build(const Scenario& scenario, const catalog::Catalog& catalog) {
  Parts parts;
  RACKTWIN_TRY(parts.model, catalog.model(scenario.model));
  RACKTWIN_TRY(parts.system, catalog.system(scenario.system));
  RACKTWIN_TRY(parts.gpu, catalog.gpu(parts.system.gpu));
  RACKTWIN_TRY(const cost::Calibration calibration, cost::load_calibration(scenario.calibration));
  const serve::Deployment& deployment = scenario.deployment;
  RACKTWIN_TRY_DONE(check_router(deployment.router, "router"));
  RACKTWIN_TRY_DONE(check_router(deployment.decode_router, "decode_router"));
  parts.gpus = scenario.racks * parts.system.gpus_per_rack;
  serve::Cluster::Setup& cluster = parts.cluster;
  set_moved_bytes(parts.model, cluster);
  RACKTWIN_TRY(cluster.first_gpus,
               serve::place(deployment, parts.gpus, parts.system.nvlink_domain));
  for (const serve::Pool& pool : deployment.pools)
    RACKTWIN_TRY_DONE(build_pool(pool, catalog, calibration, parts));
  cluster.router = deployment.router;
  cluster.decode_router = deployment.decode_router;
  cluster.disaggregation = deployment.disaggregation;
  cluster.ports = net::ports_of(parts.system, parts.gpu, parts.gpus);
  cluster.layers = parts.model.layer_count();
  cluster.max_position = parts.model.max_position;
  cluster.single_steps = scenario.execution == Execution::plain;
  cluster.interval_ns = (Instant{} + scenario.series_interval).ns();
  cluster.traced_steps = traced_steps;
  cluster.seed = scenario.seed;
  for (const std::string& note : parts.model.notes)
    parts.warnings.push_back(fmt::format("model {}: {}", parts.model.name, note));
  return parts;
}

}  // namespace racktwin::sim
