#include "sim/scenario.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/embedded.hpp"
#include "base/file.hpp"
#include "base/text.hpp"
#include "sim/scenario_archive.hpp"

namespace racktwin::sim {
namespace detail {

// Bounds that keep every product of fields in range; far beyond anything that is simulated.
constexpr yaml::Range duration_range{.low = 0, .high = 1e9};  // 31 years
constexpr yaml::Range span_range{.low = 0, .high = 1e9, .open_low = true};
constexpr yaml::Range degree_range{.low = 1, .high = 1024};
constexpr yaml::Range count_range{.low = 1, .high = 1e9};
constexpr yaml::Range length_range{.low = 1, .high = 1e9};
constexpr yaml::Range spread_range{.low = 0, .high = 1000};  // cv
constexpr yaml::Range rate_range{.low = 0, .high = 1e9, .open_low = true};
constexpr yaml::Range share_range{.low = 0, .high = 1, .open_low = true};

const Names roles = {"mixed", "prefill", "decode"};
const Names placements = {"spread", "packed"};
const Names arrival_kinds = {"poisson", "gamma", "weibull"};
const Names length_kinds = {"fixed", "uniform", "log-normal", "exponential", "empirical"};
const Names executions = {"macro", "plain"};
enum class LoadKind : std::uint8_t { open, closed, burst, sessions, trace, mix };
const Names load_kinds = {"open", "closed", "burst", "sessions", "trace", "mix"};

// --- lengths -----------------------------------------------------------------------------

struct Durations {  // Lengths whose counts are milliseconds
  workload::Lengths& of;
};

// How a length is written: as a count,
struct InTokens {
  template <class Archive, class Number>
  static void one(Archive& a, std::string_view key, Number& value) {
    a.field(key, value, length_range);
  }
  template <class Archive>
  static void many(Archive& a, std::string_view key, std::vector<double>& values) {
    a.field(key, values, yaml::Range{.low = 0, .high = 1e9});
  }
};

// or as a duration: a whole number of microseconds, so that "12.5 ms" comes back the same
// after its way through seconds.
struct InMilliseconds {
  static constexpr yaml::Range range{.low = 0, .high = 3.2e7};  // a year
  static double milliseconds(Seconds duration) { return std::round(duration.in(unit::us)) / 1e3; }

