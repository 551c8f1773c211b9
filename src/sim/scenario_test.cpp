#include "sim/scenario.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/rng.hpp"
#include "catalog/catalog.hpp"

namespace racktwin::sim {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

const std::string one_pool = "pools: [{}]\n";

Scenario parsed(std::string_view text, const std::vector<std::string>& overrides = {}) {
  auto scenario = parse_scenario(text, "s.yaml", overrides);
  EXPECT_TRUE(scenario.ok()) << (scenario.ok() ? "" : scenario.error().text());
  return scenario.ok() ? std::move(scenario).value() : Scenario{};
}

std::string refusal(std::string_view text, const std::vector<std::string>& overrides = {}) {
  const auto scenario = parse_scenario(text, "s.yaml", overrides);
  EXPECT_FALSE(scenario.ok()) << "accepted:\n" << text;
  return scenario.ok() ? "" : scenario.error().text();
}

TEST(Scenario, what_is_not_said_is_the_default_of_the_struct) {
  Scenario expected;
  expected.name = "s";  // after the file
  expected.deployment.pools = {serve::Pool{}};
  std::get<workload::OpenLoop>(std::get<workload::Load>(expected.load)).clients.resize(1);
  EXPECT_EQ(parsed(one_pool), expected);
}

TEST(Scenario, reads_every_kind_of_field) {
  const Scenario s = parsed(R"(
name: chat
horizon: 2 min
slos: [{name: fast, ttft: 450 ms, tpot: 40 ms}, {name: slow, e2e: 1 h, attainment: 0.9}]
load:
  rate: 7.5 /s
  clients:
    - {name: a, share: 3, arrivals: gamma, cv: 4, isl: {mean: 100}, slo: slow}
    - {name: b, isl: {kind: uniform, min: 2, max: 9}, osl: {kind: empirical, values: [1, 5], weights: [3, 1]}}
pools:
  - {name: p, role: prefill, tp: 4, ep: 2, max_sequences: 8, tiers: {host: 480 GB, host_bandwidth: 450 GB/s}}
  - {name: d, role: decode, dp: 8, ep: 8, replicas: 3, speculation: {draft_tokens: 2, acceptance: [0.8, 0.5]}}
router: {policy: cache-aware, staleness: 100 ms}
execution: plain
)");
  EXPECT_EQ(s.name, "chat");
  EXPECT_EQ(s.horizon, 120 * unit::sec);
  ASSERT_EQ(s.slos.size(), 2u);
  EXPECT_EQ(s.slos[0].ttft, 450 * unit::ms);
  EXPECT_EQ(s.slos[1].tpot, std::nullopt);
  const auto& load = std::get<workload::OpenLoop>(std::get<workload::Load>(s.load));
  EXPECT_EQ(load.rate, 7.5 * unit::per_second);
  EXPECT_EQ(load.clients[0].slo_class, 1);
  EXPECT_EQ(load.clients[0].cv, 4);
  EXPECT_EQ(load.clients[1].isl.max, 9);
  EXPECT_EQ(load.clients[1].osl.table[1].first, 5);
  ASSERT_EQ(s.deployment.pools.size(), 2u);
  EXPECT_EQ(s.deployment.pools[0].parallelism, (cost::Parallelism{.tp = 4, .ep = 2}));
  EXPECT_EQ(s.deployment.pools[0].tiers.host, 480 * unit::GB);
  EXPECT_EQ(s.deployment.pools[1].speculation.acceptance[1], 0.5);
  EXPECT_EQ(s.deployment.router.policy, "cache-aware");
  EXPECT_EQ(s.execution, Execution::plain);
}

TEST(Scenario, an_override_replaces_what_the_file_says) {
  const Scenario s = parsed("seed: 1\npools: [{replicas: 2}]\n",
                            {"seed=9", "pools.0.replicas=4", "load={kind: burst, requests: 7}"});
  EXPECT_EQ(s.seed, 9u);
  EXPECT_EQ(s.deployment.pools[0].replicas, 4);
  EXPECT_EQ(std::get<workload::Burst>(std::get<workload::Load>(s.load)).requests, 7);
  EXPECT_THAT(refusal(one_pool, {"pools.0.replcas=4"}), StartsWith("--set pools.0.replcas: "));
  EXPECT_THAT(refusal(one_pool, {"horizon=5"}), HasSubstr("--set horizon: "));
}

struct Refusal {
  std::string text, where, says;
};

TEST(Scenario, a_refusal_says_where_what_and_what_is_allowed) {
  const Refusal cases[] = {
      {"pools: [{replcas: 4}]", "s.yaml:1:10", "did you mean \"replicas\""},
      {one_pool + "horizon: 300", "s.yaml:2:10", "lacks a unit"},
      {one_pool + "horizon: 0 s", "s.yaml:2:10", "greater than 0 s"},
      {one_pool + "horizon: 3 GB", "s.yaml:2:10", "unit of another kind"},
      {one_pool + "horizon: .inf", "s.yaml:2:10", "no finite number"},
      {one_pool + "warmup: 300 s", "s.yaml:2:9", "before the horizon"},
      {one_pool + "series_interval: 1 ns", "s.yaml:2:18", "2000000 samples"},
      {one_pool + "racks: 0", "s.yaml:2:8", "from 1"},
      {one_pool + "racks: 1.5", "s.yaml:2:8", "whole number"},
      {one_pool + "slos: [{attainment: 0}]", "s.yaml:2:21", "greater than 0"},
      {one_pool + "slos: [{attainment: 1.01}]", "s.yaml:2:21", "at most 1"},
      {one_pool + "slos: [{name: a}, {name: a}]", "s.yaml:2:26", "called \"a\""},
      {one_pool + "slos: []", "s.yaml:2:7", "1 to 255"},
      {one_pool + "router: {policy: kv-awar}", "s.yaml:2:18", "did you mean \"kv-aware\""},
      {one_pool + "load: {kind: opne}", "s.yaml:2:14", "did you mean \"open\""},
      {one_pool + "load: {kind: closed, concurrency: 0}", "s.yaml:2:35", "from 1"},
      {one_pool + "load: {kind: closed, concurrency: 8, requests: 7}", "s.yaml:2:48",
       "never reach"},
      {one_pool + "load: {clients: []}", "s.yaml:2:17", "at least one client"},
      {one_pool + "load: {clients: [{share: 0}]}", "s.yaml:2:26", "greater than 0"},
      {one_pool + "load: {clients: [{slo: fast}]}", "s.yaml:2:24", "unknown slo"},
      {one_pool + "load: {rate: -1 /s}", "s.yaml:2:14", "greater than 0"},
      {one_pool + "load: {isl: {mean: 0}}", "s.yaml:2:20", "from 1"},
      {one_pool + "load: {isl: {mean: 2.5}}", "s.yaml:2:20", "whole number"},
      {one_pool + "load: {isl: {cv: 2}}", "s.yaml:2:14", "unknown key \"cv\""},
      {one_pool + "load: {isl: {kind: uniform, min: 9, max: 3}}", "s.yaml:2:34", "above max"},
      {one_pool + "load: {isl: {kind: uniform, min: 9}}", "s.yaml:2:13", "\"max\" is missing"},
      {one_pool + "load: {isl: {kind: empirical, values: [2, 1], weights: [1, 1]}}", "s.yaml:2:39",
       "must rise"},
      {one_pool + "load: {isl: {kind: empirical, values: [2, 3], weights: [1]}}", "s.yaml:2:56",
       "one weight per value"},
      {one_pool + "load: {kind: sessions, think: {mean: 3}}", "s.yaml:2:38", "lacks a unit"},
      {one_pool +
           "load: {kind: sessions, think: {kind: empirical, values: [1 s, 3], weights: [1, 1]}}",
       "s.yaml:2:57", "lacks a unit"},
      {one_pool + "load: {kind: mix, mix: deepseek-r1-resoning}", "s.yaml:2:24",
       "deepseek-r1-reasoning"},
      {one_pool + "load: {kind: trace}", "s.yaml:2:7", "\"path\" is missing"},
      {one_pool + "load: {kind: sessions, concurrency: 2, starts: {rate: 1 /s}}", "s.yaml:2:48",
       "not by both"},
      {"seed: 1", "s.yaml:1:1", "\"pools\" is missing"},
      {"pools: []", "s.yaml:1:8", "at least one pool"},
      {"pools: [{role: prefill}]", "s.yaml:1:8", "needs prefill and decode"},
      {"pools: [{}, {name: b, role: decode}]", "s.yaml:1:8", "do not stand beside"},
      {"pools: [{}, {}]", "s.yaml:1:13", "called \"serve\""},
      {"pools: [{tp: 4, ep: 3}]", "s.yaml:1:21", "divide tp * dp = 4"},
      {"pools: [{tp: 0}]", "s.yaml:1:14", "from 1"},
      {"pools: [{replicas: 1000000, tp: 64}]", "s.yaml:1:8", "64000000 GPUs"},
      {"pools: [{memory_fraction: 0}]", "s.yaml:1:27", "greater than 0"},
      {"pools: [{speculation: {draft_tokens: 2, acceptance: [0.5]}}]", "s.yaml:1:53",
       "2 are needed, found 1"},
      {"pools: [{speculation: {draft_tokens: 1, acceptanc: [0.5]}}]", "s.yaml:1:23",
       "is \"acceptanc\" meant to be it?"},
      {"pools: [{tiers: {host: 1 GB}}]", "s.yaml:1:24", "host_bandwidth > 0"},
      {"pools: [{tiers: {host: 1}}]", "s.yaml:1:24", "lacks a unit"},
  };
  for (const Refusal& c : cases) {
    const std::string said = refusal(c.text);
    EXPECT_THAT(said, StartsWith(c.where + ": ")) << c.text;
    EXPECT_THAT(said, HasSubstr(c.says)) << c.text;
  }
}

// --- the law: what is written reads back as itself ---------------------------------------

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : rng_(seed, "scenario law") {}
  bool coin() { return rng_.below(2) == 0; }
  std::int64_t whole(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(rng_.below(static_cast<std::uint64_t>(high - low + 1)));
  }
  int small(int low, int high) { return static_cast<int>(whole(low, high)); }
  double real(double low, double high) { return low + (high - low) * rng_.uniform(); }
  Seconds duration(double most) {  // at times round, at times with all digits
    return (coin() ? static_cast<double>(whole(1, static_cast<std::int64_t>(most)))
                   : real(1e-6, most)) *
           unit::sec;
  }
  std::uint64_t bits() { return rng_.bits(); }

