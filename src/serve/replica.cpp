// Queues, the running list, what a decoding sequence adds to its rank, and its memory.
#include "serve/replica.hpp"

#include <algorithm>
#include <cmath>

namespace racktwin::serve {
namespace {

constexpr std::int64_t one = std::int64_t{1} << 20;  // a token in fixed point

}  // namespace

double Speculation::tokens_per_step() const {
  double mean = 1, chance = 1;
  for (const double a : acceptance) mean += chance *= a;
  return mean;
}

Rules rules_of(const catalog::Engine& engine, const Pool& pool) {
  Rules rules;
  rules.mixed = engine.batching != catalog::Batching::sglang;
  rules.chunked_prefill = engine.chunked_prefill;
  rules.reserve_output = engine.reserve_full_output;
  rules.estimate_output = engine.batching == catalog::Batching::sglang;
  rules.preempt_least_done = engine.batching == catalog::Batching::sglang;
  rules.max_sequences = pool.max_sequences.value_or(engine.max_sequences);
  rules.max_batch_tokens = pool.max_batch_tokens.value_or(engine.max_batch_tokens);
  rules.block_tokens = pool.block_tokens.value_or(engine.block_tokens);
  rules.prefix_caching = pool.prefix_caching;
  rules.speculation = pool.speculation;
  // Every decode has its place in the token budget of a step.
  const std::int64_t per_sequence = 1 + rules.speculation.draft_tokens;
  rules.max_sequences = static_cast<int>(
      std::clamp<std::int64_t>(rules.max_batch_tokens / per_sequence, 1, rules.max_sequences));
  return rules;
}

Replica::Replica(const Setup& setup)
    : setup_(setup),
      tier_stack_(setup.tiers, setup.block_bytes),
      rng_(setup.seed, "acceptance"),
      work_(static_cast<std::size_t>(setup.ranks)) {
  const Rules& rules = setup_.rules;
  RACKTWIN_CHECK(setup.ranks >= 1 && rules.blocks >= 1 && rules.block_tokens >= 1);
  RACKTWIN_CHECK(rules.block_tokens > rules.speculation.draft_tokens);
  const auto count = static_cast<std::size_t>(setup.ranks);
  for (auto* sums : {&sums_.context, &sums_.rate, &sums_.windowed, &sums_.rate_in_window})
    sums->resize(count);
  for (auto* counts : {&sums_.decoding, &sums_.running}) counts->resize(count);
  for (int r = 0; r < setup.ranks; ++r) {
    Rank& rank = ranks_.emplace_back(rules.blocks);
    if (!rules.reserve_output && rules.speculation.draft_tokens == 0)
      rank.growth.resize(static_cast<std::size_t>(rules.block_tokens));
    if (tier_stack_.present()) rank.cache.keep_evicted();
  }
}

std::int64_t Replica::blocks_for(std::int64_t tokens) const {
  return (tokens + setup_.rules.block_tokens - 1) / setup_.rules.block_tokens;
}

std::int64_t Replica::admission_blocks(const Active& a) const {
  const std::int64_t tokens =
      setup_.rules.reserve_output ? std::int64_t{a.isl} + a.max_tokens : std::int64_t{a.prompt};
  return blocks_for(tokens);
}

bool Replica::can_ever_hold(const Active& a) const {
  // One more token than the prompt: what the first decode step writes.
  const std::int64_t growth = setup_.rules.reserve_output ? 0 : 1;
  return admission_blocks(a) + growth <= setup_.rules.blocks;
}

void Replica::enqueue(ActiveIndex i) {
  Active& a = at(i);
  const auto& names = table().names(a, setup_.rules.block_tokens);
  std::size_t best = 0;
  std::int64_t best_work = INT64_MAX;
  std::int64_t best_count = INT64_MAX;
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    const Rank& rank = ranks_[r];
    std::int64_t work = rank.pending_prefill + a.prompt;
    if (setup_.rules.prefix_caching && !names.empty())
      work -= rank.cache.matched(names) * setup_.rules.block_tokens;
    const auto count = static_cast<std::int64_t>(rank.waiting.size()) + sums_.running[r];
    if (work > best_work || (work == best_work && count >= best_count)) continue;
    best = r;
    best_work = work;
    best_count = count;
  }
  Rank& rank = ranks_[best];
  a.rank = static_cast<std::uint16_t>(best);
  a.stage = Stage::waiting;
  a.computed = 0;
  rank.waiting.push_back(i);
  rank.pending_prefill += a.prompt;
  ++waiting_;
}

// The emptiest rank with a slot and the blocks; ranks_.size() if there is none.
std::size_t Replica::rank_with_room(const Active& a) const {
  const std::int64_t blocks = admission_blocks(a);
  const std::int64_t spare = setup_.rules.reserve_output ? 0 : 1;
  std::size_t best = ranks_.size();
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    const std::int32_t running = sums_.running[r];
    if (running >= setup_.rules.max_sequences) continue;
    if (best != ranks_.size() && running >= sums_.running[best]) continue;
    const Rank& rank = ranks_[r];
    if (rank.waiting.empty() && rank.cache.free() >= blocks + spare) best = r;
  }
  return best;
}

