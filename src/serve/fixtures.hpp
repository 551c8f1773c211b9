// For tests of serving: a step model one can do by hand, requests given as a list, small
// clusters, and a driver that runs them and keeps every request as it ended.
#pragma once

#include <algorithm>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "serve/cluster.hpp"
#include "workload/generator.hpp"

namespace racktwin::serve::fixtures {

// Time = base + what its busiest rank has: tokens, prompt pairs, KV read. A step of whole
// nanoseconds takes exactly these on the clock: half of one is left off before it rounds up.
class LinearModel final : public cost::StepModel {
 public:
  struct Parts {
    double base = 1000, token = 0, pair = 0, context = 0;  // nanoseconds
  };
  explicit LinearModel(const Parts& parts) : parts_(parts) {}
  cost::StepCost cost(std::span<const cost::RankWork> ranks) const override {
    double compute = 0, memory = 0;
    for (const cost::RankWork& w : ranks) {
      const auto tokens = static_cast<double>(w.prefill_tokens + w.decode_tokens);
      compute = std::max(compute, parts_.token * tokens +
                                      parts_.pair * static_cast<double>(w.prefill_pairs_windowed));
      memory = std::max(memory, parts_.context * static_cast<double>(w.decode_context_windowed));
    }
    return {.compute = compute * unit::ns,
            .memory = memory * unit::ns,
            .communication = Seconds{},
            .overhead = (parts_.base - 0.5) * unit::ns};
  }
  std::vector<cost::OperatorCost> explain(std::span<const cost::RankWork>) const override {
    return {};
  }

 private:
  Parts parts_;
};

inline workload::Request request(std::uint32_t id, std::int64_t at_ns, std::int64_t isl,
                                 std::int64_t osl) {
  return {.id = RequestId{id},
          .arrival = Instant::at_ns(at_ns),
          .isl = isl,
          .osl = osl,
          .max_tokens = osl,
          .session = {},
          .blocks = {}};
}
// With block names: the first `shared` blocks are those of every prompt of the same `family`.
inline workload::Request named(workload::Request r, int block_tokens, std::uint64_t family,
                               std::int64_t shared) {
  r.block_tokens = block_tokens;
  for (std::int64_t b = 0; b * block_tokens < r.isl; ++b)
    r.blocks.push_back(
        mix(b < shared ? family : mix(family, 1000 + r.id.index), static_cast<std::uint64_t>(b)));
  return r;
}

class ListSource final : public workload::Source {
 public:
  explicit ListSource(std::vector<workload::Request> list) : list_(list.begin(), list.end()) {}
  std::optional<Instant> peek() override {
    if (list_.empty()) return std::nullopt;
    return list_.front().arrival;
  }
  workload::Request next() override {
    workload::Request r = std::move(list_.front());
    list_.pop_front();
    return r;
  }
  void completed(RequestId, Instant) override {}

 private:
  std::deque<workload::Request> list_;
};

// One mixed pool of one replica, one rank, vLLM's rules, plenty of memory.
inline Cluster::Setup small_setup(const cost::StepModel& model) {
  Cluster::Setup setup;
  setup.pools.push_back({.pool = {.name = "mixed"},
                         .rules = {.max_sequences = 8, .max_batch_tokens = 64, .blocks = 1000},
                         .model = &model,
                         .block_bytes = 16 * unit::KB});
  setup.router.policy = setup.decode_router.policy = "round-robin";
  setup.ports = {.gpus = 64,
                 .domain = 8,
                 .nvlink = 100 * unit::GBps,
                 .nic = 10 * unit::GBps,
                 .nvlink_latency = 1 * unit::us,
                 .nic_latency = 5 * unit::us};
  setup.kv_bytes_per_token = 1000;
  return setup;
}
inline Cluster::Setup disaggregated_setup(const cost::StepModel& model) {
  Cluster::Setup setup = small_setup(model);
  setup.pools[0].pool.name = "prefill";
  setup.pools[0].pool.role = Role::prefill;
  setup.pools.push_back(setup.pools[0]);
  setup.pools[1].pool.name = "decode";
  setup.pools[1].pool.role = Role::decode;
  return setup;
}
// Replicas side by side, from GPU 0 on.
inline void place_in_order(Cluster::Setup& setup) {
  setup.first_gpus.clear();
  std::uint32_t next = 0;
  for (const Cluster::PoolSetup& pool : setup.pools)
    for (int j = 0; j < pool.pool.replicas; ++j) {
      setup.first_gpus.push_back(GpuId{next});
      next += static_cast<std::uint32_t>(pool.pool.parallelism.gpus());
    }
}

}  // namespace racktwin::serve::fixtures
