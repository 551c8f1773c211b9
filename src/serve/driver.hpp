// For tests of serving: runs a source through a cluster and keeps every request as it ended.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "serve/cluster.hpp"
#include "workload/source.hpp"

namespace racktwin::serve::fixtures {

enum class Network : std::uint8_t { ideal, shared };

class Driver final : public Observer {
 public:
  struct Ended {
    Active request;
    End end = End::unfinished;
    std::string reason;
  };
  Driver(const Cluster::Setup& setup, std::unique_ptr<workload::Source> source,
         Network network = Network::shared)
      : source_(std::move(source)),
        fabric_(network == Network::ideal ? net::ideal(simulation_, setup.ports)
                                          : net::shared_ports(simulation_, setup.ports)),
        cluster_(simulation_, *fabric_, setup, *this) {
    schedule();
  }

  // Everything before `until`.
  void run_until(Instant until) {
    simulation_.run_until(until);
    cluster_.catch_up_all();
  }
  // Until nothing is left to do, or `most`; what is still in the system ends as unfinished.
  // `look` is called every `every`.
  template <class Look>
  void drain(Seconds every, Instant most, Look look) {
    while (simulation_.now() < most && (due_ || cluster_.in_system() > 0)) {
      run_until(simulation_.now() + every);
      look();
    }
    cluster_.give_up_all();
    std::sort(ends_.begin(), ends_.end(), [](const Ended& a, const Ended& b) {
      return a.request.id.index < b.request.id.index;
    });
  }
  void drain() {
    drain(10 * unit::ms, Instant::at_ns(3'600'000'000'000), [] {});
  }

  void ended(const Active& a, End end, std::string_view reason) override {
    ends_.push_back({a, end, std::string(reason)});
    source_->completed(a.id, simulation_.now());
    schedule();
  }

  const std::vector<Ended>& ends() const { return ends_; }  // drain(): in order of id
  std::int64_t arrived() const { return arrived_; }
  Cluster& cluster() { return cluster_; }
  const Cluster& cluster() const { return cluster_; }
  des::Simulation& simulation() { return simulation_; }
  const net::Fabric& fabric() const { return *fabric_; }

 private:
  void schedule() {
    const std::optional<Instant> next = source_->peek();
    if (next == due_) return;
    if (due_) simulation_.cancel(event_);
    due_ = next;
    if (next)
      event_ = simulation_.at(std::max(*next, simulation_.now()), des::Phase::arrival,
                              des::bind<&Driver::arrive>(*this));
  }
  void arrive(std::uint64_t) {
    due_.reset();
    workload::Request request = source_->next();
    request.arrival = simulation_.now();
    ++arrived_;
    cluster_.submit(std::move(request));
    schedule();
  }

  std::unique_ptr<workload::Source> source_;
  std::vector<Ended> ends_;
  std::int64_t arrived_ = 0;
  des::Simulation simulation_;
  std::unique_ptr<net::Fabric> fabric_;
  std::optional<Instant> due_;
  des::EventId event_;
  Cluster cluster_;
};

}  // namespace racktwin::serve::fixtures
