#include "net/fabric.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <vector>

#include "base/rng.hpp"

namespace racktwin::net {
namespace {

Ports ports() {
  return {.gpus = 16,
          .domain = 4,
          .nvlink = 100 * unit::GBps,
          .nic = 10 * unit::GBps,
          .nvlink_latency = 1 * unit::us,
          .nic_latency = 5 * unit::us};
}

Transfer flow(std::uint32_t from, std::uint32_t to, double gigabytes) {
  return {.source = {GpuId{from}, 1},
          .target = {GpuId{to}, 1},
          .size = gigabytes * unit::GB,
          .setup = {}};
}

// Starts transfers at given times and keeps when each came to its end.
class Bench {
 public:
  enum class Kind { ideal, shared };
  Bench(Kind kind, const Ports& given)
      : fabric_(kind == Kind::ideal ? ideal(simulation_, given)
                                    : shared_ports(simulation_, given)) {}
  void start(std::int64_t at_ns, const Transfer& transfer) {
    transfers_.push_back(transfer);
    ends_.push_back(-1);
    simulation_.at(Instant::at_ns(at_ns), des::Phase::arrival,
                   des::bind<&Bench::begin>(*this, transfers_.size() - 1));
  }
  const std::vector<std::int64_t>& run() {
    simulation_.run_until(Instant::at_ns(4'000'000'000'000));
    return ends_;
  }
  std::int64_t in_flight() const { return fabric_->in_flight(); }

 private:
  void begin(std::uint64_t i) { fabric_->start(transfers_[i], des::bind<&Bench::end>(*this, i)); }
  void end(std::uint64_t i) {
    EXPECT_EQ(ends_[i], -1) << "told twice";
    ends_[i] = simulation_.now().ns();
  }
  des::Simulation simulation_;
  std::unique_ptr<Fabric> fabric_;
  std::deque<Transfer> transfers_;
  std::vector<std::int64_t> ends_;
};

std::int64_t alone_ns(const Ports& given, const Transfer& transfer) {
  return (Instant{} + alone(given, transfer)).ns();
}

TEST(Alone, is_setup_latency_and_size_over_the_narrower_end) {
  EXPECT_EQ(alone_ns(ports(), flow(0, 1, 1)), 10'001'000);   // NVLink
  EXPECT_EQ(alone_ns(ports(), flow(0, 5, 1)), 100'005'000);  // NIC
  Transfer wide = flow(0, 4, 1);
  wide.source.gpus = 4;
  wide.target.gpus = 2;
  wide.setup = 3 * unit::us;
  EXPECT_EQ(alone_ns(ports(), wide), 50'008'000);  // two NICs
}

TEST(SharedPorts, alone_is_ideal) {
  for (const Transfer& t : {flow(0, 1, 1), flow(0, 5, 0.3), flow(3, 2, 1e-9)}) {
    Bench bench(Bench::Kind::shared, ports());
    bench.start(0, t);
    EXPECT_EQ(bench.run()[0], alone_ns(ports(), t));
    EXPECT_EQ(bench.in_flight(), 0);
  }
}

TEST(SharedPorts, two_flows_from_one_port_take_twice_as_long) {
  Bench bench(Bench::Kind::shared, ports());
  bench.start(0, flow(0, 4, 1));
  bench.start(0, flow(0, 8, 1));
  const auto& ends = bench.run();
  EXPECT_NEAR(static_cast<double>(ends[0]), 200'005'000, 3);
  EXPECT_NEAR(static_cast<double>(ends[1]), 200'005'000, 3);
}

TEST(SharedPorts, two_flows_into_one_port_take_twice_as_long) {
  Bench bench(Bench::Kind::shared, ports());
  bench.start(0, flow(0, 12, 1));
  bench.start(0, flow(4, 12, 1));
  for (const std::int64_t end : bench.run()) EXPECT_NEAR(static_cast<double>(end), 200'005'000, 3);
}

TEST(SharedPorts, nvlink_and_nic_and_the_two_directions_are_ports_of_their_own) {
  Bench bench(Bench::Kind::shared, ports());
  const std::vector<Transfer> apart = {flow(0, 1, 1), flow(0, 4, 1), flow(1, 0, 1), flow(4, 0, 1)};
  for (const Transfer& t : apart) bench.start(0, t);
  const auto& ends = bench.run();
  for (std::size_t i = 0; i < apart.size(); ++i) EXPECT_EQ(ends[i], alone_ns(ports(), apart[i]));
}

TEST(SharedPorts, a_late_comer_slows_and_an_end_speeds_up) {
  Bench bench(Bench::Kind::shared, ports());
  // Alone until 50 ms: 0.49995 GB after its latency of 5 us. Then half the port, from the
  // moment the other takes it, until that one's 0.2 GB are over at 90.005 ms; the rest alone.
  bench.start(0, flow(0, 4, 1));
  bench.start(50'000'000, flow(0, 8, 0.2));
  const auto& ends = bench.run();
  EXPECT_NEAR(static_cast<double>(ends[1]), 90'005'000, 3);
  EXPECT_NEAR(static_cast<double>(ends[0]), 120'007'500, 3);
}

std::vector<std::pair<std::int64_t, Transfer>> random_flows(Rng& rng, std::uint32_t gpus) {
  std::vector<std::pair<std::int64_t, Transfer>> flows;
  for (int k = 0; k < 40; ++k) {
    const auto from = static_cast<std::uint32_t>(rng.below(gpus));
    const auto to = (from + 1 + static_cast<std::uint32_t>(rng.below(gpus - 1))) % gpus;
    Transfer t = flow(from, to, 0.001 + rng.uniform());
    t.setup = static_cast<double>(rng.below(50)) * unit::us;
    flows.emplace_back(static_cast<std::int64_t>(rng.below(500'000'000)), t);
  }
  return flows;
}

TEST(SharedPorts, is_never_faster_than_ideal_and_every_byte_comes_out) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed, "flows");
    const auto flows = random_flows(rng, 16);
    Bench shared(Bench::Kind::shared, ports()), free(Bench::Kind::ideal, ports());
    for (const auto& [at, t] : flows) {
      shared.start(at, t);
      free.start(at, t);
    }
    const auto &slow = shared.run(), &fast = free.run();
    for (std::size_t i = 0; i < flows.size(); ++i) {
      ASSERT_GE(fast[i], 0);
      EXPECT_GE(slow[i], fast[i]);
      EXPECT_EQ(fast[i], flows[i].first + alone_ns(ports(), flows[i].second));
    }
    EXPECT_EQ(shared.in_flight(), 0);
    // No port carries more than its bandwidth: what left one GPU's NIC took at least so long.
    for (std::uint32_t g = 0; g < 16; ++g) {
      double bytes = 0;
      std::int64_t first = INT64_MAX, last = 0;
      for (std::size_t i = 0; i < flows.size(); ++i) {
        const Transfer& t = flows[i].second;
        if (t.source.first.index != g || same_domain(ports(), t.source, t.target)) continue;
        bytes += t.size.in(unit::GB);
        first = std::min(first, flows[i].first);
        last = std::max(last, slow[i]);
      }
      if (bytes > 0) {
        EXPECT_GE(static_cast<double>(last - first) + 1, bytes / 10 * 1e9);
      }
    }
  }
}

