// How long a step takes, and where every millisecond comes from.
//
// Operator time = launch floor + speed of light / utilisation, speed of light =
// max(flops / dense peak, bytes / bandwidth). The utilisation comes from a Calibration, which
// carries its origin. The parts are exclusive and add up.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/origin.hpp"
#include "base/result.hpp"
#include "catalog/engine.hpp"
#include "catalog/hardware.hpp"
#include "cost/operators.hpp"

namespace racktwin::cost {

struct StepCost {
  Seconds compute, memory, communication, overhead;  // compute-bound, HBM-bound, ...
  Seconds total() const { return compute + memory + communication + overhead; }
};

struct OperatorCost {
  Operator op;
  Seconds speed_of_light;  // per layer
  double utilisation = 1;
  int passes = 1;  // micro-batches through the stage: 1, or up to pp
  Seconds total;   // all layers and passes, with the launch floor
  Origin origin = Origin::assumed;
  std::string source;
};

class StepModel {
 public:
  virtual ~StepModel() = default;
  // `ranks[i]` is the work of attention rank i; ranks.size() == dp, at least one has work.
  // They run in lockstep: each layer waits for its slowest rank. total() > 0, and no smaller
  // when any field grows. Pure. Cost: about 10 ns per rank once the token count has been seen.
  virtual StepCost cost(std::span<const RankWork> ranks) const = 0;
  // The same step, operator by operator; the totals add up to cost().total() (the last row is
  // the engine's overhead).
  virtual std::vector<OperatorCost> explain(std::span<const RankWork> ranks) const = 0;
};

// The part of a peak that kernels reach, by operator kind and format, with the origin of
// each figure. Read from data/calibration/*.yaml.
struct Calibration {
  struct Entry {
    OperatorKind kind = OperatorKind::gemm;
    // Conditions; the entry with most of them that match is used. `format`: of the peak.
    std::vector<std::string> gpus;
    std::optional<catalog::Format> format;
    std::optional<CollectiveKind> collective;
    double compute = 1, memory = 1;  // utilisation of the dense peak and of HBM bandwidth
    double half_rows = 0;            // GEMM rows at which half of `compute` is reached
    Seconds floor;                   // launch and latency
    Origin origin = Origin::assumed;
    std::string source;
  };
  std::string name;            // "datasheet"
  std::vector<Entry> entries;  // collectives: `memory` is of link bandwidth
  double expert_skew = 1;      // busiest expert rank over the mean, from routing imbalance
  Origin skew_origin = Origin::assumed;
  Seconds eager_launch;  // host time per operator of a step that no CUDA graph holds
  Seconds step_gap;      // between two steps, even when scheduling is hidden
};
Result<Calibration> load_calibration(std::string_view name);  // embedded, or a path

struct StepModelSpec {
  catalog::Model model;
  catalog::Gpu gpu;
  catalog::System system;
  catalog::Engine engine;
  Parallelism parallelism;
  Calibration calibration;
  int draft_tokens = 0;  // MTP: verified together with the sequence's own token
};
// The spec has passed check().
std::unique_ptr<StepModel> speed_of_light(const StepModelSpec&);

// How many KV tokens fit on one attention rank, with the breakdown.
struct MemoryPlan {
  Bytes hbm, weights, activations, reserved, kv;  // per GPU; kv = what is left for the cache
  double kv_per_token = 0;
  Bytes state_per_sequence;
  std::int64_t kv_tokens = 0;  // per attention rank
  std::int64_t kv_blocks = 0;  // of the engine's block size
  std::string text() const;    // one line per item, for refusals and reports
};
// Refused (unsupported) with the breakdown when not even one block of `min_tokens` fits.
Result<MemoryPlan> plan_memory(const StepModelSpec&, std::int64_t min_tokens);

// Part of a step's time by the origin of its figures: sums to 1. The speed of light rests on
// data sheets; what is lost against it, and floors, on the calibration's entry.
std::array<double, origins> origin_shares(const StepModel&, std::span<const RankWork> ranks);

}  // namespace racktwin::cost
