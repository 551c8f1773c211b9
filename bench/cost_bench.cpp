// Time of one StepModel::cost(): a simulated day of a whole cluster asks for 10^8 of them. The
// counter "digest" shows that two builds did the same work.
#include <benchmark/benchmark.h>

#include <vector>

#include "base/rng.hpp"
#include "cost/fixtures.hpp"

namespace racktwin::cost {
namespace {

using namespace fixtures;

// `rounds` steps of a decode pool, each rank with its own batch and context.
std::vector<std::vector<RankWork>> steps(int ranks, std::int64_t drafts, bool mixed) {
  Rng rng(1, "cost bench");
  std::vector<std::vector<RankWork>> list(64);
  for (std::vector<RankWork>& step : list) {
    for (int i = 0; i < ranks; ++i) {
      RankWork work = decode(64 + static_cast<std::int64_t>(rng.below(192)),
                             1000 + static_cast<std::int64_t>(rng.below(8000)), drafts);
      if (mixed && rng.below(8) == 0)
        work = both(work, prompt(1 + static_cast<std::int64_t>(rng.below(2048))));
      step.push_back(work);
    }
  }
  return list;
}

void measure(benchmark::State& state, const StepModelSpec& spec, bool mixed) {
  const auto model = speed_of_light(spec);
  const auto list = steps(spec.parallelism.dp, spec.draft_tokens, mixed);
  double digest = 0;
  for (const auto& step : list) digest += model->cost(step).total().in(unit::ms);
  std::size_t next = 0;
  for (auto _ : state) benchmark::DoNotOptimize(model->cost(list[next++ % list.size()]));
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()));
  state.counters["digest"] = digest;
}

void deepseek_decode(benchmark::State& state) {
  const int dp = static_cast<int>(state.range(0));
  measure(state, on_gb300(deepseek_r1(), {.dp = dp, .ep = dp}), false);
}
BENCHMARK(deepseek_decode)->Arg(1)->Arg(8)->Arg(32)->Arg(64);

void deepseek_decode_mtp(benchmark::State& state) {
  StepModelSpec spec = on_gb300(deepseek_r1(), {.dp = 32, .ep = 32});
  spec.draft_tokens = 3;
  measure(state, spec, false);
}
BENCHMARK(deepseek_decode_mtp);

void deepseek_mixed(benchmark::State& state) {
  measure(state, on_gb300(deepseek_r1(), {.dp = 32, .ep = 32}), true);
}
BENCHMARK(deepseek_mixed);

void llama_decode(benchmark::State& state) {
  measure(state, on_h200(llama_70b(), {.tp = 8}), false);
}
BENCHMARK(llama_decode);

void deepseek_explain(benchmark::State& state) {
  const auto model = speed_of_light(on_gb300(deepseek_r1(), {.dp = 32, .ep = 32}));
  const auto list = steps(32, 0, false);
  for (auto _ : state) benchmark::DoNotOptimize(model->explain(list[0]));
}
BENCHMARK(deepseek_explain);

void deepseek_compile(benchmark::State& state) {
  const StepModelSpec spec = on_gb300(deepseek_r1(), {.dp = 32, .ep = 32});
  for (auto _ : state) benchmark::DoNotOptimize(speed_of_light(spec));
}
BENCHMARK(deepseek_compile);

}  // namespace
}  // namespace racktwin::cost