 private:
  Rng rng_;
};

workload::Lengths lengths(Dice& dice) {
  using Kind = workload::Lengths::Kind;
  workload::Lengths l;
  l.kind = static_cast<Kind>(dice.whole(0, 4));
  if (l.kind == Kind::fixed) l.mean = static_cast<double>(dice.whole(1, 100000));
  if (l.kind == Kind::log_normal || l.kind == Kind::exponential)
    l.mean = std::round(dice.real(1, 1e5) * 1e3) / 1e3;
  if (l.kind == Kind::log_normal) l.cv = dice.real(0, 5);
  if (l.kind != Kind::fixed) {
    l.min = dice.whole(1, 500);
    l.max = dice.whole(500, 1 << 20);
  }
  if (l.kind != Kind::empirical) return l;
  l.smooth = dice.coin();
  std::int64_t value = 0;
  for (int i = dice.small(1, 5); i > 0; --i)
    l.table.emplace_back(value += dice.whole(1, 1000), dice.real(0.001, 1));
  return l;
}

void gaps(Dice& dice, workload::Arrivals::Kind& kind, double& cv) {
  kind = static_cast<workload::Arrivals::Kind>(dice.whole(0, 2));
  if (kind != workload::Arrivals::Kind::poisson) cv = dice.real(0.1, 9);
}

