// The open loop: clients that arrive whatever the cluster does, merged by a heap.
#include <algorithm>

#include "base/check.hpp"
#include "workload/samplers.hpp"

namespace racktwin::workload {
namespace {

constexpr double ns_per_second = 1e9;

struct LengthPair {
  LengthSampler isl, osl;
  std::int64_t max_tokens = 0;
};

LengthPair pair_of(const Lengths& isl, const Lengths& osl) {
  return {LengthSampler(isl), LengthSampler(osl), std::max<std::int64_t>(1, limit_of(osl))};
}

struct ClientStream {
  ArrivalStream arrivals;
  Rng isl, osl;
  std::vector<LengthPair> lengths;  // by period
  double period_s = 0;
  std::uint8_t slo_class = 0;
};

class OpenLoopSource final : public Source {
 public:
  OpenLoopSource(const OpenLoop& load, Seconds horizon, std::uint64_t seed)
      : horizon_s_(std::min(horizon.in(unit::sec), 4e9)) {
    double shares = 0;
    for (const Client& client : load.clients) shares += client.share;
    for (std::size_t i = 0; i < load.clients.size(); ++i) {
      const Client& client = load.clients[i];
      const double part = shares > 0 ? client.share / shares : 0;
      const double per_second = load.rate.in(unit::per_second)*part;
      if (!load.steady) {
        add(client, per_second, load.diurnal, seed, i);
        continue;
      }
      Client steady = client;
      steady.windows.clear();
      steady.periods.clear();
      add(steady, per_second, load.diurnal, seed, i);
    }
    for (std::size_t i = queue_.size() / 2; i-- > 0;) sift_down(i);
  }

  std::optional<Instant> peek() override {
    if (queue_.empty()) return std::nullopt;
    return Instant::at_ns(queue_.front().ns);
  }

  Request next() override {
    RACKTWIN_CHECK(!queue_.empty());
    const Entry top = queue_.front();
    ClientStream& client = clients_[top.client];
    Request request;
    request.id = RequestId{next_id_++};
    request.arrival = Instant::at_ns(top.ns);
    const LengthPair& lengths = lengths_at(client);
    request.isl = std::max<std::int64_t>(1, lengths.isl.draw(client.isl));
    request.osl = std::max<std::int64_t>(1, lengths.osl.draw(client.osl));
    request.max_tokens = lengths.max_tokens;
    request.slo_class = client.slo_class;
    client.arrivals.advance();
    requeue(client);
    return request;
  }

  void completed(RequestId, Instant) override {}  // an open loop does not wait

 private:
  struct Entry {
    std::int64_t ns = 0;
    std::uint32_t client = 0;
    bool operator<(const Entry& b) const { return ns != b.ns ? ns < b.ns : client < b.client; }
  };

  void add(const Client& client, double per_second, const Diurnal& diurnal, std::uint64_t seed,
           std::uint64_t index) {
    ArrivalStream::Rate rate{per_second, diurnal, client.windows, client.window.in(unit::sec)};
    if (rate.windows.empty()) rate.windows = {{1, client.kind, client.cv}};
    ClientStream stream{ArrivalStream(std::move(rate), horizon_s_, Rng(seed, "arrivals", index)),
                        Rng(seed, "isl", index),
                        Rng(seed, "osl", index),
                        {},
                        client.period.in(unit::sec),
                        client.slo_class};
    for (const auto& [isl, osl] : client.periods) stream.lengths.push_back(pair_of(isl, osl));
    if (stream.lengths.empty()) stream.lengths.push_back(pair_of(client.isl, client.osl));
    if (stream.arrivals.now() < horizon_s_)
      queue_.push_back({static_cast<std::int64_t>(stream.arrivals.now() * ns_per_second),
                        static_cast<std::uint32_t>(clients_.size())});
    clients_.push_back(std::move(stream));
  }

  const LengthPair& lengths_at(const ClientStream& client) const {
    if (client.lengths.size() == 1) return client.lengths.front();
    const auto step = static_cast<std::size_t>(client.arrivals.now() / client.period_s);
    return client.lengths[step % client.lengths.size()];
  }

  void requeue(const ClientStream& client) {
    if (client.arrivals.now() < horizon_s_) {
      queue_.front().ns = static_cast<std::int64_t>(client.arrivals.now() * ns_per_second);
    } else {
      queue_.front() = queue_.back();
      queue_.pop_back();
    }
    sift_down(0);
  }

  void sift_down(std::size_t i) {
    if (i >= queue_.size()) return;
    const Entry moving = queue_[i];
    for (;;) {
      std::size_t child = 2 * i + 1;
      if (child >= queue_.size()) break;
      if (child + 1 < queue_.size() && queue_[child + 1] < queue_[child]) ++child;
      if (!(queue_[child] < moving)) break;
      queue_[i] = queue_[child];
      i = child;
    }
    queue_[i] = moving;
  }

  double horizon_s_;
  std::vector<ClientStream> clients_;
  std::vector<Entry> queue_;  // heap: the next arrival of every client that has one
  std::uint32_t next_id_ = 0;
};

}  // namespace

std::unique_ptr<Source> open_loop(const OpenLoop& load, Seconds horizon, std::uint64_t seed) {
  return std::make_unique<OpenLoopSource>(load, horizon, seed);
}

}  // namespace racktwin::workload