TEST(SharedPorts, other_names_for_the_gpus_change_nothing) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed, "flows");
    const auto flows = random_flows(rng, 16);
    // Domains and the places in them, both turned round.
    const auto other = [](std::uint32_t g) { return (3 - g / 4) * 4 + (g + 1) % 4; };
    Bench a(Bench::Kind::shared, ports()), b(Bench::Kind::shared, ports());
    for (const auto& [at, t] : flows) {
      a.start(at, t);
      Transfer renamed = t;
      renamed.source.first = GpuId{other(t.source.first.index)};
      renamed.target.first = GpuId{other(t.target.first.index)};
      b.start(at, renamed);
    }
    EXPECT_EQ(a.run(), b.run());
  }
}

TEST(SharedPorts, conserves_work_on_a_port_that_is_never_idle) {
  // Ten flows of different sizes from one NIC, all at once: the last ends when the sum has left.
  Bench bench(Bench::Kind::shared, ports());
  double sum = 0;
  for (std::uint32_t k = 0; k < 10; ++k) {
    bench.start(0, flow(0, 4 + k, 0.1 * (k + 1)));
    sum += 0.1 * (k + 1);
  }
  const auto& ends = bench.run();
  EXPECT_NEAR(static_cast<double>(*std::max_element(ends.begin(), ends.end())),
              sum / 10 * 1e9 + 5000, 20);
  EXPECT_TRUE(std::is_sorted(ends.begin(), ends.end()));  // the smaller first
}

}  // namespace
}  // namespace racktwin::net