workload::Diurnal diurnal(Dice& dice) {
  return {.swing = dice.real(0, 1), .period = dice.duration(90000), .peak = dice.duration(90000)};
}

workload::Client client(Dice& dice, std::size_t slos) {
  workload::Client c;
  c.name = fmt::format("client \"{}\"", dice.whole(0, 99));
  c.share = dice.real(0.01, 3);
  gaps(dice, c.kind, c.cv);
  c.isl = lengths(dice);
  c.osl = lengths(dice);
  c.slo_class = static_cast<std::uint8_t>(dice.whole(0, std::int64_t(slos) - 1));
  if (dice.coin()) {
    c.windows.resize(2);
    c.windows[1].rate = dice.real(0.1, 3);
    gaps(dice, c.windows[0].kind, c.windows[0].cv);
    c.window = dice.duration(3600);
  }
  if (dice.coin()) {
    c.periods = {{lengths(dice), lengths(dice)}};
    c.period = dice.duration(3600);
  }
  return c;
}

std::variant<workload::Load, TraceLoad> load(Dice& dice, std::size_t slos) {
  switch (dice.whole(0, 5)) {
    case 0: {
      workload::OpenLoop open{.rate = dice.real(0.1, 5000) * unit::per_second,
                              .diurnal = diurnal(dice)};
      for (int i = dice.small(1, 3); i > 0; --i) open.clients.push_back(client(dice, slos));
      return workload::Load{open};
    }
    case 1: {
      workload::OpenLoop open{.rate = dice.real(0.1, 5000) * unit::per_second};
      open.clients.resize(1);
      open.clients[0].isl = lengths(dice);
      return workload::Load{open};
    }
    case 2: {
      const std::int64_t concurrency = dice.whole(1, 4000);
      return workload::Load{workload::ClosedLoop{.concurrency = concurrency,
                                                 .requests = dice.coin() ? 0 : concurrency * 5,
                                                 .isl = lengths(dice),
                                                 .osl = lengths(dice)}};
    }
    case 3:
      return workload::Load{workload::Burst{
          .requests = dice.whole(1, 1 << 29), .isl = lengths(dice), .osl = lengths(dice)}};
    case 4: {
      workload::Sessions s;
      if (dice.coin()) s.concurrency = dice.whole(1, 99);
      if (s.concurrency == 0) {
        gaps(dice, s.starts.kind, s.starts.cv);
        s.starts.rate = dice.real(0.001, 99) * unit::per_second;
        s.starts.diurnal = diurnal(dice);
      }
      s.turns = lengths(dice);
      s.first_prompt = lengths(dice);
      s.new_tokens = lengths(dice);
      s.osl = lengths(dice);
      s.think_ms = lengths(dice);
      s.system_prompt = dice.whole(0, 9999);
      s.sub_agents = dice.real(0, 1);
      s.parallel_agents = lengths(dice);
      s.sub_agent_calls = lengths(dice);
      s.max_context = dice.whole(1000, 1 << 20);
      s.block_tokens = dice.small(1, 512);
      return workload::Load{s};
    }
    default:
      break;
  }
  TraceLoad trace{.path = "a b/\xc3\xa9: #1.jsonl"};
  trace.options.scaling = {.copies = dice.small(1, 99), .compress = dice.real(0.1, 9), .keep = 0.5};
  if (dice.coin()) trace.options.limit = dice.whole(1, 1 << 20);
  if (dice.coin()) trace.options.max_context = dice.whole(1, 1 << 20);
  trace.options.closed_loop_sessions = dice.coin();
  return trace;
}

