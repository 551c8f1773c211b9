#include "net/fabric.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "base/check.hpp"

namespace racktwin::net {
namespace {

int domain_of(const Ports& ports, const Endpoint& endpoint) {
  return static_cast<int>(endpoint.first.index) / ports.domain;
}

struct Path {
  BytesPerSecond source, target;  // capacities of the two endpoints
  Seconds latency;
  bool nvlink = true;
};

Path path_of(const Ports& ports, const Transfer& transfer) {
  const bool near = same_domain(ports, transfer.source, transfer.target);
  const BytesPerSecond port = near ? ports.nvlink : ports.nic;
  return {port * static_cast<double>(transfer.source.gpus),
          port * static_cast<double>(transfer.target.gpus),
          near ? ports.nvlink_latency : ports.nic_latency, near};
}

class Ideal final : public Fabric {
 public:
  Ideal(des::Simulation& simulation, const Ports& ports) : simulation_(simulation), ports_(ports) {}
  void start(const Transfer& transfer, des::Action done) override {
    simulation_.after(alone(ports_, transfer), des::Phase::transfer, done);
  }
  std::int64_t in_flight() const override { return 0; }

 private:
  des::Simulation& simulation_;
  Ports ports_;
};

// Flows in a slab; each port knows the flows that use it.
class SharedPorts final : public Fabric {
 public:
  SharedPorts(des::Simulation& simulation, const Ports& ports)
      : simulation_(simulation), ports_(ports) {
    for (auto& side : users_) side.resize(static_cast<std::size_t>(ports.gpus));
  }

  void start(const Transfer& transfer, des::Action done) override {
    RACKTWIN_CHECK(transfer.size > Bytes{});
    const Path path = path_of(ports_, transfer);
    const std::uint32_t index = allocate();
    Flow& flow = flows_[index];
    flow = {.source = port_of(transfer.source, path.nvlink, out),
            .target = port_of(transfer.target, path.nvlink, in),
            .source_capacity = path.source,
            .target_capacity = path.target,
            .left = transfer.size,
            .done = done,
            .live = true};
    ++in_flight_;
    // Latency and hand-shake pass before the first byte moves; the ports are taken meanwhile.
    flow.since = simulation_.now() + (transfer.setup + path.latency);
    users(flow.source).push_back(index);
    users(flow.target).push_back(index);
    reshare(flow.source, flow.target);
  }
  std::int64_t in_flight() const override { return in_flight_; }

 private:
  enum Side { out, in };
  struct Port {
    std::uint32_t side = 0, gpu = 0;
  };
  struct Flow {
    Port source, target;
    BytesPerSecond source_capacity, target_capacity, rate;
    Bytes left;
    Instant since;
    des::Action done;
    des::EventId event;
    bool live = false;
  };

  static Port port_of(const Endpoint& endpoint, bool nvlink, Side side) {
    return {static_cast<std::uint32_t>((nvlink ? 0 : 2) + side), endpoint.first.index};
  }
  std::vector<std::uint32_t>& users(Port port) { return users_[port.side][port.gpu]; }

  std::uint32_t allocate() {
    if (free_.empty()) {
      flows_.emplace_back();
      return static_cast<std::uint32_t>(flows_.size() - 1);
    }
    const std::uint32_t index = free_.back();
    free_.pop_back();
    return index;
  }

  void end(std::uint64_t index) {
    const Flow flow = flows_[index];
    for (const Port port : {flow.source, flow.target})
      std::erase(users(port), static_cast<std::uint32_t>(index));
    flows_[index].live = false;
    free_.push_back(static_cast<std::uint32_t>(index));
    --in_flight_;
    reshare(flow.source, flow.target);
    flow.done.function(flow.done.object, flow.done.argument);
  }

  void reshare(Port source, Port target) {
    for (const std::uint32_t index : users(source)) settle(index);
    for (const std::uint32_t index : users(target))
      if (!same(flows_[index].source, source)) settle(index);
  }
  static bool same(Port a, Port b) { return a.side == b.side && a.gpu == b.gpu; }

  // Counts what has moved, takes the new rate, and re-times the end.
  void settle(std::uint32_t index) {
    Flow& flow = flows_[index];
    const Instant now = simulation_.now();
    const BytesPerSecond rate =
        std::min(flow.source_capacity / static_cast<double>(users(flow.source).size()),
                 flow.target_capacity / static_cast<double>(users(flow.target).size()));
    if (rate == flow.rate) return;
    if (now > flow.since) {
      flow.left -= std::min(flow.left, flow.rate * (now - flow.since));
      flow.since = now;
    }
    flow.rate = rate;
    simulation_.cancel(flow.event);
    flow.event = simulation_.at(flow.since + flow.left / rate, des::Phase::transfer,
                                des::bind<&SharedPorts::end>(*this, index));
  }

  des::Simulation& simulation_;
  Ports ports_;
  std::vector<Flow> flows_;
  std::vector<std::uint32_t> free_;
  std::array<std::vector<std::vector<std::uint32_t>>, 4> users_;  // [kind and side][first GPU]
  std::int64_t in_flight_ = 0;
};

}  // namespace

Ports ports_of(const catalog::System& system, const catalog::Gpu& gpu, int gpus) {
  return {gpus,
          system.nvlink_domain,
          gpu.nvlink_bandwidth,
          system.nic_bandwidth,
          system.nvlink_latency,
          system.nic_latency};
}

bool same_domain(const Ports& ports, const Endpoint& a, const Endpoint& b) {
  return domain_of(ports, a) == domain_of(ports, b) && a.gpus <= ports.domain &&
         b.gpus <= ports.domain;
}

Seconds alone(const Ports& ports, const Transfer& transfer) {
  const Path path = path_of(ports, transfer);
  return transfer.setup + path.latency + transfer.size / std::min(path.source, path.target);
}

std::unique_ptr<Fabric> ideal(des::Simulation& simulation, const Ports& ports) {
  return std::make_unique<Ideal>(simulation, ports);
}
std::unique_ptr<Fabric> shared_ports(des::Simulation& simulation, const Ports& ports) {
  return std::make_unique<SharedPorts>(simulation, ports);
}

}  // namespace racktwin::net
