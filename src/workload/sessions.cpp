// Conversations and agents. A chain is one growing prompt: the main line of a session, or one
// of its sub-agents. Every session draws from a stream of its own, so that what it asks does
// not depend on when its answers come.
#include <algorithm>
#include <queue>

#include "base/check.hpp"
#include "workload/samplers.hpp"

namespace racktwin::workload {
namespace {

constexpr double ns_per_second = 1e9;
constexpr std::int64_t ns_per_ms = 1000000;

struct Chain {
  std::uint32_t session = 0;  // slot
  bool main = true;
  std::uint64_t salt = 0;
  std::int64_t calls_left = 0;  // after the one that is waiting or in flight
  std::int64_t isl = 0, osl = 0;
};

struct Session {
  SessionId id;
  std::uint32_t main = 0;  // its chain
  std::int64_t agents_running = 0, agents_started = 0;
  Instant next_turn;  // not before this
  Rng rng{0, ""};
};

// Reuses freed slots, so that memory follows what is alive.
template <class T>
struct Slab {
  std::vector<T> items;
  std::vector<std::uint32_t> free;
  std::uint32_t add(T item) {
    if (free.empty()) {
      items.push_back(std::move(item));
      return static_cast<std::uint32_t>(items.size() - 1);
    }
    const std::uint32_t slot = free.back();
    free.pop_back();
    items[slot] = std::move(item);
    return slot;
  }
};

class SessionSource final : public Source {
 public:
  SessionSource(const Sessions& load, Seconds horizon, std::uint64_t seed)
      : load_(load),
        seed_(seed),
        end_(Instant{} + std::min(horizon, 4e9 * unit::sec)),
        starts_({load.starts.rate.in(unit::per_second),
                 load.starts.diurnal,
                 {{1, load.starts.kind, load.starts.cv}}},
                load.concurrency > 0 ? 0 : since_start(end_).in(unit::sec), Rng(seed, "arrivals")),
        turns_(load.turns),
        first_prompt_(load.first_prompt),
        new_tokens_(load.new_tokens),
        osl_(load.osl),
        think_ms_(load.think_ms),
        parallel_agents_(load.parallel_agents),
        agent_calls_(load.sub_agent_calls),
        agent_think_ms_(load.agent_think_ms),
        max_tokens_(std::max<std::int64_t>(1, limit_of(load.osl))) {
    if (end_ == Instant{}) return;
    for (std::int64_t i = 0; i < load.concurrency; ++i) start_session(Instant{});
  }

  std::optional<Instant> peek() override {
    const auto start_ns = [&] { return static_cast<std::int64_t>(starts_.now() * ns_per_second); };
    const double end_s = since_start(end_).in(unit::sec);
    while (load_.concurrency == 0 && starts_.now() < end_s &&
           (waiting_.empty() || start_ns() <= waiting_.top().when.ns())) {
      start_session(Instant::at_ns(start_ns()));
      starts_.advance();
    }
    if (waiting_.empty()) return std::nullopt;
    return waiting_.top().when;
  }

  Request next() override {
    const std::optional<Instant> arrival = peek();
    RACKTWIN_CHECK(arrival.has_value());
    const std::uint32_t slot = waiting_.top().chain;
    waiting_.pop();
    const Chain& chain = chains_.items[slot];
    Request request;
    request.id = RequestId{next_id_++};
    request.arrival = *arrival;
    request.isl = chain.isl;
    request.osl = chain.osl;
    request.max_tokens = max_tokens_;
    request.session = sessions_.items[chain.session].id;
    request.block_tokens = load_.block_tokens;
    request.blocks = blocks_of(chain);
    in_flight_.insert(request.id.index, slot);
    return request;
  }

  void completed(RequestId id, Instant when) override {
    const std::optional<std::uint32_t> slot = in_flight_.take(id.index);
    RACKTWIN_CHECK(slot.has_value());
    if (chains_.items[*slot].main)
      turn_ended(chains_.items[*slot].session, when);
    else
      call_ended(*slot, when);
  }

 private:
  struct Waiting {
    Instant when;
    std::uint64_t sequence = 0;
    std::uint32_t chain = 0;
    bool operator>(const Waiting& b) const {
      return when != b.when ? when > b.when : sequence > b.sequence;
    }
  };

  static Instant later(Instant when, std::int64_t milliseconds) {
    // Beyond any horizon is beyond the horizon.
    const auto wait = std::clamp<std::int64_t>(milliseconds, 0, std::int64_t{4000000000000});
    return Instant::at_ns(when.ns() + wait * ns_per_ms);
  }

  void wait_until(Instant when, std::uint32_t chain) {
    if (when < end_) {
      waiting_.push({when, next_sequence_++, chain});
      return;
    }
    // The horizon ends it: its session can go on no more.
    const std::uint32_t session = chains_.items[chain].session;
    const bool main = chains_.items[chain].main;
    chains_.free.push_back(chain);
    if (main) sessions_.free.push_back(session);
  }

  // Draws the chain's first prompt and answer.
  void open_chain(Chain& chain, Rng& rng) {
    const std::int64_t limit = std::max<std::int64_t>(2, load_.max_context);
    chain.osl = std::clamp<std::int64_t>(osl_.draw(rng), 1, limit / 2);
    const std::int64_t prompt = load_.system_prompt + first_prompt_.draw(rng);
    chain.isl = std::clamp<std::int64_t>(prompt, 1, limit - chain.osl);
  }