serve::RouterSpec router(Dice& dice) {
  const char* policies[] = {"round-robin", "power-of-two", "session", "kv-aware", "cache-aware"};
  return {.policy = policies[dice.whole(0, 4)],
          .staleness = dice.duration(5),
          .replicas = dice.small(1, 16),
          .overlap_weight = dice.real(0, 3),
          .temperature = dice.real(0, 3),
          .cache_threshold = dice.real(0, 1),
          .balance_absolute = dice.real(0, 99),
          .balance_relative = dice.real(1, 2)};
}

serve::Pool pool(Dice& dice, int index, serve::Role role) {
  serve::Pool p;
  p.name = fmt::format("pool {}", index);
  p.role = role;
  p.replicas = dice.small(1, 200);
  p.parallelism = {.tp = dice.small(1, 8), .pp = dice.small(1, 4), .dp = dice.small(1, 32)};
  if (dice.coin()) p.parallelism.ep = p.parallelism.tp * p.parallelism.dp;
  p.engine = dice.coin() ? "vllm-0.2x" : "1.0";  // a name that looks like a number
  if (dice.coin()) p.max_sequences = dice.small(1, 4096);
  if (dice.coin()) p.max_batch_tokens = dice.whole(1, 1 << 20);
  if (dice.coin()) p.block_tokens = dice.small(1, 512);
  if (dice.coin()) p.memory_fraction = dice.real(0.1, 1);
  if (dice.coin()) p.kv_blocks = dice.whole(1, 1 << 29);
  p.prefix_caching = dice.coin();
  for (int i = dice.small(0, 3); i > 0; --i) p.speculation.acceptance.push_back(dice.real(0, 1));
  p.speculation.draft_tokens = static_cast<int>(p.speculation.acceptance.size());
  if (dice.coin())
    p.tiers = {.host = dice.real(1, 900) * unit::GB,
               .remote = dice.real(1, 900) * unit::TB,
               .host_bandwidth = dice.real(1, 900) * unit::GBps,
               .remote_bandwidth = dice.real(1, 900) * unit::Gbps,
               .remote_latency = dice.duration(1)};
  return p;
}

