// Running a world, and what must hold of it.
#include <fmt/format.h>

#include <algorithm>

#include "world.hpp"

namespace racktwin::swarm {
namespace {

using serve::Active;
using serve::End;
using serve::Role;
using serve::fixtures::Driver;

// Shed requests of a closed loop come back at once: a bound on what one run may take in.
class Capped final : public workload::Source {
 public:
  Capped(std::unique_ptr<workload::Source> source, std::int64_t most)
      : source_(std::move(source)), left_(most) {}
  std::optional<Instant> peek() override { return left_ > 0 ? source_->peek() : std::nullopt; }
  workload::Request next() override {
    --left_;
    return source_->next();
  }
  void completed(RequestId id, Instant when) override { source_->completed(id, when); }

 private:
  std::unique_ptr<workload::Source> source_;
  std::int64_t left_;
};

Trail::Row row_of(const Driver::Ended& ended) {
  const Active& a = ended.request;
  return {.id = a.id.index,
          .arrival = a.arrival,
          .scheduled = a.scheduled,
          .prefilled = a.prefilled,
          .slot = a.slot,
          .transferred = a.transferred,
          .first_token = a.first_token,
          // Of a request that decodes the last token is known when it ends.
          .last_token = ended.end == End::completed ? a.last_token : serve::never,
          .isl = a.isl,
          .osl = a.osl,
          .reused = a.reused,
          .preemptions = a.preemptions,
          .prefill_replica = a.prefill_replica,
          .replica = a.replica,
          .end = ended.end,
          .reason = ended.reason};
}

Trail::Machine machine_of(const serve::Replica& replica) {
  const serve::StepStats& s = replica.stats();
  return {.steps = s.steps,
          .mixed_steps = s.mixed_steps,
          .prefill_steps = s.prefill_steps,
          .decode_steps = s.decode_steps,
          .prefill_tokens = s.prefill_tokens,
          .output_tokens = s.output_tokens,
          .sequences = s.sequences,
          .preemptions = s.preemptions,
          .reused_tokens = s.reused_tokens,
          .prompt_tokens = s.prompt_tokens,
          .reused_lower = s.reused_lower,
          .busy_ns = s.busy_ns,
          .compute = s.compute.in(unit::ns),
          .memory = s.memory.in(unit::ns),
          .decode_context = s.decode_context,
          .itl = s.itl,
          .chunk = s.chunk,
          .output_by_interval = s.output_by_interval,
          .busy_by_interval = s.busy_by_interval,
          .blocks_used = replica.blocks_used()};
}

// At a moment when every event so far has run.
void look(Driver& driver, const World& world, std::vector<std::string>& broken) {
  serve::Cluster& cluster = driver.cluster();
  for (std::size_t i = 0; i < cluster.replicas(); ++i) {
    const serve::Replica& r = cluster.replica(i);
    const auto say = [&](const char* what) {
      broken.push_back(
          fmt::format("replica {} at {} ns: {} (waiting {}, running {}, blocks {} of {})", i,
                      driver.simulation().now().ns(), what, r.waiting(), r.running(),
                      r.blocks_used(), r.blocks_total()));
    };
    if (r.blocks_used() < 0 || r.blocks_used() > r.blocks_total()) say("used blocks out of range");
    if (r.running() < 0 || r.free_slots() < 0) say("more running than slots");
    if (!r.busy() && r.waiting() > 0 && r.blocks_used() == 0)
      say("idle while work waits and everything is free");
    const Role role = world.setup.pools[cluster.pool_of(i)].pool.role;
    if (!r.busy() && r.waiting() > 0 && r.running() == 0 && role != Role::prefill)
      say("idle while work waits and nothing runs");
  }
}

}  // namespace

Trail run(const World& world, Execution execution) {
  serve::Cluster::Setup setup = world.setup;
  setup.single_steps = execution == Execution::plain;
  const auto sound = workload::check(world.load);
  if (!sound.ok()) return {.broken = {sound.error().text()}};
  auto source = workload::generate(world.load, world.horizon, world.setup.seed);
  Driver driver(setup, std::make_unique<Capped>(std::move(source), 400));
  Trail trail;
  const Instant most = Instant::at_ns(600'000'000'000);
  driver.drain(1 * unit::ms, most, [&] {
    if (trail.broken.size() < 3) look(driver, world, trail.broken);
  });
  trail.drained = driver.simulation().now() < most;
  if (!trail.drained) trail.broken.push_back("stuck: " + driver.cluster().stuck());
  trail.arrived = driver.arrived();
  for (const Driver::Ended& ended : driver.ends()) trail.rows.push_back(row_of(ended));
  for (std::size_t i = 0; i < driver.cluster().replicas(); ++i)
    trail.machines.push_back(machine_of(driver.cluster().replica(i)));
  trail.transfers = driver.cluster().transfers().count;
  trail.moved_tokens = driver.cluster().kv_moved_tokens();
  return trail;
}

namespace {

void check_row(const World& world, const Trail::Row& r, std::vector<std::string>& broken) {
  const auto say = [&](const std::string& what) {
    broken.push_back(fmt::format("request {} (isl {}, osl {}, end {}): {}", r.id, r.isl, r.osl,
                                 static_cast<int>(r.end), what));
  };
  if (r.end == End::shed && r.reason.empty()) say("shed without a reason");
  if (r.end == End::unfinished) say("unfinished though the run had all the time");
  if (r.end != End::completed) return;
  const bool handed_over = r.prefill_replica != serve::no_replica;
  std::vector<std::int64_t> stamps{r.arrival, r.scheduled, r.prefilled};
  if (handed_over) stamps.insert(stamps.end(), {r.slot, r.transferred});
  stamps.insert(stamps.end(), {r.first_token, r.last_token});
  if (stamps.front() < 0 || !std::is_sorted(stamps.begin(), stamps.end()))
    say(fmt::format("stamps out of order: {}", fmt::join(stamps, " ")));
  if (!handed_over && (r.slot != serve::never || r.transferred != serve::never))
    say("has stamps of a hand-over that never was");
  // The first token takes a step after the bytes are there.
  if (handed_over && r.first_token <= r.transferred) say("first token without a decode step");
  if (r.osl == 1 && r.first_token != r.last_token) say("one token, two times");
  if (r.osl > 1) {
    std::int64_t most = 0;  // tokens of a step
    for (const auto& p : world.setup.pools)
      most = std::max<std::int64_t>(most, 1 + p.rules.speculation.draft_tokens);
    const std::int64_t steps = (r.osl - 1 + most - 1) / most;
    if (most == 1 && r.last_token - r.first_token < steps * 1000) say("tokens faster than steps");
  }
  if (r.reused >= r.isl) say("no token computed");
}

}  // namespace

std::vector<std::string> broken_laws(const World& world, const Trail& trail) {
  std::vector<std::string> broken = trail.broken;
  if (static_cast<std::int64_t>(trail.rows.size()) != trail.arrived)
    broken.push_back(fmt::format("{} arrived and {} ended", trail.arrived, trail.rows.size()));
  std::int64_t output = 0, handed_over = 0;
  bool shed_late = false;
  for (std::size_t i = 0; i < trail.rows.size() && broken.size() < 10; ++i) {
    if (trail.rows[i].id != i) broken.push_back(fmt::format("request {} is missing", i));
    check_row(world, trail.rows[i], broken);
    if (trail.rows[i].end == End::completed) output += trail.rows[i].osl;
    handed_over += trail.rows[i].prefill_replica != serve::no_replica;
    shed_late = shed_late || trail.rows[i].scheduled != serve::never;
  }
  if (handed_over != trail.transfers) broken.push_back("transfers are not those handed over");
  std::int64_t made = 0;
  bool outgrown = false, speculates = false;
  for (const Trail::Row& r : trail.rows) outgrown = outgrown || r.reason.starts_with("output");
  for (const auto& p : world.setup.pools)
    speculates = speculates || p.rules.speculation.draft_tokens > 0;
  for (std::size_t m = 0; m < trail.machines.size(); ++m) {
    const Trail::Machine& machine = trail.machines[m];
    if (trail.drained && machine.blocks_used != 0)
      broken.push_back(fmt::format("replica {} leaks {} blocks", m, machine.blocks_used));
    if (machine.itl.count() > machine.output_tokens && !speculates)
      broken.push_back(fmt::format("replica {} has more gaps than tokens", m));
    made += machine.output_tokens;
  }
  if (!outgrown && !speculates && made != output)
    broken.push_back(fmt::format("{} tokens made and {} delivered", made, output));
  return broken;
}

std::string difference(const Trail& a, const Trail& b) {
  if (a == b) return {};
  for (std::size_t i = 0; i < std::min(a.rows.size(), b.rows.size()); ++i) {
    const Trail::Row &x = a.rows[i], &y = b.rows[i];
    if (x == y) continue;
    const auto line = [](const Trail::Row& r) {
      return fmt::format(
          "id {} isl {} osl {} arrival {} scheduled {} prefilled {} slot {} transferred {} first "
          "{} last {} on {} -> {} preempted {} reused {} end {} {}",
          r.id, r.isl, r.osl, r.arrival, r.scheduled, r.prefilled, r.slot, r.transferred,
          r.first_token, r.last_token, static_cast<int>(r.prefill_replica),
          static_cast<int>(r.replica), r.preemptions, r.reused, static_cast<int>(r.end), r.reason);
    };
    return line(x) + "\n" + line(y);
  }
  if (a.rows.size() != b.rows.size())
    return fmt::format("{} and {} requests", a.rows.size(), b.rows.size());
  for (std::size_t m = 0; m < a.machines.size(); ++m) {
    const Trail::Machine &x = a.machines[m], &y = b.machines[m];
    if (x == y) continue;
    return fmt::format(
        "replica {}: steps {} {}, output {} {}, sequences {} {}, busy {} {}, compute {} {}, memory "
        "{} {}, itl {} {}, chunk {} {}, used {} {}, reused {} {}, intervals {} {}",
        m, x.steps, y.steps, x.output_tokens, y.output_tokens, x.sequences, y.sequences, x.busy_ns,
        y.busy_ns, x.compute, y.compute, x.memory, y.memory, x.itl.count(), y.itl.count(),
        x.chunk.count(), y.chunk.count(), x.blocks_used, y.blocks_used, x.reused_tokens,
        y.reused_tokens, x.output_by_interval == y.output_by_interval,
        x.busy_by_interval == y.busy_by_interval);
  }
  return "the trails differ in their totals";
}

std::string trouble(std::uint64_t seed) {
  const World world = draw_world(seed);
  const Trail macro = run(world, Execution::macro);
  std::string text;
  for (const std::string& law : broken_laws(world, macro)) text += "  " + law + "\n";
  const Trail plain = run(world, Execution::plain);
  if (const std::string parted = difference(macro, plain); !parted.empty())
    text += "  macro and plain steps part:\n" + parted + "\n";
  if (const std::string parted = difference(macro, run(world, Execution::macro)); !parted.empty())
    text += "  two runs part:\n" + parted + "\n";
  return text.empty() ? text : fmt::format("seed {}\n{}{}", seed, world.text(), text);
}

}  // namespace racktwin::swarm
