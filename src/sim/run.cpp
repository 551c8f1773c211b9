#include "sim/run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/version.hpp"
#include "sim/build.hpp"
#include "sim/collector.hpp"
#include "sim/fold.hpp"

namespace racktwin::sim {
namespace {

constexpr std::size_t series_samples = 1500;  // what a picture can show

// The loop that ties source, clock and cluster together.
class Run {
 public:
  Run(const Scenario& scenario, Parts& parts, workload::Source& source, bool trace)
      : scenario_(scenario),
        source_(source),
        trace_(trace),
        overhead_(parts.request_overhead),
        collector_(scenario, simulation_,
                   [this](RequestId id) {
                     source_.completed(id, simulation_.now());
                     schedule_arrival();  // it may have brought the next one
                   }),
        fabric_(net::shared_ports(simulation_, parts.cluster.ports)),
        cluster_(simulation_, *fabric_, parts.cluster, collector_) {}

  void go(const RunOptions& options, RunResult& result);
  serve::Cluster& cluster() { return cluster_; }
  Collector& collector() { return collector_; }
  const des::Simulation& simulation() const { return simulation_; }

 private:
  void schedule_arrival();
  void on_arrival(std::uint64_t);
  bool keep_going(const RunOptions& options, RunResult& result);
  bool stands_still() const;

