// The closed loop (a new request for every one that ends) and the burst (all at once).
#include <algorithm>
#include <deque>

#include "base/check.hpp"
#include "workload/samplers.hpp"

namespace racktwin::workload {
namespace {

class ClosedLoopSource final : public Source {
 public:
  ClosedLoopSource(const ClosedLoop& load, Seconds horizon, std::uint64_t seed)
      : isl_(load.isl),
        osl_(load.osl),
        isl_rng_(seed, "isl"),
        osl_rng_(seed, "osl"),
        max_tokens_(std::max<std::int64_t>(1, limit_of(load.osl))) {
    if (load.requests > 0) left_ = load.requests;
    end_ = Instant{} + std::min(horizon, 4e9 * unit::sec);
    if (end_ > Instant{}) starts_ = std::min(load.concurrency, left_.value_or(load.concurrency));
  }

  std::optional<Instant> peek() override {
    if (starts_ > 0) return Instant{};
    if (ready_.empty()) return std::nullopt;
    return ready_.front();
  }

  Request next() override {
    const std::optional<Instant> arrival = peek();
    RACKTWIN_CHECK(arrival.has_value());
    if (starts_ > 0)
      --starts_;
    else
      ready_.pop_front();
    if (left_) --*left_;
    Request request;
    request.id = RequestId{next_id_++};
    request.arrival = *arrival;
    request.isl = std::max<std::int64_t>(1, isl_.draw(isl_rng_));
    request.osl = std::max<std::int64_t>(1, osl_.draw(osl_rng_));
    request.max_tokens = max_tokens_;
    ++in_flight_;
    return request;
  }

  void completed(RequestId id, Instant when) override {
    RACKTWIN_CHECK(id.index < next_id_ && in_flight_ > 0);
    --in_flight_;
    const auto waiting = static_cast<std::int64_t>(ready_.size()) + starts_;
    if (when >= end_ || (left_ && *left_ <= waiting)) return;
    RACKTWIN_CHECK(ready_.empty() || ready_.back() <= when);
    ready_.push_back(when);
  }

 private:
  LengthSampler isl_, osl_;
  Rng isl_rng_, osl_rng_;
  std::int64_t max_tokens_;
  Instant end_;
  std::optional<std::int64_t> left_;  // requests still to give out; absent = no bound
  std::int64_t starts_ = 0;           // of the first `concurrency`, not yet given out
  std::int64_t in_flight_ = 0;
  std::deque<Instant> ready_;  // rises: completions are told in order of time
  std::uint32_t next_id_ = 0;
};

}  // namespace

std::unique_ptr<Source> closed_loop(const ClosedLoop& load, Seconds horizon, std::uint64_t seed) {
  return std::make_unique<ClosedLoopSource>(load, horizon, seed);
}

// All requests in flight at once are a closed loop that nothing follows.
std::unique_ptr<Source> burst(const Burst& load, Seconds horizon, std::uint64_t seed) {
  const ClosedLoop loop{
      .concurrency = load.requests, .requests = load.requests, .isl = load.isl, .osl = load.osl};
  return std::make_unique<ClosedLoopSource>(loop, horizon, seed);
}

}  // namespace racktwin::workload