  template <class Archive, class Number>
  static void one(Archive& a, std::string_view key, Number& value) {
    Seconds duration = static_cast<double>(value) * unit::ms;
    a.field(key, duration, range);
    if (Archive::reads) value = static_cast<Number>(milliseconds(duration));
  }
  template <class Archive>
  static void many(Archive& a, std::string_view key, std::vector<double>& values) {
    std::vector<std::string> texts;
    for (const double value : values) texts.push_back(format_quantity(value * unit::ms));
    a.field(key, texts);
    if (!Archive::reads) return;
    values.clear();
    for (const std::string& text : texts) {
      const auto duration = parse_quantity<Dim{.time = 1}>(text);
      if (!duration.ok()) return a.fail(key, duration.error().message);
      values.push_back(milliseconds(duration.value()));
      if (!(values.back() >= 0 && values.back() <= range.high * 1e3))
        return a.fail(key, fmt::format("a duration is from 0 s to a year, found {}", text));
    }
  }
};

template <class Unit, class Archive>
void describe_table(Archive& a, workload::Lengths& v) {
  std::vector<double> values, weights;
  for (const auto& [value, weight] : v.table) {
    values.push_back(static_cast<double>(value));
    weights.push_back(weight);
  }
  Unit::many(a, "values", values);
  a.field("weights", weights, yaml::not_negative);
  if (!Archive::reads) return;
  if (values.size() != weights.size())
    a.fail("weights", fmt::format("one weight per value: {} are needed, found {}", values.size(),
                                  weights.size()));
  v.table.clear();
  for (std::size_t i = 0; i < std::min(values.size(), weights.size()); ++i) {
    if (values[i] != std::floor(values[i]))
      a.fail("values", fmt::format("the values are whole numbers, found {}", values[i]));
    v.table.emplace_back(static_cast<std::int64_t>(values[i]), weights[i]);
  }
}

// Only the keys that the kind has; the others keep their defaults.
template <class Unit, class Archive>
void describe_lengths(Archive& a, workload::Lengths& v) {
  using Kind = workload::Lengths::Kind;
  a.choice("kind", v.kind, length_kinds);
  if (v.kind != Kind::uniform && v.kind != Kind::empirical)
    Unit::one(a, "mean", v.mean);
  else
    v.mean = workload::Lengths{}.mean;
  if (v.kind == Kind::log_normal) a.field("cv", v.cv, spread_range);
  if (v.kind == Kind::empirical) {
    describe_table<Unit>(a, v);
    a.field("smooth", v.smooth);
  }
  if (v.kind != Kind::fixed) {
    Unit::one(a, "min", v.min);
    Unit::one(a, "max", v.max);
  }
  a.check(v);
}

template <class Archive>
void describe(Archive& a, workload::Lengths& v) {
  describe_lengths<InTokens>(a, v);
}
template <class Archive>
void describe(Archive& a, Durations v) {
  describe_lengths<InMilliseconds>(a, v.of);
}

// --- loads -------------------------------------------------------------------------------

template <class Archive>
void describe(Archive& a, workload::Diurnal& v) {
  a.field("swing", v.swing, yaml::fraction);
  a.field("period", v.period, span_range);
  a.field("peak", v.peak, duration_range);
}

template <class Archive>
void describe_gaps(Archive& a, std::string_view key, workload::Arrivals::Kind& kind, double& cv) {
  a.choice(key, kind, arrival_kinds);
  if (kind != workload::Arrivals::Kind::poisson)
    a.field("cv", cv, yaml::Range{.low = 0, .high = 1000, .open_low = true});
}

template <class Archive>
void describe(Archive& a, workload::Arrivals& v) {
  describe_gaps(a, "kind", v.kind, v.cv);
  a.field("rate", v.rate, rate_range);
  a.group("diurnal", v.diurnal);
}

template <class Archive>
void describe(Archive& a, workload::Client::Window& v) {
  a.field("rate", v.rate, yaml::not_negative);
  describe_gaps(a, "arrivals", v.kind, v.cv);
}
template <class Archive>
void describe(Archive& a, std::pair<workload::Lengths, workload::Lengths>& v) {
  a.group("isl", v.first);
  a.group("osl", v.second);
}

template <class Archive>
void describe(Archive& a, workload::Client& v) {
  a.field("name", v.name);
  a.field("share", v.share, rate_range);
  describe_gaps(a, "arrivals", v.kind, v.cv);
  a.group("isl", v.isl);
  a.group("osl", v.osl);
  a.choice("slo", v.slo_class, a.slos());
  if (Archive::reads ? a.has("windows") : !v.windows.empty()) {
    a.list("windows", v.windows);
    a.field("window", v.window, span_range);
  }
  if (Archive::reads ? a.has("periods") : !v.periods.empty()) {
    a.list("periods", v.periods);
    a.field("period", v.period, span_range);
  }
}

bool is_plain(const workload::Client& client) {
  return client.name.empty() && client.share == 1 && client.windows.empty() &&
         client.periods.empty();
}

// One nameless client is written, and may be given, without the list around it.
template <class Archive>
void describe(Archive& a, workload::OpenLoop& v) {
  a.field("rate", v.rate, rate_range);
  a.group("diurnal", v.diurnal);
  const bool single = v.clients.size() == 1 && is_plain(v.clients[0]);
  if (Archive::reads ? a.has("clients") : !single) {
    a.list("clients", v.clients);
  } else {
    v.clients.resize(1);
    describe_gaps(a, "arrivals", v.clients[0].kind, v.clients[0].cv);
    a.group("isl", v.clients[0].isl);
    a.group("osl", v.clients[0].osl);
    a.choice("slo", v.clients[0].slo_class, a.slos());
  }
  a.check(v);
}

template <class Archive>
void describe(Archive& a, workload::ClosedLoop& v) {
  a.field("concurrency", v.concurrency, count_range);
  a.field("requests", v.requests, yaml::not_negative);
  a.group("isl", v.isl);
  a.group("osl", v.osl);
  a.check(v);
}

template <class Archive>
void describe(Archive& a, workload::Burst& v) {
  a.field("requests", v.requests, count_range);
  a.group("isl", v.isl);
  a.group("osl", v.osl);
}

template <class Archive>
void describe(Archive& a, workload::Sessions& v) {
  a.field("concurrency", v.concurrency, yaml::not_negative);
  if (v.concurrency == 0)
    a.group("starts", v.starts);
  else if (a.has("starts"))
    a.fail("starts", "sessions start by `starts` or by `concurrency`, not by both");
  a.group("turns", v.turns);
  a.group("first_prompt", v.first_prompt);
  a.group("new_tokens", v.new_tokens);
  a.group("osl", v.osl);
  a.group("think", Durations{v.think_ms});
  a.field("system_prompt", v.system_prompt, yaml::Range{.low = 0, .high = 1e9});
  a.field("sub_agents", v.sub_agents, yaml::fraction);
  a.group("parallel_agents", v.parallel_agents);
  a.group("sub_agent_calls", v.sub_agent_calls);
  a.field("max_context", v.max_context, length_range);
  a.field("block_tokens", v.block_tokens, yaml::Range{.low = 1, .high = 1 << 20});
}

template <class Archive>
void describe(Archive& a, workload::Scaling& v) {
  a.field("copies", v.copies, yaml::Range{.low = 1, .high = 1e6});
  a.field("compress", v.compress, rate_range);
  a.field("keep", v.keep, share_range);
}

template <class Archive>
void describe(Archive& a, TraceLoad& v) {
  a.require("path");
  a.field("path", v.path);
  a.group("scaling", v.options.scaling);
  a.field("limit", v.options.limit, count_range);
  a.field("max_context", v.options.max_context, length_range);
  a.field("closed_loop_sessions", v.options.closed_loop_sessions);
  if (Archive::reads && v.path.empty()) a.fail("path", "a trace needs the path of its file");
}

// A mix is read from its own file; rate and day curve may be given here.
template <class Archive>
void describe_mix(Archive& a, Scenario& s) {
  workload::OpenLoop& load = [&]() -> workload::OpenLoop& {
    auto& generated = std::get<workload::Load>(s.load);
    if (!std::holds_alternative<workload::OpenLoop>(generated)) generated = workload::OpenLoop{};
    return std::get<workload::OpenLoop>(generated);
  }();
  a.require("mix");
  a.field("mix", s.mix);
  if (Archive::reads) {
    auto mix = workload::load_mix(s.mix);
    if (!mix.ok()) return a.fail("mix", mix.error().message);
    load = std::move(mix).value();
  }
  a.field("rate", load.rate, rate_range);
  a.field("steady", load.steady);
  a.group("diurnal", load.diurnal);
}

LoadKind kind_of(const Scenario& s) {
  if (!s.mix.empty()) return LoadKind::mix;
  if (std::holds_alternative<TraceLoad>(s.load)) return LoadKind::trace;
  return static_cast<LoadKind>(std::get<workload::Load>(s.load).index());
}

struct LoadOf {  // the load of a scenario, with the name of its mix
  Scenario& scenario;
};

template <class Archive>
void describe(Archive& a, LoadOf of) {
  Scenario& s = of.scenario;
  LoadKind kind = kind_of(s);
  a.choice("kind", kind, load_kinds);
  const auto generated = [&](auto fresh) {
    using Load = decltype(fresh);
    if (Archive::reads) s.load = workload::Load{std::move(fresh)};
    describe(a, std::get<Load>(std::get<workload::Load>(s.load)));
    a.check(std::get<workload::Load>(s.load));
  };
  switch (kind) {
    case LoadKind::open:
      return generated(workload::OpenLoop{});
    case LoadKind::closed:
      return generated(workload::ClosedLoop{});
    case LoadKind::burst:
      return generated(workload::Burst{});
    case LoadKind::sessions:
      return generated(workload::Sessions{});
    case LoadKind::trace:
      if (Archive::reads) s.load = TraceLoad{};
      return describe(a, std::get<TraceLoad>(s.load));
    case LoadKind::mix:
      return describe_mix(a, s);
  }
}

// --- deployment --------------------------------------------------------------------------

template <class Archive>
void describe(Archive& a, serve::Speculation& v) {
  a.field("draft_tokens", v.draft_tokens, yaml::Range{.low = 0, .high = 64});
  a.field("acceptance", v.acceptance, yaml::fraction);
  a.check(v);
}

template <class Archive>
void describe(Archive& a, serve::KvTiers& v) {
  a.field("host", v.host);
  a.field("host_bandwidth", v.host_bandwidth);
  a.field("host_latency", v.host_latency, duration_range);
  a.field("nvme", v.nvme);
  a.field("nvme_bandwidth", v.nvme_bandwidth);
  a.field("nvme_latency", v.nvme_latency, duration_range);
  a.field("remote", v.remote);
  a.field("remote_bandwidth", v.remote_bandwidth);
  a.field("remote_latency", v.remote_latency, duration_range);
  a.check(v);
}

template <class Archive>
void describe(Archive& a, serve::Pool& v) {
  a.field("name", v.name);
  a.choice("role", v.role, roles);
  a.field("replicas", v.replicas, yaml::Range{.low = 1, .high = 1e6});
  a.field("tp", v.parallelism.tp, degree_range);
  a.field("pp", v.parallelism.pp, degree_range);
  a.field("dp", v.parallelism.dp, degree_range);
  a.field("ep", v.parallelism.ep, degree_range);
  a.field("engine", v.engine);
  a.field("max_sequences", v.max_sequences, yaml::Range{.low = 1, .high = 1e6});
  a.field("max_batch_tokens", v.max_batch_tokens, count_range);
  a.field("block_tokens", v.block_tokens, yaml::Range{.low = 1, .high = 1 << 20});
  a.field("memory_fraction", v.memory_fraction, share_range);
  a.field("kv_blocks", v.kv_blocks, count_range);
  a.field("prefix_caching", v.prefix_caching);
  a.group("speculation", v.speculation);
  a.group("tiers", v.tiers);
  a.check(v);
}

template <class Archive>
void describe(Archive& a, serve::RouterSpec& v) {
  a.field("policy", v.policy);
  a.field("staleness", v.staleness, duration_range);
  a.field("replicas", v.replicas, yaml::Range{.low = 1, .high = 4096});
  a.field("overlap_weight", v.overlap_weight, yaml::not_negative);
  a.field("temperature", v.temperature, yaml::not_negative);
  a.field("cache_threshold", v.cache_threshold, yaml::fraction);
  a.field("balance_absolute", v.balance_absolute, yaml::not_negative);
  a.field("balance_relative", v.balance_relative, yaml::not_negative);
  a.check(v);
}

template <class Archive>
void describe(Archive& a, serve::Disaggregation& v) {
  a.field("local_prefill_below", v.local_prefill_below, yaml::Range{.low = 0, .high = 1e9});
  a.field("layerwise_overlap", v.layerwise_overlap);
  a.field("prefer_domain", v.prefer_domain);
  a.field("descriptor_cost", v.descriptor_cost, duration_range);
}

// --- the whole ---------------------------------------------------------------------------

template <class Archive>
void describe(Archive& a, Slo& v) {
  a.field("name", v.name);
  a.field("ttft", v.ttft, span_range);
  a.field("tpot", v.tpot, span_range);
  a.field("e2e", v.e2e, span_range);
  a.field("attainment", v.attainment, share_range);
  a.check(v);
}

template <class Archive>
void describe(Archive& a, Scenario& v) {
  a.field("name", v.name);
  a.field("description", v.description);
  a.field("seed", v.seed);
  a.field("horizon", v.horizon, span_range);
  a.field("drain", v.drain, duration_range);
  a.field("warmup", v.warmup, duration_range);
  a.field("model", v.model);
  a.field("system", v.system);
  a.field("racks", v.racks, yaml::Range{.low = 1, .high = 1e6});
  a.field("calibration", v.calibration);
  a.list("slos", v.slos);
  a.slos().clear();
  for (const Slo& slo : v.slos) a.slos().push_back(slo.name);
  a.group("load", LoadOf{v});
  a.choice("placement", v.deployment.placement, placements);
  a.list("pools", v.deployment.pools);
  a.group("router", v.deployment.router);
  a.group("decode_router", v.deployment.decode_router);
  a.group("disaggregation", v.deployment.disaggregation);
  a.field("series_interval", v.series_interval, span_range);
  a.field("records", v.records);
  a.choice("execution", v.execution, executions);
  a.check(v);
}

Result<Scenario> read(yaml::Document document, std::string_view file,
                      const std::vector<std::string>& overrides) {
  for (const std::string& assignment : overrides) RACKTWIN_TRY_DONE(document.set(assignment));
  Scenario scenario;
  // A scenario is called after its file unless it says otherwise.
  file.remove_prefix(std::min(file.size(), file.rfind('/') + 1));
  if (const auto stem = file.substr(0, file.find(".yaml")); !stem.empty())
    scenario.name = std::string(stem);
  Names slos;
  Reader reader(document.top(), &slos);
  describe(reader, scenario);
  RACKTWIN_TRY_DONE(document.finish());
  return scenario;
}

}  // namespace detail

namespace {

constexpr std::string_view folder = "scenarios/", suffix = ".yaml";

std::optional<std::string_view> embedded_scenario(const std::string& path_or_name) {
  if (const auto file = embedded_file(std::string(folder) + path_or_name + std::string(suffix)))
    return file;
  return path_or_name.starts_with(folder) ? embedded_file(path_or_name) : std::nullopt;
}

}  // namespace

Result<Scenario> parse_scenario(std::string_view text, std::string name,
                                const std::vector<std::string>& overrides) {
  const std::string file = name;
  RACKTWIN_TRY(yaml::Document document, yaml::Document::parse(text, std::move(name)));
  return detail::read(std::move(document), file, overrides);
}

Result<Scenario> load_scenario(const std::string& path_or_name,
                               const std::vector<std::string>& overrides) {
  const bool is_name = path_or_name.find_first_of("/.") == std::string::npos;
  const auto embedded = embedded_scenario(path_or_name);
  const auto known = [&] {
    return parse_scenario(
        *embedded,
        is_name ? std::string(folder) + path_or_name + std::string(suffix) : path_or_name,
        overrides);
  };
  if (is_name && embedded) return known();
  auto text = read_file(path_or_name);
  if (text.ok()) return parse_scenario(text.value(), path_or_name, overrides);
  if (embedded) return known();  // "scenarios/x.yaml", asked for outside the repository
  if (is_name && text.error().code == Error::Code::not_found)
    return Error{Error::Code::not_found,
                 unknown_name("scenario", path_or_name, scenario_names()) + ", and no such file",
                 {}};
  return std::move(text).error();
}

std::vector<std::string> scenario_names() {
  std::vector<std::string> names;
  for (const EmbeddedFile& file : embedded_files())
    if (file.path.starts_with(folder) && file.path.ends_with(suffix))
      names.emplace_back(
          file.path.substr(folder.size(), file.path.size() - folder.size() - suffix.size()));
  return names;
}

std::string to_yaml(const Scenario& scenario) {
  Scenario copy = scenario;  // describe() serves reading too, and takes no const
  yaml::Writer writer;
  detail::Names slos;
  detail::Emitter emitter(writer, &slos);
  detail::describe(emitter, copy);
  return writer.text();
}

}  // namespace racktwin::sim
