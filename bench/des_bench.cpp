// The event kernel: schedule and execute with many events pending, and timers that are
// cancelled. The counter "digest" shows that two builds did the same work.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <vector>

#include "base/rng.hpp"
#include "des/simulation.hpp"

namespace racktwin::des {
namespace {

// The hold model: every event, when it runs, schedules one in its place, so that the number
// pending stays as it is. Delays are spread exponentially around `mean_ns`, drawn beforehand.
class Hold {
 public:
  explicit Hold(std::int64_t pending) {
    Rng rng(1, "des bench");
    for (std::int64_t& delay : delays_) {
      delay = 1 + static_cast<std::int64_t>(rng.exponential(mean_ns));
    }
    for (std::int64_t i = 0; i < pending; ++i) again(static_cast<std::uint64_t>(i));
  }
  void run(std::uint64_t events) {
    left_ = events;
    simulation_.run_until(Instant::at_ns(INT64_MAX));
  }
  const Simulation& simulation() const { return simulation_; }

 private:
  static constexpr double mean_ns = 1e6;
  void again(std::uint64_t actor) {
    const std::int64_t delay = delays_[next_++ % delays_.size()];
    simulation_.at(Instant::at_ns(simulation_.now().ns() + delay), static_cast<Phase>(actor % 6),
                   bind<&Hold::execute>(*this, actor));
  }
  void execute(std::uint64_t actor) {
    again(actor);
    if (--left_ == 0) simulation_.stop();
  }

  Simulation simulation_;
  std::vector<std::int64_t> delays_ = std::vector<std::int64_t>(1 << 16);
  std::size_t next_ = 0;
  std::uint64_t left_ = 0;
};

void hold(benchmark::State& state) {
  constexpr std::uint64_t batch = 10'000;
  Hold model(state.range(0));
  for (auto _ : state) model.run(batch);
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(batch));
  Hold same(state.range(0));
  same.run(100 * batch);
  state.counters["digest"] = static_cast<double>(same.simulation().digest() >> 32);
}
BENCHMARK(hold)->Arg(1)->Arg(100)->Arg(1'000)->Arg(10'000)->Arg(100'000)->Arg(1'000'000);

// A time-out per request that is nearly always cancelled in time.
void schedule_and_cancel(benchmark::State& state) {
  Simulation simulation;
  const Action nothing{[](void*, std::uint64_t) {}, nullptr, 0};
  std::int64_t now = 0;
  for (auto _ : state) {
    const EventId timer = simulation.at(Instant::at_ns(now + 1000), Phase::failure, nothing);
    benchmark::DoNotOptimize(simulation.cancel(timer));
    simulation.run_until(Instant::at_ns(++now));
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(schedule_and_cancel);

}  // namespace
}  // namespace racktwin::des