  const Scenario& scenario_;
  workload::Source& source_;
  bool trace_;
  Seconds overhead_;
  des::Simulation simulation_;
  Collector collector_;
  std::unique_ptr<net::Fabric> fabric_;
  serve::Cluster cluster_;
  des::EventId arrival_;
  std::optional<Instant> arrival_at_;
  Instant last_arrival_;
  bool over_ = false;  // nobody is let in any more
};

// A closed loop may bring a request sooner than the one that was due.
void Run::schedule_arrival() {
  if (over_) return;
  const std::optional<Instant> next = source_.peek();
  if (next == arrival_at_) return;
  if (arrival_at_) simulation_.cancel(arrival_);
  arrival_at_ = next;
  // A router sees a request when it has been read and tokenised; TTFT counts from its arrival.
  if (next)
    arrival_ = simulation_.at(std::max(*next + overhead_, simulation_.now()), des::Phase::arrival,
                              des::bind<&Run::on_arrival>(*this));
}

void Run::on_arrival(std::uint64_t) {
  arrival_at_.reset();
  workload::Request request = source_.next();
  last_arrival_ = simulation_.now();
  collector_.arrived(request.arrival, last_arrival_);
  cluster_.submit(std::move(request));
  schedule_arrival();
}

// Nothing is to come that could move what is in the system.
bool Run::stands_still() const {
  return simulation_.pending() <= cluster_.scrapes_due();
}

bool Run::keep_going(const RunOptions& options, RunResult& result) {
  const Instant now = simulation_.now();
  if (!arrival_at_ && cluster_.in_system() == 0) return false;
  if (stands_still()) {
    result.warnings.push_back("no progress: " + cluster_.stuck());
    return false;
  }
  if (!arrival_at_ && now - last_arrival_ > scenario_.drain) {
    result.warnings.push_back(
        fmt::format("stopped {:.6g} s after the last arrival with {} requests unfinished",
                    scenario_.drain.in(unit::sec), cluster_.in_system()));
    return false;
  }
  if (!options.progress) return true;
  const double horizon = scenario_.horizon.in(unit::sec);
  const double at = since_start(now).in(unit::sec);
  const Progress progress{.done = trace_ || horizon <= 0 ? 0 : std::min(1.0, at / horizon),
                          .arrived = collector_.counts().arrived,
                          .completed = collector_.counts().completed,
                          .simulated = since_start(now)};
  if (options.progress(progress)) return true;
  result.partial = true;
  collector_.interrupt();
  result.partial_reason = fmt::format("interrupted at {:.6g} simulated seconds", at);
  return false;
}

void Run::go(const RunOptions& options, RunResult& result) {
  schedule_arrival();
  for (;;) {
    const Instant until = simulation_.now() + scenario_.series_interval;
    simulation_.run_until(until);
    cluster_.catch_up_all();
    collector_.sample(until, cluster_);
    if (!keep_going(options, result)) break;
  }
  over_ = true;
  cluster_.give_up_all();
}

struct Opened {
  std::unique_ptr<workload::Source> source;
  std::optional<workload::TraceInfo> info;
};

Result<Opened> open_load(const Scenario& scenario) {
  Opened opened;
  if (const auto* trace = std::get_if<TraceLoad>(&scenario.load)) {
    workload::TraceOptions options = trace->options;
    options.seed = scenario.seed;
    RACKTWIN_TRY(workload::Trace read, workload::open_trace(trace->path, options));
    opened.source = std::move(read.source);
    opened.info = std::move(read.info);
    return opened;
  }
  opened.source =
      workload::generate(std::get<workload::Load>(scenario.load), scenario.horizon, scenario.seed);
  return opened;
}

void warn_of_block_sizes(const Opened& load, const Parts& parts, RunResult& result) {
  const int given = load.info ? load.info->block_tokens : 0;
  if (given == 0) return;
  for (const auto& pool : parts.cluster.pools) {
    const int size = pool.rules.block_tokens;
    if (given % size != 0 && size % given != 0)
      result.warnings.push_back(fmt::format(
          "pool \"{}\": KV blocks of {} tokens and trace blocks of {} do not divide one "
          "another: no prefix is reused there",
          pool.pool.name, size, given));
  }
}

}  // namespace

Result<RunResult> run(const Scenario& given, const catalog::Catalog& catalog,
                      const RunOptions& options) {
  RACKTWIN_TRY(Parts parts, build(given, catalog));
  RACKTWIN_TRY(Opened load, open_load(given));
  Scenario scenario = given;
  if (load.info && scenario.warmup > Seconds{} && load.info->scaled.span <= scenario.warmup) {
    parts.warnings.push_back(fmt::format(
        "the trace is over within the warm-up of {:.6g} s: nothing is left out as warm-up",
        scenario.warmup.in(unit::sec)));
    scenario.warmup = Seconds{};
  }
  RunResult result{.scenario_name = scenario.name,
                   .scenario_yaml = to_yaml(given),
                   .version = std::string(racktwin::version),
                   .seed = scenario.seed,
                   .racks = scenario.racks,
                   .gpus = parts.gpus,
                   .model = parts.model.name,
                   .system = parts.system.name,
                   .gpu = parts.gpu.name};
  result.warnings = parts.warnings;
  warn_of_block_sizes(load, parts, result);
  const catalog::Parameters parameters = catalog::parameters(parts.model);
  result.model_parameters = parameters.total;
  result.model_active = parameters.active;

  Run loop(scenario, parts, *load.source, load.info.has_value());
  loop.go(options, result);

  result.simulated = since_start(loop.simulation().now());
  result.events = loop.simulation().executed();
  result.trace = std::move(load.info);
  fold_cluster(scenario, parts, loop.cluster(), loop.collector(), result.simulated, result);
  result.metrics = loop.collector().metrics(result.gpus_used, loop.cluster());
  result.series = loop.collector().series(loop.cluster(), series_samples);
  result.records = loop.collector().records();
  result.digest = loop.collector().digest();
  result.bottleneck = find_bottleneck(result);
  const Counts& counts = result.metrics.counts;
  RACKTWIN_CHECK(counts.arrived == counts.completed + counts.shed + counts.unfinished);
  if (counts.completed == 0 && counts.shed > 0)
    result.warnings.push_back(fmt::format("nothing was served: {} requests were shed ({})",
                                          counts.shed, counts.shed_reasons.begin()->first));
  if (counts.arrived == 0)
    result.warnings.push_back("no request arrived: there is nothing to report");
  return result;
}

}  // namespace racktwin::sim
