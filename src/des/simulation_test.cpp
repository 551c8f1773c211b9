#include "des/simulation.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "base/rng.hpp"
#include "base/units.hpp"

namespace racktwin::des {
namespace {

// Remembers what ran: (now, argument).
struct Recorder {
  Simulation simulation;
  std::vector<std::pair<std::int64_t, std::uint64_t>> ran;
  std::uint64_t stop_at = UINT64_MAX;

  void note(std::uint64_t argument) {
    ran.emplace_back(simulation.now().ns(), argument);
    if (argument == stop_at) simulation.stop();
  }
  EventId add(std::int64_t ns, Phase phase, std::uint64_t argument) {
    return simulation.at(Instant::at_ns(ns), phase, bind<&Recorder::note>(*this, argument));
  }
  void run_until(std::int64_t ns) { simulation.run_until(Instant::at_ns(ns)); }
  std::vector<std::uint64_t> arguments() const {
    std::vector<std::uint64_t> out;
    for (const auto& [ns, argument] : ran) out.push_back(argument);
    return out;
  }
};

constexpr std::array phases = {Phase::failure, Phase::completion, Phase::transfer,
                               Phase::arrival, Phase::decision,   Phase::telemetry};

TEST(Simulation, events_run_by_instant_whatever_the_order_they_came_in) {
  Recorder recorder;
  for (const std::int64_t ns : {30, 10, 20, 0})
    recorder.add(ns, Phase::arrival, static_cast<std::uint64_t>(ns));
  recorder.run_until(100);
  EXPECT_EQ(recorder.arguments(), (std::vector<std::uint64_t>{0, 10, 20, 30}));
  for (const auto& [ns, argument] : recorder.ran) EXPECT_EQ(ns, std::int64_t(argument));
}

TEST(Simulation, at_one_instant_phases_run_in_the_order_of_their_enum) {
  std::array<std::uint64_t, 6> order = {0, 1, 2, 3, 4, 5};
  do {  // all 720 orders of scheduling
    Recorder recorder;
    for (const std::uint64_t i : order) recorder.add(7, phases[i], i);
    recorder.run_until(8);
    ASSERT_EQ(recorder.arguments(), (std::vector<std::uint64_t>{0, 1, 2, 3, 4, 5}));
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(Simulation, at_one_instant_and_phase_events_run_as_they_were_scheduled) {
  Recorder recorder;
  std::vector<std::uint64_t> expected;
  for (std::uint64_t i = 0; i < 3'000; ++i) {
    recorder.add(5, Phase::decision, i);
    expected.push_back(i);
  }
  recorder.run_until(6);
  EXPECT_EQ(recorder.arguments(), expected);
}

TEST(Simulation, an_event_scheduled_for_now_runs_after_those_of_its_phase_and_before_later_ones) {
  struct Chain {
    Simulation simulation;
    std::vector<std::uint64_t> ran;
    void first(std::uint64_t) {
      ran.push_back(1);
      simulation.at(simulation.now(), Phase::arrival, bind<&Chain::note>(*this, 3));
      simulation.at(simulation.now(), Phase::decision, bind<&Chain::note>(*this, 4));
    }
    void note(std::uint64_t value) { ran.push_back(value); }
  } chain;
  chain.simulation.at(Instant::at_ns(9), Phase::arrival, bind<&Chain::first>(chain));
  chain.simulation.at(Instant::at_ns(9), Phase::arrival, bind<&Chain::note>(chain, 2));
  chain.simulation.at(Instant::at_ns(9), Phase::telemetry, bind<&Chain::note>(chain, 5));
  chain.simulation.run_until(Instant::at_ns(10));
  EXPECT_EQ(chain.ran, (std::vector<std::uint64_t>{1, 2, 3, 4, 5}));
}

TEST(Simulation, run_until_leaves_the_horizon_itself_pending_and_the_clock_on_it) {
  Recorder recorder;
  recorder.add(99, Phase::arrival, 99);
  recorder.add(100, Phase::failure, 100);
  recorder.run_until(100);
  EXPECT_EQ(recorder.arguments(), (std::vector<std::uint64_t>{99}));
  EXPECT_EQ(recorder.simulation.now().ns(), 100);
  EXPECT_EQ(recorder.simulation.pending(), 1u);
  recorder.run_until(100);  // again: nothing more
  EXPECT_EQ(recorder.ran.size(), 1u);
  recorder.run_until(101);
  EXPECT_EQ(recorder.arguments(), (std::vector<std::uint64_t>{99, 100}));
  EXPECT_TRUE(recorder.simulation.idle());
}

TEST(Simulation, stopping_keeps_the_clock_and_the_rest_and_a_later_run_goes_on) {
  Recorder recorder;
  for (std::uint64_t i = 1; i <= 4; ++i) recorder.add(std::int64_t(i), Phase::arrival, i);
  recorder.stop_at = 2;
  recorder.run_until(50);
  EXPECT_EQ(recorder.arguments(), (std::vector<std::uint64_t>{1, 2}));
  EXPECT_EQ(recorder.simulation.now().ns(), 2);
  EXPECT_EQ(recorder.simulation.pending(), 2u);
  recorder.run_until(50);
  EXPECT_EQ(recorder.arguments(), (std::vector<std::uint64_t>{1, 2, 3, 4}));
  EXPECT_EQ(recorder.simulation.now().ns(), 50);
}

TEST(Simulation, after_rounds_up_to_the_next_nanosecond) {
  Recorder recorder;
  recorder.simulation.after(0.25 * unit::ns, Phase::arrival, bind<&Recorder::note>(recorder, 1));
  recorder.run_until(1);
  EXPECT_TRUE(recorder.ran.empty());
  recorder.run_until(2);
  EXPECT_EQ(recorder.ran.size(), 1u);
}

TEST(Simulation, a_cancelled_event_does_not_run_and_cancels_only_once) {
  Recorder recorder;
  const EventId doomed = recorder.add(5, Phase::arrival, 1);
  recorder.add(5, Phase::arrival, 2);
  EXPECT_TRUE(recorder.simulation.cancel(doomed));
  EXPECT_FALSE(recorder.simulation.cancel(doomed));
  EXPECT_EQ(recorder.simulation.pending(), 1u);
  recorder.run_until(10);
  EXPECT_EQ(recorder.arguments(), (std::vector<std::uint64_t>{2}));
  EXPECT_EQ(recorder.simulation.executed(), 1u);
}

TEST(Simulation, an_old_id_never_cancels_the_event_that_took_its_place) {
  Recorder recorder;
  const EventId old = recorder.add(5, Phase::arrival, 1);
  recorder.run_until(6);
  EXPECT_FALSE(recorder.simulation.cancel(old));  // it ran
  const EventId young = recorder.add(7, Phase::arrival, 2);
  EXPECT_EQ(young.slot, old.slot);  // the room is used again
  EXPECT_FALSE(recorder.simulation.cancel(old));
  EXPECT_FALSE(recorder.simulation.cancel(EventId{}));
  recorder.run_until(8);
  EXPECT_EQ(recorder.arguments(), (std::vector<std::uint64_t>{1, 2}));
}

TEST(Simulation, a_cancelled_event_gives_its_room_back_at_once) {
  Recorder recorder;
  const EventId first = recorder.add(5, Phase::arrival, 1);
  EXPECT_TRUE(recorder.simulation.cancel(first));
  const EventId second = recorder.add(5, Phase::arrival, 2);
  EXPECT_EQ(second.slot, first.slot);
  recorder.run_until(6);  // the dead entry of the first must not take the second with it
  EXPECT_EQ(recorder.arguments(), (std::vector<std::uint64_t>{2}));
}

TEST(Simulation, an_event_may_cancel_another_of_its_own_instant) {
  struct Pair {
    Simulation simulation;
    EventId other;
    int ran = 0;
    void kill(std::uint64_t) { EXPECT_TRUE(simulation.cancel(other)); }
    void count(std::uint64_t) { ++ran; }
  } pair;
  pair.simulation.at(Instant::at_ns(3), Phase::failure, bind<&Pair::kill>(pair));
  pair.other = pair.simulation.at(Instant::at_ns(3), Phase::completion, bind<&Pair::count>(pair));
  pair.simulation.run_until(Instant::at_ns(4));
  EXPECT_EQ(pair.ran, 0);
  EXPECT_TRUE(pair.simulation.idle());
}

TEST(Simulation, tells_whether_the_present_instant_is_over) {
  struct Watch {
    Simulation simulation;
    EventId later;
    std::vector<bool> quiet, more_completions, more_decisions;
    void look(std::uint64_t) {
      quiet.push_back(simulation.quiet());
      more_completions.push_back(simulation.more_now(Phase::completion));
      more_decisions.push_back(simulation.more_now(Phase::decision));
    }
    void cancel(std::uint64_t) { EXPECT_TRUE(simulation.cancel(later)); }
    EventId add(std::int64_t ns, Phase phase) {
      return simulation.at(Instant::at_ns(ns), phase, bind<&Watch::look>(*this));
    }
  } watch;
  watch.add(5, Phase::completion);  // a second completion and a decision are still to come
  watch.add(5, Phase::completion);  // the decision
  watch.add(5, Phase::decision);    // nothing at 5
  watch.add(6, Phase::completion);  // a decision that is cancelled before the next look
  watch.later = watch.add(6, Phase::decision);
  watch.simulation.at(Instant::at_ns(6), Phase::failure, bind<&Watch::cancel>(watch));
  watch.simulation.run_until(Instant::at_ns(9));
  EXPECT_EQ(watch.more_completions, (std::vector<bool>{true, false, false, false}));
  EXPECT_EQ(watch.more_decisions, (std::vector<bool>{true, true, false, false}));
  EXPECT_EQ((std::vector<bool>(watch.quiet.begin(), watch.quiet.begin() + 3)),
            (std::vector<bool>{false, false, true}));
  EXPECT_TRUE(watch.simulation.quiet());
}

TEST(SimulationDeathTest, the_past_an_empty_action_and_a_horizon_behind_the_clock_are_refused) {
  Recorder recorder;
  recorder.run_until(10);
  EXPECT_DEATH(recorder.add(9, Phase::arrival, 1), "invariant broken: when >= now_");
  EXPECT_DEATH(recorder.simulation.at(Instant::at_ns(20), Phase::arrival, Action{}),
               "invariant broken: action.function");
  EXPECT_DEATH(recorder.run_until(9), "invariant broken: horizon >= now_");
}

// A model that schedules, cancels and runs at random, beside the plainest possible kernel: a
// map from (ns, phase, sequence) that is searched from the front.
struct Differential {
  using Place = std::tuple<std::int64_t, int, std::uint64_t>;
  Simulation simulation;
  std::map<Place, std::uint64_t> sorted;
  std::vector<std::pair<EventId, Place>> ids;
  Rng rng;
  std::uint64_t next = 0, left;

  Differential(std::uint64_t seed, std::uint64_t events)
      : rng(seed, "simulation test"), left(events) {}

  void schedule() {
    static constexpr std::array<std::uint64_t, 5> spans = {1, 3, 100, 1'000'000, 1ull << 45};
    const auto ns =
        simulation.now().ns() + static_cast<std::int64_t>(rng.below(spans[rng.below(5)]));
    const auto phase = phases[rng.below(6)];
    // At the present instant only phases that have not passed: the model may not rewrite it.
    const Place place{ns, static_cast<int>(phase), next};
    if (ns == simulation.now().ns() && static_cast<int>(phase) < current) return;
    ids.emplace_back(
        simulation.at(Instant::at_ns(ns), phase, bind<&Differential::execute>(*this, next)), place);
    sorted.emplace(place, next++);
  }
  void cancel() {
    if (ids.empty()) return;
    const auto& [id, place] = ids[rng.below(ids.size())];
    EXPECT_EQ(simulation.cancel(id), sorted.erase(place) == 1);
  }
  void execute(std::uint64_t argument) {
    ASSERT_FALSE(sorted.empty());
    const auto [place, expected] = *sorted.begin();
    ASSERT_EQ(argument, expected);
    ASSERT_EQ(simulation.now().ns(), std::get<0>(place));
    current = std::get<1>(place);
    sorted.erase(sorted.begin());
    for (std::uint64_t i = rng.below(4); i > 0 && left > 0; --i, --left) schedule();
    if (rng.uniform() < 0.3) cancel();
    ASSERT_EQ(simulation.pending(), sorted.size());
  }
  int current = -1;
};

TEST(Simulation, equals_a_sorted_map_under_random_scheduling_and_cancelling) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Differential model(seed, 4'000);
    for (int i = 0; i < 50; ++i) model.schedule();
    std::int64_t horizon = 0;
    while (!model.simulation.idle() && !testing::Test::HasFatalFailure()) {
      horizon = std::max(horizon * 3 / 2 + 1, model.simulation.now().ns());
      model.simulation.run_until(Instant::at_ns(horizon));
      model.current = -1;
    }
    ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed;
    EXPECT_TRUE(model.sorted.empty());
    EXPECT_GT(model.simulation.executed(), 50u);
  }
}

std::uint64_t digest_of(const std::vector<std::tuple<std::int64_t, Phase, std::uint64_t>>& events,
                        std::uint64_t tie_seed = 0) {
  Recorder recorder;
  recorder.simulation.shuffle_ties(tie_seed);
  for (const auto& [ns, phase, argument] : events) recorder.add(ns, phase, argument);
  recorder.run_until(1'000);
  return recorder.simulation.digest();
}

TEST(Simulation, the_digest_is_that_of_what_ran_and_when_not_of_how_it_was_scheduled) {
  const std::uint64_t digest = digest_of({{1, Phase::arrival, 0}, {2, Phase::decision, 0}});
  EXPECT_EQ(digest, digest_of({{2, Phase::decision, 0}, {1, Phase::arrival, 0}}));
  EXPECT_NE(digest, digest_of({{1, Phase::arrival, 0}, {3, Phase::decision, 0}}));
  EXPECT_NE(digest, digest_of({{1, Phase::arrival, 0}, {2, Phase::transfer, 0}}));
  EXPECT_NE(digest, digest_of({{1, Phase::arrival, 0}}));
  EXPECT_NE(digest, digest_of({}));
}

TEST(Simulation, a_mark_and_its_place_are_part_of_the_digest) {
  Simulation one, other;
  EXPECT_EQ(one.digest(), other.digest());
  one.mark(1);
  EXPECT_NE(one.digest(), other.digest());
  one.mark(2);
  other.mark(2);
  other.mark(1);
  EXPECT_NE(one.digest(), other.digest());
}

TEST(Simulation, shuffled_ties_permute_only_events_of_one_instant_and_phase) {
  const auto run = [](std::uint64_t tie_seed) {
    Recorder recorder;
    recorder.simulation.shuffle_ties(tie_seed);
    for (std::uint64_t i = 0; i < 600; ++i)
      recorder.add(std::int64_t(i / 200), phases[2 + i / 100 % 2], i);
    recorder.run_until(10);
    return recorder.arguments();
  };
  const auto plain = run(0), shuffled = run(1);
  EXPECT_TRUE(std::is_sorted(plain.begin(), plain.end()));
  EXPECT_NE(shuffled, plain);
  EXPECT_EQ(shuffled, run(1));
  EXPECT_NE(shuffled, run(2));
  ASSERT_EQ(shuffled.size(), 600u);
  for (std::size_t group = 0; group < 6; ++group) {  // each hundred is a permutation of itself
    const auto first = shuffled.begin() + std::ptrdiff_t(group * 100);
    std::vector<std::uint64_t> part(first, first + 100);
    EXPECT_FALSE(std::is_sorted(part.begin(), part.end()));
    std::sort(part.begin(), part.end());
    for (std::uint64_t i = 0; i < 100; ++i) EXPECT_EQ(part[i], group * 100 + i);
  }
}

TEST(Simulation, shuffling_ties_leaves_the_digest_alone_where_order_does_not_matter) {
  std::vector<std::tuple<std::int64_t, Phase, std::uint64_t>> events;
  for (std::uint64_t i = 0; i < 100; ++i) events.emplace_back(5, Phase::arrival, i);
  EXPECT_EQ(digest_of(events), digest_of(events, 77));
}

}  // namespace
}  // namespace racktwin::des