Scenario random_scenario(std::uint64_t seed) {
  Dice dice(seed);
  Scenario s;
  s.name = fmt::format("random {}", seed);
  s.description = dice.coin() ? "" : "two\nlines: \"quoted\", # and \t a tab";
  s.seed = dice.bits();
  s.horizon = dice.duration(90000) + 2 * unit::sec;
  s.drain = dice.duration(90000);
  s.warmup = s.horizon * dice.real(0, 0.9);
  s.model = dice.coin() ? "llama-3.1-8b" : "./a path/config.json";
  s.racks = dice.small(1, 999);
  s.slos.clear();
  for (int i = 0; i < 1 + int(seed % 3); ++i) {
    Slo slo{.name = fmt::format("slo {}", i), .attainment = dice.real(0.1, 1)};
    if (dice.coin()) slo.ttft = dice.duration(9);
    if (dice.coin()) slo.tpot = dice.duration(9);
    if (dice.coin()) slo.e2e = dice.duration(9);
    s.slos.push_back(slo);
  }
  s.load = load(dice, s.slos.size());
  if (dice.coin())
    s.deployment.pools = {pool(dice, 0, serve::Role::mixed), pool(dice, 1, serve::Role::mixed)};
  else
    s.deployment.pools = {pool(dice, 0, serve::Role::decode), pool(dice, 1, serve::Role::prefill)};
  s.deployment.placement = dice.coin() ? serve::Placement::packed : serve::Placement::spread;
  s.deployment.router = router(dice);
  s.deployment.decode_router = router(dice);
  s.deployment.disaggregation = {.local_prefill_below = dice.whole(0, 999),
                                 .layerwise_overlap = dice.coin(),
                                 .prefer_domain = dice.coin(),
                                 .descriptor_cost = dice.duration(1)};
  s.series_interval = dice.duration(60) + 0.1 * unit::sec;
  s.records = dice.coin();
  s.execution = dice.coin() ? Execution::plain : Execution::macro;
  return s;
}