  // The next prompt is all that was said, and new tokens. False: it would not fit.
  bool grow_chain(Chain& chain, Rng& rng) {
    const std::int64_t added = std::max<std::int64_t>(0, new_tokens_.draw(rng));
    const std::int64_t osl = std::max<std::int64_t>(1, osl_.draw(rng));
    if (chain.isl + chain.osl + added + osl > load_.max_context) return false;
    chain.isl += chain.osl + added;
    chain.osl = osl;
    return true;
  }

  void start_session(Instant when) {
    const SessionId id{next_session_++};
    Session session{.id = id, .rng = Rng(seed_, "session", id.index)};
    Chain chain{.salt = mix(seed_, id.index)};
    chain.calls_left = std::max<std::int64_t>(1, turns_.draw(session.rng)) - 1;
    open_chain(chain, session.rng);
    const std::uint32_t slot = sessions_.add(session);
    chain.session = slot;
    sessions_.items[slot].main = chains_.add(chain);
    wait_until(when, sessions_.items[slot].main);
  }

  void end_session(std::uint32_t slot, Instant when) {
    chains_.free.push_back(sessions_.items[slot].main);
    sessions_.free.push_back(slot);
    if (load_.concurrency > 0 && when < end_) start_session(when);
  }

  void turn_ended(std::uint32_t slot, Instant when) {
    Session& session = sessions_.items[slot];
    if (chains_.items[session.main].calls_left == 0) return end_session(slot, when);
    session.next_turn = later(when, think_ms_.draw(session.rng));
    if (load_.sub_agents > 0 && session.rng.uniform() < load_.sub_agents) start_agents(slot, when);
    if (sessions_.items[slot].agents_running == 0) next_turn(slot, when);
  }

  void start_agents(std::uint32_t slot, Instant when) {
    const std::int64_t agents = parallel_agents_.draw(sessions_.items[slot].rng);
    for (std::int64_t i = 0; i < agents; ++i) {
      Session& session = sessions_.items[slot];
      Chain chain{.session = slot, .main = false};
      chain.salt =
          mix(mix(seed_, session.id.index), static_cast<std::uint64_t>(++session.agents_started));
      chain.calls_left = agent_calls_.draw(session.rng) - 1;
      if (chain.calls_left < 0) continue;
      open_chain(chain, session.rng);
      if (when >= end_) continue;
      ++session.agents_running;
      wait_until(when, chains_.add(chain));
    }
  }

  void call_ended(std::uint32_t chain_slot, Instant when) {
    const std::uint32_t slot = chains_.items[chain_slot].session;
    Session& session = sessions_.items[slot];
    Chain& chain = chains_.items[chain_slot];
    const Instant again =
        chain.calls_left > 0 ? later(when, agent_think_ms_.draw(session.rng)) : end_;
    if (again < end_ && grow_chain(chain, session.rng)) {
      --chain.calls_left;
      wait_until(again, chain_slot);
      return;
    }
    chains_.free.push_back(chain_slot);
    if (--session.agents_running == 0) next_turn(slot, when);
  }

  void next_turn(std::uint32_t slot, Instant now) {
    Session& session = sessions_.items[slot];
    Chain& chain = chains_.items[session.main];
    if (!grow_chain(chain, session.rng)) return end_session(slot, now);
    --chain.calls_left;
    wait_until(std::max(now, session.next_turn), session.main);
  }

  // A chain's text only grows, so (chain, place) names the whole prefix of a full block; the
  // last, partial one is also named by how much of it there is.
  std::vector<std::uint64_t> blocks_of(const Chain& chain) const {
    if (load_.block_tokens <= 0) return {};
    const std::int64_t size = load_.block_tokens, full = chain.isl / size;
    std::vector<std::uint64_t> blocks(static_cast<std::size_t>((chain.isl + size - 1) / size));
    const std::uint64_t system_salt = mix(seed_, 0x73797374656dULL);
    for (std::int64_t i = 0; i < full; ++i) {
      const std::uint64_t salt = (i + 1) * size <= load_.system_prompt ? system_salt : chain.salt;
      blocks[static_cast<std::size_t>(i)] = mix(salt, static_cast<std::uint64_t>(i));
    }
    if (chain.isl % size != 0)
      blocks.back() = mix(mix(chain.salt, static_cast<std::uint64_t>(full)),
                          static_cast<std::uint64_t>(chain.isl % size));
    return blocks;
  }

  Sessions load_;
  std::uint64_t seed_;
  Instant end_;
  ArrivalStream starts_;
  LengthSampler turns_, first_prompt_, new_tokens_, osl_, think_ms_, parallel_agents_, agent_calls_,
      agent_think_ms_;
  std::int64_t max_tokens_;
  Slab<Session> sessions_;
  Slab<Chain> chains_;
  std::priority_queue<Waiting, std::vector<Waiting>, std::greater<>> waiting_;
  IdMap in_flight_;  // request -> chain
  std::uint64_t next_sequence_ = 0;
  std::uint32_t next_id_ = 0, next_session_ = 0;
};

}  // namespace

std::unique_ptr<Source> sessions(const Sessions& load, Seconds horizon, std::uint64_t seed) {
  return std::make_unique<SessionSource>(load, horizon, seed);
}

}  // namespace racktwin::workload