bool Replica::has_room(const Active& a) const {
  return rank_with_room(a) < ranks_.size();
}

bool Replica::reserve(ActiveIndex i) {
  Active& a = at(i);
  const std::size_t best = rank_with_room(a);
  if (best == ranks_.size()) return false;

  const std::int64_t blocks = admission_blocks(a);
  Rank& rank = ranks_[best];
  const auto& names = table().names(a, setup_.rules.block_tokens);
  const std::int64_t hit = setup_.rules.prefix_caching ? rank.cache.matched(names) : 0;
  std::vector<std::uint32_t> slots;
  RACKTWIN_CHECK(rank.cache.admit(names, hit, blocks - hit, slots));
  sink_evicted(rank);
  if (Prompt* prompt = table().prompt(a)) {
    prompt->source_slots = std::move(prompt->slots);
    prompt->slots = std::move(slots);
  }
  a.source_private_blocks = a.private_blocks;
  a.private_blocks = static_cast<std::int32_t>(blocks - hit);
  a.computed = static_cast<std::int32_t>(hit * setup_.rules.block_tokens);
  a.prefill_rank = a.rank;
  a.rank = static_cast<std::uint16_t>(best);
  append_running(rank, i);
  return true;
}

void Replica::release_source(ActiveIndex i) {
  Active& a = at(i);
  KvCache& cache = ranks_[a.prefill_rank].cache;
  if (Prompt* prompt = table().prompt(a)) cache.unreference(prompt->source_slots);
  cache.give(a.source_private_blocks);
  a.source_private_blocks = 0;
}

void Replica::join(ActiveIndex i) {
  at(i).computed = at(i).prompt;
  publish_prompt(i);
  joining_.push_back(i);
}

void Replica::loaded(ActiveIndex i) {
  Active& a = at(i);
  RACKTWIN_CHECK(a.stage == Stage::loading);
  a.stage = Stage::prefilling;
  ranks_[a.rank].prefilling.push_back(i);
  ++prefilling_;
}

void Replica::append_running(Rank& rank, ActiveIndex i) {
  Active& a = at(i);
  a.previous = rank.last;
  a.next = no_active;
  (rank.last == no_active ? rank.first : at(rank.last).next) = i;
  rank.last = i;
  ++sums_.running[a.rank];
  ++running_;
}

void Replica::remove_running(Rank& rank, ActiveIndex i) {
  const Active& a = at(i);
  (a.previous == no_active ? rank.first : at(a.previous).next) = a.next;
  (a.next == no_active ? rank.last : at(a.next).previous) = a.previous;
  --sums_.running[a.rank];
  --running_;
}

// Verification steps that `tokens` output tokens take: one token each, plus the guesses
// accepted before the first wrong one. The last step may be cut short.
std::int64_t Replica::draw_steps(const Active& a, std::int64_t tokens) {
  const Speculation& speculation = setup_.rules.speculation;
  if (speculation.draft_tokens == 0) return tokens;
  Rng rng(setup_.seed, "acceptance", mix(a.id.index, static_cast<std::uint64_t>(a.preemptions)));
  std::int64_t steps = 0;
  for (std::int64_t done = 0; done < tokens; ++steps) {
    ++done;
    for (const double chance : speculation.acceptance) {
      if (rng.uniform() >= chance) break;
      ++done;
    }
  }
  return steps;
}

// Simplified: with speculation a sequence's tokens come evenly over its steps, though their
// number is drawn exactly. Wrong for the context of one sequence between its ends, by a few
// tokens.
void Replica::start_decoding(ActiveIndex i) {
  Active& a = at(i);
  Rank& rank = ranks_[a.rank];
  const std::int64_t tokens = a.osl - a.generated;
  const std::int64_t steps = draw_steps(a, tokens);
  RACKTWIN_CHECK(tokens > 0 && steps > 0);
  a.stage = Stage::decoding;
  a.base_context = a.prompt;
  a.join_step = step_;
  a.rate = steps == tokens ? one : tokens * one / steps;
  const std::size_t r = a.rank;
  sums_.context[r] += a.base_context * one;
  sums_.rate[r] += a.rate;
  ++sums_.decoding[r];
  ++decoding_;
  rank.output_left += a.max_tokens - a.generated;
  set_timer(timers_, step_ + steps - 1, i, Timer::finish);
  if (const auto window = setup_.rules.window) {
    a.in_window = a.base_context < *window;
    if (a.in_window) {
      sums_.windowed[r] += a.base_context * one;
      sums_.rate_in_window[r] += a.rate;
      const std::int64_t inside = ((*window - a.base_context) * one + a.rate - 1) / a.rate;
      if (inside < steps) set_timer(timers_, step_ + inside - 1, i, Timer::leave_window);
    } else {
      sums_.windowed[r] += *window * one;
    }
  }
  if (setup_.rules.reserve_output) return;
  if (!rank.growth.empty()) {
    const std::int64_t size = setup_.rules.block_tokens;
    ++rank.growth[static_cast<std::size_t>(((step_ - a.base_context) % size + size) % size)];
  } else {
    a.allocated = static_cast<std::int32_t>(blocks_for(a.base_context)) * setup_.rules.block_tokens;
    set_growth_timer(i);
  }
}

