// Random small serving systems, each from a seed, and the laws that any of them must keep.
//
// A world is a cluster with a linear step model and a load: every engine's rules, every
// router, aggregated and disaggregated, caches from tiny to roomy, tiers, speculation,
// windows, stale routers, local prefill; open, closed, bursty and conversational loads.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "serve/driver.hpp"
#include "serve/fixtures.hpp"

namespace racktwin::swarm {

struct World {
  std::unique_ptr<cost::StepModel> model;
  serve::Cluster::Setup setup;
  workload::Load load;
  Seconds horizon;
  std::string text() const;  // what a failure prints
};
World draw_world(std::uint64_t seed);

// What a run left, comparable: two runs are the same if these are equal.
struct Trail {
  struct Row {
    std::uint32_t id = 0;
    std::int64_t arrival = 0, scheduled = 0, prefilled = 0, slot = 0, transferred = 0,
                 first_token = 0, last_token = 0;
    std::int64_t isl = 0, osl = 0, reused = 0, preemptions = 0;
    std::uint32_t prefill_replica = 0, replica = 0;
    serve::End end = serve::End::unfinished;
    std::string reason;
    friend bool operator==(const Row&, const Row&) = default;
  };
  struct Machine {  // of one replica
    std::int64_t steps = 0, mixed_steps = 0, prefill_steps = 0, decode_steps = 0;
    std::int64_t prefill_tokens = 0, output_tokens = 0, sequences = 0, preemptions = 0;
    std::int64_t reused_tokens = 0, prompt_tokens = 0, reused_lower = 0, busy_ns = 0;
    double compute = 0, memory = 0, decode_context = 0;
    Histogram itl, chunk;
    std::vector<std::int64_t> output_by_interval, busy_by_interval;
    std::int64_t blocks_used = 0;  // at the end
    friend bool operator==(const Machine&, const Machine&) = default;
  };
  std::vector<Row> rows;
  std::vector<Machine> machines;
  std::int64_t arrived = 0, transfers = 0, moved_tokens = 0;
  bool drained = false;
  std::vector<std::string> broken;  // laws that did not hold on the way
  friend bool operator==(const Trail&, const Trail&) = default;
};

enum class Execution : std::uint8_t { macro, plain };
Trail run(const World&, Execution);

// Sentences about laws that the trail breaks; empty when all is well.
std::vector<std::string> broken_laws(const World&, const Trail&);
// Where two trails part first, in words; empty when they are equal.
std::string difference(const Trail&, const Trail&);

// All of it for one seed: the laws, macro against plain, the same again. Empty when well.
std::string trouble(std::uint64_t seed);

}  // namespace racktwin::swarm
