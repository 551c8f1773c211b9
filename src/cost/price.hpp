// Internal to cost: what one operator takes on one machine.
#pragma once

#include "cost/step_model.hpp"
#include "cost/walk.hpp"

namespace racktwin::cost {

enum class Bound : std::uint8_t { compute, memory, communication };

struct Price {  // per layer
  Seconds speed_of_light;
  Seconds busy;   // speed of light / utilisation
  Seconds floor;  // launch and latency, on top
  Bound bound = Bound::memory;
  const Calibration::Entry* entry = nullptr;
};

class Pricer {
 public:
  explicit Pricer(const StepModelSpec&);

  // No smaller when the operator's flops, bytes or traffic grow.
  Price price(const Row&, const Operator&) const;

  // The same as rates, for what is linear: seconds of the tensor cores per flop and of HBM per
  // byte, seconds on the wires per byte of traffic, and the floor.
  double compute_rate(const Operator&) const;
  double memory_rate(const Operator&) const;
  double wire_rate(const Row&) const;
  double floor(const Operator&) const;

 private:
  const Calibration::Entry& entry(const Operator&) const;
  catalog::Format peak_format(const Operator&) const;
  double wire_speed_of_light(const Row&) const;  // seconds per byte
  double latency(const Operator&) const;
  int domains(int ranks) const;

  StepModelSpec spec_;
};

}  // namespace racktwin::cost