void Replica::stop_decoding(ActiveIndex i) {
  Active& a = at(i);
  Rank& rank = ranks_[a.rank];
  const std::int64_t executed = step_ - a.join_step;
  const std::int64_t context = a.base_context * one + a.rate * executed;
  const std::size_t r = a.rank;
  sums_.context[r] -= context;
  sums_.rate[r] -= a.rate;
  --sums_.decoding[r];
  --decoding_;
  if (setup_.rules.window) {
    if (a.in_window) sums_.rate_in_window[r] -= a.rate;
    sums_.windowed[r] -= a.in_window ? context : *setup_.rules.window * one;
  }
  const std::int64_t tokens =
      std::min<std::int64_t>((a.rate * executed) >> fixed_shift, a.osl - a.generated);
  rank.output_left -= a.max_tokens - a.generated - executed;  // as account() has counted
  a.generated += static_cast<std::int32_t>(tokens);
  if (executed > 0) a.last_token = last_decode_end_;
  if (!rank.growth.empty()) {
    const std::int64_t size = setup_.rules.block_tokens;
    --rank.growth[static_cast<std::size_t>(((a.join_step - a.base_context) % size + size) % size)];
    a.private_blocks += static_cast<std::int32_t>(blocks_for(a.base_context + executed) -
                                                  blocks_for(a.base_context));
  }
  ++a.epoch;  // its timers are stale
}

void Replica::set_timer(std::vector<TimerEntry>& heap, std::int64_t step, ActiveIndex i,
                        Timer kind) {
  heap.push_back({(static_cast<std::uint64_t>(step) << request_bits) | i, at(i).epoch, kind});
  std::push_heap(heap.begin(), heap.end(), std::greater<>{});
}

// The first step whose tokens no longer fit the blocks it has.
void Replica::set_growth_timer(ActiveIndex i) {
  const Active& a = at(i);
  const std::int64_t step = a.join_step + (a.allocated - a.base_context) * one / a.rate;
  set_timer(growth_timers_, std::max(step, step_), i, Timer::grow);
}

bool Replica::stale(const TimerEntry& timer) const {
  return at(static_cast<ActiveIndex>(timer.key & ((1u << request_bits) - 1))).epoch != timer.epoch;
}

void Replica::publish_prompt(ActiveIndex i) {
  Active& a = at(i);
  Prompt* prompt = table().prompt(a);
  if (prompt == nullptr || !setup_.rules.prefix_caching) return;
  const auto& names = table().names(a, setup_.rules.block_tokens);
  const auto count = static_cast<std::int64_t>(names.size());
  a.private_blocks -=
      static_cast<std::int32_t>(ranks_[a.rank].cache.publish(names, count, prompt->slots));
}

void Replica::release(ActiveIndex i) {
  Active& a = at(i);
  Rank& rank = ranks_[a.rank];
  if (Prompt* prompt = table().prompt(a)) rank.cache.unreference(prompt->slots);
  rank.cache.give(a.private_blocks);
  a.private_blocks = 0;
  remove_running(rank, i);
}

void Replica::finish(ActiveIndex i, std::int64_t now, Outcome& outcome) {
  Active& a = at(i);
  if (a.stage == Stage::decoding) stop_decoding(i);
  a.generated = a.osl;
  a.last_token = now;
  release(i);
  outcome.finished.push_back(i);
}

void Replica::sink_evicted(Rank& rank) {
  auto& evicted = rank.cache.evicted();
  if (evicted.empty()) return;
  tier_stack_.sink(evicted);
  evicted.clear();
}

double Replica::kv_used() const {
  return static_cast<double>(blocks_used()) / static_cast<double>(blocks_total());
}

std::int64_t Replica::blocks_used() const {
  std::int64_t used = 0;
  for (const Rank& rank : ranks_) used += rank.cache.used();
  return used;
}

std::int64_t Replica::cached_tokens(ActiveIndex i) const {
  if (!setup_.rules.prefix_caching) return 0;
  const auto& names = table().names(at(i), setup_.rules.block_tokens);
  if (names.empty()) return 0;
  std::int64_t best = 0;
  for (const Rank& rank : ranks_) best = std::max(best, rank.cache.matched(names));
  return best * setup_.rules.block_tokens;
}

}  // namespace racktwin::serve
