#include "cost/price.hpp"

#include <algorithm>
#include <cmath>

#include "base/check.hpp"

namespace racktwin::cost {
namespace {

using catalog::Format;

// Rows a GEMM's smallest tile covers: n of mma.m16n8k16, with the token dimension as n.
constexpr double tile_rows = 8;

double seconds(Seconds s) {
  return s.in(unit::sec);
}

}  // namespace

Pricer::Pricer(const StepModelSpec& spec) : spec_(spec) {
  RACKTWIN_CHECK(spec_.gpu.peak_dense.contains(Format::bf16));
  RACKTWIN_CHECK(spec_.gpu.hbm_bandwidth > BytesPerSecond{});
}

// Simplified: a format without tensor-core support is dequantised to 16 bits on the way (as
// Marlin kernels do), at the 16-bit rate. Wrong where an engine refuses the pair instead.
Format Pricer::peak_format(const Operator& op) const {
  const Format math = numerics::info(op.format).math;
  return spec_.gpu.peak_dense.contains(math) ? math : Format::bf16;
}

// The most specific entry that matches.
const Calibration::Entry& Pricer::entry(const Operator& op) const {
  const Calibration::Entry* best = nullptr;
  int best_score = -1;
  const Format format = peak_format(op);
  for (const Calibration::Entry& candidate : spec_.calibration.entries) {
    if (candidate.kind != op.kind) continue;
    int score = 0;
    if (!candidate.gpus.empty()) {
      const auto& gpus = candidate.gpus;
      if (std::find(gpus.begin(), gpus.end(), spec_.gpu.name) == gpus.end()) continue;
      ++score;
    }
    if (candidate.format) {
      if (*candidate.format != format) continue;
      ++score;
    }
    if (candidate.collective) {
      if (op.kind != OperatorKind::collective || *candidate.collective != op.collective) continue;
      ++score;
    }
    if (score > best_score) {
      best = &candidate;
      best_score = score;
    }
  }
  RACKTWIN_CHECK(best != nullptr);  // load_calibration() wants one without conditions per kind
  return *best;
}

double Pricer::compute_rate(const Operator& op) const {
  const FlopsPerSecond peak = spec_.gpu.peak_dense.at(peak_format(op));
  return 1 / (peak.in(unit::flop / unit::sec) * entry(op).compute);
}

double Pricer::memory_rate(const Operator& op) const {
  return 1 / (spec_.gpu.hbm_bandwidth.in(unit::byte / unit::sec) * entry(op).memory);
}

double Pricer::wire_rate(const Row& row) const {
  return wire_speed_of_light(row) / entry(row.shape).memory;
}

double Pricer::floor(const Operator& op) const {
  return seconds(entry(op).floor) + latency(op);
}

int Pricer::domains(int ranks) const {
  const int domain = std::max(1, spec_.system.nvlink_domain);
  return (ranks + domain - 1) / domain;
}

// Hierarchical: inside a domain over NVLink, between domains over every GPU's NIC at once, both
// stages pipelined, so that the slower one counts. Per byte of `traffic` and per GPU:
//   all-reduce      2 (l - 1) / l near, 2 (k - 1) / (k l) far    (l GPUs in each of k domains)
//   all-gather      n - k near, k - 1 far; reduce-scatter: a n-th of that
//   all-to-all      1 near; far: a token crosses once per distinct domain, not per expert
double Pricer::wire_speed_of_light(const Row& row) const {
  const Operator& op = row.shape;
  const double n = op.ranks;
  const double k = domains(op.ranks);
  const double local = std::min<double>(n, std::max(1, spec_.system.nvlink_domain));
  double near = 0, far = 0;
  switch (op.collective) {
    case CollectiveKind::all_reduce:
      near = 2 * (local - 1) / local;
      far = 2 * (k - 1) / k / local;
      break;
    case CollectiveKind::all_gather:
      near = n - k;
      far = k - 1;
      break;
    case CollectiveKind::reduce_scatter:
      near = (n - k) / n;
      far = (k - 1) / n;
      break;
    case CollectiveKind::all_to_all:
      near = 1;
      far = far_part(row.share, op.ranks, static_cast<int>(k));
      break;
    case CollectiveKind::send: {
      const bool leaves = domains(spec_.parallelism.gpus()) > 1;
      near = leaves ? 0 : 1;
      far = leaves ? 1 : 0;
      break;
    }
  }
  const double nvlink = spec_.gpu.nvlink_bandwidth.in(unit::byte / unit::sec);
  const double nic = spec_.system.nic_bandwidth.in(unit::byte / unit::sec);
  RACKTWIN_CHECK((near == 0 || nvlink > 0) && (far == 0 || nic > 0));
  return std::max(near > 0 ? near / nvlink : 0, far > 0 ? far / nic : 0);
}

// Hops: there and back for an all-reduce; between domains a tree over them.
double Pricer::latency(const Operator& op) const {
  if (op.kind != OperatorKind::collective) return 0;
  const double trips = op.collective == CollectiveKind::all_reduce ? 2 : 1;
  const bool staged = op.collective == CollectiveKind::send;
  const double k = staged ? domains(spec_.parallelism.gpus()) : domains(op.ranks);
  const double far_hops = k == 1 ? 0 : staged ? 1 : std::ceil(std::log2(k));
  return trips *
         (seconds(spec_.system.nvlink_latency) + far_hops * seconds(spec_.system.nic_latency));
}

Price Pricer::price(const Row& row, const Operator& op) const {
  const Calibration::Entry& by = entry(op);
  Price price{.floor = floor(op) * unit::sec, .entry = &by};
  if (op.kind == OperatorKind::collective) {
    const double bytes = op.traffic.in(unit::byte);
    price.bound = Bound::communication;
    price.speed_of_light = bytes * wire_speed_of_light(row) * unit::sec;
    price.busy = bytes * wire_rate(row) * unit::sec;
    return price;
  }
  const Bytes moved = op.weights + op.activations + op.kv;
  const double memory = moved.in(unit::byte)*memory_rate(op);
  double compute = 0;
  if (op.flops > Flops{}) {
    const double flops = op.flops.in(unit::flop);
    double stretch = 1;
    if (op.weights > Bytes{}) {
      // Rows per weight matrix: every weight that is read meets so many, 2 flops each.
      const Bytes element = numerics::bytes_per_element(op.format);
      const double rows = flops / 2 / (op.weights / element);
      const double tiled = op.kind == OperatorKind::expert_gemm
                               ? rows
                               : std::ceil(rows / tile_rows - 1e-9) * tile_rows;
      stretch = (tiled + by.half_rows) / rows;
    }
    compute = flops * stretch * compute_rate(op);
  }
  const double peak = 1 / (compute_rate(op) * by.compute);
  const double bandwidth = 1 / (memory_rate(op) * by.memory);
  price.speed_of_light =
      std::max(op.flops.in(unit::flop) / peak, moved.in(unit::byte) / bandwidth) * unit::sec;
  price.bound = compute > memory ? Bound::compute : Bound::memory;
  price.busy = std::max(compute, memory) * unit::sec;
  return price;
}

}  // namespace racktwin::cost
