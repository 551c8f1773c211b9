// Every small system of a kind: three requests of a few lengths at a few times, on every
// engine's rules and caches from too small to roomy. Macro-steps change no token time, and
// nobody is lost.
#include <gtest/gtest.h>

#include "serve/driver.hpp"
#include "serve/fixtures.hpp"

namespace racktwin {
namespace {

using serve::fixtures::Driver;
using serve::fixtures::LinearModel;
using serve::fixtures::ListSource;
using serve::fixtures::named;
using serve::fixtures::request;

const LinearModel model({.base = 1000, .token = 100, .context = 10});

struct Kind {
  int isl = 1, osl = 1;
  std::int64_t at = 0;
};
std::vector<Kind> kinds() {
  std::vector<Kind> all;
  for (const int isl : {1, 4, 7})
    for (const int osl : {1, 6})
      for (const std::int64_t at : {0, 1100, 2500}) all.push_back({isl, osl, at});
  return all;
}

std::vector<Driver::Ended> run(serve::Cluster::Setup setup, const std::array<Kind, 3>& three,
                               bool single_steps) {
  setup.single_steps = single_steps;
  std::vector<workload::Request> list;
  for (const Kind& k : three) list.push_back(request(0, k.at, k.isl, k.osl));
  std::stable_sort(list.begin(), list.end(),
                   [](const auto& a, const auto& b) { return a.arrival < b.arrival; });
  for (std::uint32_t i = 0; i < 3; ++i) {
    list[i].id = RequestId{i};
    list[i] = named(std::move(list[i]), 4, 1, 1);  // the first block is common
  }
  Driver driver(setup, std::make_unique<ListSource>(std::move(list)));
  driver.drain(unit::ms, Instant::at_ns(1'000'000'000), [] {});
  for (std::size_t i = 0; i < driver.cluster().replicas(); ++i)
    EXPECT_EQ(driver.cluster().replica(i).blocks_used(), 0);
  return driver.ends();
}

void compare(const serve::Cluster::Setup& setup, const std::array<Kind, 3>& three) {
  const auto macro = run(setup, three, false), plain = run(setup, three, true);
  ASSERT_EQ(macro.size(), 3u);
  ASSERT_EQ(plain.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    const serve::Active &a = macro[i].request, &b = plain[i].request;
    ASSERT_NE(macro[i].end, serve::End::unfinished);
    ASSERT_EQ(macro[i].end, plain[i].end);
    ASSERT_EQ(a.scheduled, b.scheduled);
    ASSERT_EQ(a.prefilled, b.prefilled);
    ASSERT_EQ(a.slot, b.slot);
    ASSERT_EQ(a.transferred, b.transferred);
    ASSERT_EQ(a.first_token, b.first_token);
    ASSERT_EQ(a.preemptions, b.preemptions);
    if (macro[i].end == serve::End::completed) {
      ASSERT_EQ(a.last_token, b.last_token);
    }
  }
}

class SmallSystems : public testing::TestWithParam<std::tuple<int, int, bool>> {};

TEST_P(SmallSystems, run_alike_in_macro_and_in_single_steps) {
  const auto [engine, blocks, disaggregated] = GetParam();
  serve::Cluster::Setup setup = disaggregated ? serve::fixtures::disaggregated_setup(model)
                                              : serve::fixtures::small_setup(model);
  for (auto& pool : setup.pools) {
    serve::Rules& r = pool.rules;
    r.block_tokens = 4;
    r.blocks = blocks;
    r.max_sequences = 2;
    r.max_batch_tokens = 8;
    r.mixed = engine != 1;
    r.estimate_output = r.preempt_least_done = engine == 1;
    r.chunked_prefill = engine != 2;
    r.reserve_output = engine == 2 && pool.pool.role != serve::Role::prefill;
  }
  serve::fixtures::place_in_order(setup);
  const std::vector<Kind> all = kinds();
  for (const Kind& a : all)
    for (const Kind& b : all)
      for (const Kind& c : all) {
        compare(setup, {a, b, c});
        if (HasFailure()) {
          for (const Kind& k : {a, b, c})
            ADD_FAILURE() << "isl " << k.isl << " osl " << k.osl << " at " << k.at;
          return;
        }
      }
}

INSTANTIATE_TEST_SUITE_P(Engines, SmallSystems,
                         testing::Combine(testing::Range(0, 3), testing::Values(2, 3, 4, 9),
                                          testing::Bool()));

}  // namespace
}  // namespace racktwin