TEST(Scenario, what_is_written_reads_back_as_itself) {
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    const Scenario scenario = random_scenario(seed);
    const std::string text = to_yaml(scenario);
    const auto back = parse_scenario(text, "random.yaml", {});
    ASSERT_TRUE(back.ok()) << "seed " << seed << ": " << back.error().text() << "\n" << text;
    ASSERT_EQ(back.value(), scenario) << "seed " << seed << "\n" << text;
    ASSERT_EQ(to_yaml(back.value()), text) << "seed " << seed;
  }
}

TEST(Scenario, two_random_scenarios_differ_so_that_the_law_says_something) {
  EXPECT_FALSE(random_scenario(1) == random_scenario(2));
  EXPECT_NE(to_yaml(random_scenario(1)), to_yaml(random_scenario(2)));
}

TEST(Scenario, every_scenario_in_the_binary_loads_and_reads_back) {
  const auto names = scenario_names();
  EXPECT_THAT(names, ::testing::Contains("default"));
  for (const std::string& name : names) {
    const auto scenario = load_scenario(name, {});
    ASSERT_TRUE(scenario.ok()) << scenario.error().text();
    EXPECT_EQ(scenario.value().name, name);
    EXPECT_FALSE(scenario.value().description.empty()) << name << " does not say what it is for";
    const auto back = parse_scenario(to_yaml(scenario.value()), "resolved.yaml", {});
    ASSERT_TRUE(back.ok()) << name << ": " << back.error().text();
    EXPECT_EQ(back.value(), scenario.value()) << name;
    EXPECT_EQ(to_yaml(back.value()), to_yaml(scenario.value())) << name;
  }
}

TEST(Scenario, every_scenario_in_the_binary_names_what_the_catalogue_has) {
  const auto catalog = catalog::Catalog::built_in();
  ASSERT_TRUE(catalog.ok()) << catalog.error().text();
  for (const std::string& name : scenario_names()) {
    const auto scenario = load_scenario(name, {});
    ASSERT_TRUE(scenario.ok());
    const auto model = catalog.value().model(scenario.value().model);
    EXPECT_TRUE(model.ok()) << name << ": " << model.error().text();
    const auto system = catalog.value().system(scenario.value().system);
    ASSERT_TRUE(system.ok()) << name << ": " << system.error().text();
    int gpus = 0;
    for (const serve::Pool& pool : scenario.value().deployment.pools) {
      EXPECT_TRUE(catalog.value().engine(pool.engine).ok()) << name;
      gpus += pool.replicas * pool.parallelism.gpus();
    }
    EXPECT_LE(gpus, scenario.value().racks * system.value().gpus_per_rack) << name;
  }
}

TEST(Scenario, the_default_is_the_whole_reference_cluster) {
  const auto scenario = load_scenario("default", {});
  ASSERT_TRUE(scenario.ok());
  EXPECT_EQ(scenario.value().racks, 64);
  int gpus = 0;
  for (const serve::Pool& pool : scenario.value().deployment.pools)
    gpus += pool.replicas * pool.parallelism.gpus();
  EXPECT_EQ(gpus, 4608);
  EXPECT_EQ(scenario.value().horizon, 5 * unit::minute);
}

TEST(Scenario, a_name_that_is_none_is_refused_with_the_nearest) {
  const auto scenario = load_scenario("defualt", {});
  ASSERT_FALSE(scenario.ok());
  EXPECT_EQ(scenario.error().code, Error::Code::not_found);
  EXPECT_THAT(scenario.error().text(), HasSubstr("did you mean \"default\""));
}

TEST(Scenario, a_file_that_is_missing_is_refused_by_its_path) {
  const auto scenario = load_scenario("no/such/file.yaml", {});
  ASSERT_FALSE(scenario.ok());
  EXPECT_THAT(scenario.error().text(), StartsWith("no/such/file.yaml: "));
}

TEST(Scenario, a_built_in_file_is_found_from_any_folder) {
  const auto by_name = load_scenario("default", {});
  const auto by_path = load_scenario("scenarios/default.yaml", {});
  ASSERT_TRUE(by_name.ok() && by_path.ok());
  EXPECT_EQ(by_name.value(), by_path.value());
}

}  // namespace
}  // namespace racktwin::sim
