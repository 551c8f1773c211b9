// Moving bytes in simulated time between groups of GPUs.
//
// An endpoint is a group of neighbouring GPUs (an attention rank, a replica) whose ports work
// together: its capacity is the sum of its GPUs' ports. Two endpoints of one NVLink domain
// talk over NVLink, others over their NICs. Bandwidths are one way.
#pragma once

#include <cstdint>
#include <memory>

#include "base/id.hpp"
#include "base/units.hpp"
#include "catalog/hardware.hpp"
#include "des/simulation.hpp"

namespace racktwin::net {

struct Endpoint {
  GpuId first;
  int gpus = 1;  // consecutive ids, all in one NVLink domain or a whole number of domains
};

struct Transfer {
  Endpoint source, target;
  Bytes size;     // > 0
  Seconds setup;  // before the first byte: hand-shake, descriptor list
};

// Ports of `gpus` GPUs in racks of one system; domains are consecutive ids.
struct Ports {
  int gpus = 0;
  int domain = 1;  // GPUs per NVLink domain
  BytesPerSecond nvlink, nic;
  Seconds nvlink_latency, nic_latency;
};
Ports ports_of(const catalog::System&, const catalog::Gpu&, int gpus);
bool same_domain(const Ports&, const Endpoint&, const Endpoint&);

// Alone on the network: setup + latency + size / the narrower endpoint.
Seconds alone(const Ports&, const Transfer&);

class Fabric {
 public:
  virtual ~Fabric() = default;
  // Runs `done` once, in Phase::transfer, when the last byte has arrived.
  virtual void start(const Transfer&, des::Action done) = 0;
  virtual std::int64_t in_flight() const = 0;
};

// No contention: the lower bound, and the baseline of tests.
std::unique_ptr<Fabric> ideal(des::Simulation&, const Ports&);

// Transfers that leave, or enter, the same endpoint over the same kind of port share it
// equally: rate = min(source capacity / its transfers, target capacity / its transfers).
// Bytes in = bytes out; never faster than ideal(), equal to it when alone.
// Simplified: the network between the ports is never the bottleneck, and what one port leaves
// unused another does not take up (no max-min refill). Wrong under oversubscription and for
// many-to-many patterns with unequal partners.
// Cost: O(transfers at the two endpoints) per start and end.
std::unique_ptr<Fabric> shared_ports(des::Simulation&, const Ports&);

}  // namespace racktwin::net
