// Sessions: turns, think time, growing prompts, sub-agents.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "workload/generator.hpp"

namespace racktwin::workload {
namespace {

Lengths fixed(double value) {
  return {.kind = Lengths::Kind::fixed, .mean = value, .min = 0};
}

Sessions talk() {
  Sessions load;
  load.starts.rate = 5 * unit::per_second;
  load.turns = fixed(3);
  load.first_prompt = fixed(200);
  load.new_tokens = fixed(50);
  load.osl = fixed(30);
  load.think_ms = fixed(2000);
  load.system_prompt = 130;
  load.block_tokens = 64;
  return load;
}

struct Seen {
  Request request;
  Instant ended;
};

// Serves every request in `service`, one event at a time, and returns all in order.
std::vector<Seen> serve(Source& source, Seconds service) {
  std::vector<Seen> all;
  std::multimap<Instant, std::size_t> running;
  for (;;) {
    const auto next = source.peek();
    if (!running.empty() && (!next || running.begin()->first < *next)) {
      const auto [when, index] = *running.begin();
      running.erase(running.begin());
      source.completed(all[index].request.id, when);
      continue;
    }
    if (!next) return all;
    Request request = source.next();
    const Instant end = request.arrival + service;
    running.emplace(end, all.size());
    all.push_back({std::move(request), end});
  }
}

std::map<std::uint32_t, std::vector<Seen>> by_session(const std::vector<Seen>& all) {
  std::map<std::uint32_t, std::vector<Seen>> sessions;
  for (const Seen& seen : all) sessions[seen.request.session->index].push_back(seen);
  return sessions;
}

TEST(Sessions, a_turn_comes_a_think_time_after_the_last_and_contains_it) {
  const auto source = generate(talk(), 60 * unit::sec, 1);
  const auto sessions = by_session(serve(*source, 3 * unit::sec));
  ASSERT_GT(sessions.size(), 200u);
  int whole = 0;
  for (const auto& [id, turns] : sessions) {
    whole += turns.size() == 3;
    for (std::size_t i = 0; i < turns.size(); ++i) {
      EXPECT_EQ(turns[i].request.isl, 330 + static_cast<std::int64_t>(i) * 80);
      if (i > 0) {
        EXPECT_EQ(turns[i].request.arrival, turns[i - 1].ended + 2 * unit::sec);
      }
    }
  }
  EXPECT_GT(whole, 200);
}

TEST(Sessions, blocks_name_prefixes) {
  const auto source = generate(talk(), 60 * unit::sec, 1);
  const auto sessions = by_session(serve(*source, unit::sec));
  std::set<std::uint64_t> first_blocks, private_blocks;
  for (const auto& [id, turns] : sessions) {
    for (std::size_t i = 0; i < turns.size(); ++i) {
      const auto& blocks = turns[i].request.blocks;
      ASSERT_EQ(blocks.size(), static_cast<std::size_t>((turns[i].request.isl + 63) / 64));
      first_blocks.insert(blocks[0]);
      first_blocks.insert(blocks[1]);
      private_blocks.insert(blocks[2]);  // holds the end of the system prompt and a question
      if (i == 0) continue;
      const auto& before = turns[i - 1].request.blocks;
      const auto full = static_cast<std::size_t>(turns[i - 1].request.isl / 64);
      for (std::size_t k = 0; k < full; ++k) EXPECT_EQ(blocks[k], before[k]);
      EXPECT_NE(blocks[full], before[full]);  // the partial one was filled up
    }
  }
  EXPECT_EQ(first_blocks.size(), 2u);  // 130 tokens: two whole blocks shared by all
  EXPECT_EQ(private_blocks.size(), sessions.size());
}

TEST(Sessions, what_a_session_asks_does_not_depend_on_how_fast_it_is_served) {
  Sessions load = talk();
  load.osl = {.kind = Lengths::Kind::log_normal, .mean = 100, .cv = 1};
  load.new_tokens = {.kind = Lengths::Kind::exponential, .mean = 80, .min = 0};
  const auto a = generate(load, 600 * unit::sec, 1), b = generate(load, 600 * unit::sec, 1);
  const auto fast = by_session(serve(*a, 0.5 * unit::sec));
  const auto slow = by_session(serve(*b, 9 * unit::sec));
  std::size_t compared = 0;
  for (const auto& [id, turns] : fast) {
    if (!slow.contains(id)) continue;
    const auto& others = slow.at(id);
    for (std::size_t i = 0; i < std::min(turns.size(), others.size()); ++i, ++compared) {
      ASSERT_EQ(turns[i].request.isl, others[i].request.isl);
      ASSERT_EQ(turns[i].request.osl, others[i].request.osl);
      ASSERT_EQ(turns[i].request.blocks, others[i].request.blocks);
    }
  }
  EXPECT_GT(compared, 5000u);
}

TEST(Sessions, concurrency_holds_the_number_of_sessions) {
  Sessions load = talk();
  load.concurrency = 7;
  const auto source = generate(load, 300 * unit::sec, 1);
  const auto all = serve(*source, unit::sec);
  const auto sessions = by_session(all);
  // A session: 3 turns of 1 s and two pauses of 2 s = 7 s; the next starts as one ends.
  EXPECT_EQ(sessions.size(), 7u * 43);
  EXPECT_EQ(sessions.at(7).front().request.arrival, Instant{} + 7 * unit::sec);
}

TEST(Sessions, the_next_turn_waits_for_all_sub_agents) {
  Sessions load = talk();
  load.concurrency = 1;
  load.turns = fixed(2);
  load.sub_agents = 1;
  load.parallel_agents = fixed(2);
  load.sub_agent_calls = fixed(3);
  load.agent_think_ms = fixed(500);
  const auto source = generate(load, 17 * unit::sec, 1);
  const auto sessions = by_session(serve(*source, unit::sec));
  const auto& calls = sessions.at(0);
  ASSERT_EQ(calls.size(), 1u + 2 * 3 + 1);
  // Turn 0..1 s; agents 1..2, 2.5..3.5, 4..5; the pause ended at 3 s, so the turn is at 5 s.
  std::vector<double> at;
  for (const Seen& call : calls) at.push_back(since_start(call.request.arrival).in(unit::sec));
  EXPECT_EQ(at, (std::vector<double>{0, 1, 1, 2.5, 2.5, 4, 4, 5}));
  EXPECT_EQ(calls.back().request.isl, 330 + 80);
  // The agents share the system prompt, and neither the question nor one another's.
  EXPECT_EQ(calls[1].request.blocks[0], calls[0].request.blocks[0]);
  EXPECT_NE(calls[1].request.blocks[2], calls[0].request.blocks[2]);
  EXPECT_NE(calls[1].request.blocks[2], calls[2].request.blocks[2]);
  EXPECT_EQ(calls[3].request.blocks[2], calls[1].request.blocks[2]);
}

TEST(Sessions, no_request_passes_the_largest_context) {
  Sessions load = talk();
  load.turns = fixed(100);
  load.max_context = 700;
  const auto source = generate(load, 200 * unit::sec, 1);
  const auto all = serve(*source, unit::sec);
  std::int64_t largest = 0;
  for (const Seen& seen : all) largest = std::max(largest, seen.request.isl + seen.request.osl);
  EXPECT_EQ(largest, 330 + 4 * 80 + 30);  // one more turn would make 760
}

TEST(Sessions, a_first_prompt_beyond_the_context_is_cut) {
  Sessions load = talk();
  load.first_prompt = fixed(5000);
  load.max_context = 1000;
  const auto source = generate(load, 5 * unit::sec, 1);
  const auto all = serve(*source, unit::sec);
  ASSERT_FALSE(all.empty());
  for (const Seen& seen : all) EXPECT_EQ(seen.request.isl + seen.request.osl, 1000);
}

}  // namespace
}  // namespace racktwin::workload
