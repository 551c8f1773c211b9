// The serving system: replicas behind routers, prefill handing over to decode, in simulated
// time. The one part that schedules events for replicas; it applies what policies decide.
//
// Life of a request: submit -> route -> wait -> prefill -> [wait for a decode slot -> KV
// transfer ->] decode -> end. TTFT runs from arrival to the first token that leaves the
// replica which decodes (so it holds queue, prefill, slot wait, transfer and the first decode
// step of a disaggregated request).
// Back-pressure: prefilled KV stays in the prefill replica until a decode replica has a slot
// and the blocks, and until the bytes have left.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "des/simulation.hpp"
#include "net/fabric.hpp"
#include "serve/replica.hpp"
#include "serve/router.hpp"

namespace racktwin::serve {

enum class End : std::uint8_t { completed, shed, unfinished };

class Observer {  // told once for every request, at its end; the record is gone after the call
 public:
  virtual ~Observer() = default;
  virtual void ended(const Active&, End, std::string_view reason) = 0;
};

struct TransferStats {
  std::int64_t count = 0, inside_domain = 0;
  Bytes bytes;
  Histogram duration, wait_for_slot;  // ns
};

class Cluster {
 public:
  struct PoolSetup {
    Pool pool;
    Rules rules;
    const cost::StepModel* model = nullptr;  // borrowed
    Bytes block_bytes;                       // of one KV block of a rank, all its GPUs
  };
  struct Setup {
    std::vector<PoolSetup> pools;
    std::vector<GpuId> first_gpus;  // place()
    RouterSpec router, decode_router;
    Disaggregation disaggregation;
    net::Ports ports;
    double kv_bytes_per_token = 0;  // of all layers, once: what a hand-over moves
    Bytes state_bytes;              // per sequence, likewise
    int layers = 1;
    std::int64_t max_position = 0;  // 0 = no bound
    bool single_steps = false;
    std::int64_t interval_ns = 0;
    std::size_t traced_steps = 0;  // of the first replica of each pool
    std::uint64_t seed = 1;
  };
  Cluster(des::Simulation&, net::Fabric&, const Setup&, Observer&);

  void submit(workload::Request&&);
  void give_up_all();  // the run is over: everything in the system ends as unfinished

  std::int64_t in_system() const { return static_cast<std::int64_t>(table_.size()); }
  void catch_up_all();  // before reading gauges

  std::size_t replicas() const { return seats_.size(); }
  const Replica& replica(std::size_t i) const { return seats_[i]->replica; }
  std::size_t pool_of(std::size_t i) const { return seats_[i]->pool; }
  GpuId first_gpu(std::size_t i) const { return seats_[i]->first; }
  std::int64_t waiting_for_slot() const { return static_cast<std::int64_t>(pending_.size()); }
  const TransferStats& transfers() const { return transfers_; }
  std::int64_t kv_moved_tokens() const { return moved_tokens_; }
  std::size_t scrapes_due() const;  // pending events that look at signals and move nothing
  // Where requests stand still, in words, when nothing is left that could move them.
  std::string stuck() const;

 private:
  struct Seat {  // a replica and its place in the schedule
    explicit Seat(const Replica::Setup& setup) : replica(setup) {}
    Replica replica;
    std::size_t pool = 0;
    GpuId first;
    int rank_gpus = 1;
    std::size_t group = 0, view = 0;  // where routers see it
    des::EventId end;
    bool begin_due = false;
  };
  struct Group {  // replicas that one routing decision chooses among, in order of GPU
    const RouterRow* row = nullptr;
    RouterSpec spec;
    std::vector<std::uint32_t> members;
    std::vector<std::unique_ptr<Router>> routers;
    std::vector<std::vector<ReplicaView>> views;  // [router][member]
    bool one_pool = true, scraping = false;       // members are of one shape; a scrape is due
    bool had_prompts = false;  // views may carry cached_tokens of an earlier request
  };
  static constexpr std::size_t intake = 0, decode = 1;
  void add_group(std::size_t, const RouterSpec&, std::uint64_t seed);
  std::optional<std::uint32_t> choose(std::size_t group, ActiveIndex, std::size_t first,
                                      std::size_t count);
  std::optional<std::uint32_t> place_request(ActiveIndex);
  workload::RequestView view_of(const Active&);
  void book(std::uint32_t seat, ActiveIndex, std::int64_t prefill_tokens);
  void unbook_prefill(ActiveIndex);
  void unbook(ActiveIndex);
  void refresh(std::uint32_t seat);
  void scrape(std::uint64_t group);

  void hand_over(ActiveIndex);
  bool try_hand_over(ActiveIndex, bool at_once);
  bool try_range(ActiveIndex, std::size_t first, std::size_t count, bool at_once);
  void start_transfer(ActiveIndex, std::uint32_t seat, bool at_once);
  Bytes visible_bytes(const Active&, const net::Transfer&, const Seat& source) const;
  void pump(std::uint32_t seat);
  void wake(std::uint32_t seat);
  void due_begin(std::uint32_t seat);
  void apply(std::uint32_t seat, const Replica::Outcome&);
  bool holds(const Group&, const Active&) const;
  void on_begin(std::uint64_t seat);
  void on_end(std::uint64_t seat);
  void on_loaded(std::uint64_t request);
  void on_transferred(std::uint64_t request);
  void on_outgrown(std::uint64_t request);
  void retire(ActiveIndex, End, std::string_view reason);

  des::Simulation& simulation_;
  net::Fabric& fabric_;
  Setup setup_;
  Observer& observer_;
  ActiveTable table_;
  std::vector<std::unique_ptr<Seat>> seats_;
  std::array<Group, 2> groups_;
  std::vector<std::pair<std::size_t, std::size_t>> near_;  // [domain]: decode members first, count
  std::deque<ActiveIndex> pending_;  // prefilled, waiting for a decode slot, first come first
  // Of steps that ended at this instant; applied together, in order of seat, so that nothing
  // depends on when an end was scheduled.
  std::vector<std::pair<std::uint32_t, Replica::Outcome>> ended_, settled_;
  TransferStats transfers_;
  std::int64_t moved_tokens_ = 0;
  bool disaggregated_ = false;
};

}  // namespace racktwin::serve
