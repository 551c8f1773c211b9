// Forming a batch at a step boundary: who grows, who is preempted, who is admitted, and how
// far ahead nothing can change.
#include <algorithm>

#include "serve/replica.hpp"

namespace racktwin::serve {
namespace {

// SGLang: a new request is admitted if its prompt and its output limit, clipped to so many
// tokens, fit beside what running requests are expected to write. The expected part starts at
// 0.7 of their limits and decays to 0.14 of that over 600 decode steps.
constexpr std::int64_t clipped_output = 4096;
constexpr double ratio_start = 0.7;
constexpr std::size_t look_ahead_most = 1024;

}  // namespace

std::int64_t attention_pairs(std::int64_t before, std::int64_t tokens,
                             std::optional<std::int64_t> bound) {
  // Query j (1-based) sees before + j tokens: a ramp up to the bound, then flat.
  const std::int64_t ramp = bound ? std::clamp<std::int64_t>(*bound - before, 0, tokens) : tokens;
  return ramp * before + ramp * (ramp + 1) / 2 + (tokens - ramp) * bound.value_or(0);
}

std::optional<std::int64_t> Replica::begin(std::int64_t now, Outcome& outcome) {
  RACKTWIN_CHECK(pending_.empty());
  for (const ActiveIndex i : joining_) {
    start_decoding(i);
    fresh_.push_back(i);
  }
  joining_.clear();
  chunks_.clear();
  preempted_ = false;
  if (setup_.rules.mixed) {
    decodes_run_ = decoding_ > 0;
    if (decodes_run_) preempted_ = grow_sequences(outcome);
    decodes_run_ = decoding_ > 0;
    form_chunks(now, outcome, !preempted_);
  } else {
    form_chunks(now, outcome, true);
    decodes_run_ = chunks_.empty() && decoding_ > 0;
    if (decodes_run_) preempted_ = grow_sequences(outcome);
    decodes_run_ = decodes_run_ && decoding_ > 0;
  }
  // Those who ran have lost their place at this boundary: whoever fits now is let in.
  if (chunks_.empty() && !decodes_run_ && waiting_ > 0) form_chunks(now, outcome, true);
  if (chunks_.empty() && !decodes_run_) return std::nullopt;
  describe_work();
  look_ahead(now);
  return pending_.back().end;
}

// Never picks a request whose bytes are on their way, from a tier or another replica.
ActiveIndex Replica::victim(const Rank& rank) const {
  ActiveIndex best = no_active;
  for (ActiveIndex i = rank.last; i != no_active; i = at(i).previous) {
    const Active& a = at(i);
    if (a.stage != Stage::decoding && a.stage != Stage::prefilling) continue;
    if (!setup_.rules.preempt_least_done) return i;  // the latest admitted
    const auto done = [&](const Active& x) {
      return x.generated + (x.stage == Stage::decoding ? step_ - x.join_step : 0);
    };
    if (best == no_active || done(a) < done(at(best))) best = i;
  }
  return best;
}

// Takes a request out of the batch, whatever it was doing there, and frees its blocks.
void Replica::take_out(Rank& rank, ActiveIndex i) {
  Active& a = at(i);
  if (a.stage == Stage::decoding) {
    stop_decoding(i);
    std::erase(fresh_, i);
  } else {
    prefilling_ -= static_cast<std::int32_t>(std::erase(rank.prefilling, i));
    rank.pending_prefill -= a.prompt - a.computed;
  }
  release(i);
}

void Replica::preempt(Rank& rank, ActiveIndex i) {
  take_out(rank, i);
  Active& a = at(i);
  a.prompt = a.isl + a.generated;
  a.computed = 0;
  a.stage = Stage::waiting;
  ++a.preemptions;
  ++stats_.preemptions;
  rank.waiting.push_front(i);
  rank.pending_prefill += a.prompt;
  ++waiting_;
  new_token_ratio_ = ratio_start;
}

void Replica::give_up(Rank& rank, ActiveIndex i, Outcome& outcome) {
  take_out(rank, i);
  outcome.outgrown.push_back(i);
}

// Preempts until `blocks` are free. A sequence that is alone on its rank and still does not fit
// never will: it is given up, so that no request preempts itself for ever.
bool Replica::make_room(Rank& rank, std::int64_t blocks, Outcome& outcome) {
  if (rank.cache.free() >= blocks) return true;
  const ActiveIndex i = victim(rank);
  RACKTWIN_CHECK(i != no_active);
  if (sums_.running[at(i).rank] == 1)
    give_up(rank, i, outcome);
  else
    preempt(rank, i);
  return false;
}

bool Replica::grow_sequences(Outcome& outcome) {
  if (setup_.rules.reserve_output) return false;
  const std::int64_t before = stats_.preemptions;
  if (setup_.rules.speculation.draft_tokens > 0) {
    grow_by_timer(outcome);
    return stats_.preemptions > before;
  }
  const auto phase = static_cast<std::size_t>(step_ % setup_.rules.block_tokens);
  for (Rank& rank : ranks_) {
    while (!make_room(rank, rank.growth[phase], outcome)) {
    }
    RACKTWIN_CHECK(rank.cache.take(rank.growth[phase]));
    sink_evicted(rank);
  }
  return stats_.preemptions > before;
}

void Replica::grow_by_timer(Outcome& outcome) {
  const auto due = static_cast<std::uint64_t>(step_ + 1) << request_bits;
  while (!growth_timers_.empty() && growth_timers_.front().key < due) {
    std::pop_heap(growth_timers_.begin(), growth_timers_.end(), std::greater<>{});
    const TimerEntry timer = growth_timers_.back();
    growth_timers_.pop_back();
    const auto i = static_cast<ActiveIndex>(timer.key & ((1u << request_bits) - 1));
    if (stale(timer)) continue;
    Rank& rank = ranks_[at(i).rank];
    while (!stale(timer) && !make_room(rank, 1, outcome)) {
    }
    if (stale(timer)) continue;  // it was itself the victim
    RACKTWIN_CHECK(rank.cache.take(1));
    sink_evicted(rank);
    ++at(i).private_blocks;
    at(i).allocated += setup_.rules.block_tokens;
    set_growth_timer(i);
  }
}

void Replica::form_chunks(std::int64_t now, Outcome& outcome, bool admit_new) {
  const std::int64_t per_sequence = 1 + setup_.rules.speculation.draft_tokens;
  if (waiting_ == 0) admit_new = false;
  if (prefilling_ == 0 && !admit_new) return;
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    Rank& rank = ranks_[r];
    if (rank.prefilling.empty() && (!admit_new || rank.waiting.empty())) continue;
    std::int64_t budget = setup_.rules.max_batch_tokens;
    if (setup_.rules.mixed) budget -= sums_.decoding[r] * per_sequence;
    const std::size_t before = chunks_.size();
    for (const ActiveIndex i : rank.prefilling) add_chunk(i, budget);
    while (admit_new && !rank.waiting.empty() && budget > 0 &&
           sums_.running[r] < setup_.rules.max_sequences) {
      const ActiveIndex i = rank.waiting.front();
      const Active& a = at(i);
      // A prompt that may not be split waits for a step that has room for all of it, or for
      // one of its own.
      if (!setup_.rules.chunked_prefill && a.prompt > budget && chunks_.size() > before) break;
      if (!estimate_allows(rank, a) || !admit(rank, i, now, outcome)) break;
      rank.waiting.pop_front();
      --waiting_;
      if (a.stage == Stage::prefilling) add_chunk(i, budget);
    }
  }
}

bool Replica::estimate_allows(const Rank& rank, const Active& a) const {
  if (!setup_.rules.estimate_output || sums_.running[a.rank] == 0) return true;
  const std::int64_t wanted =
      a.prompt + std::min<std::int64_t>(a.max_tokens - a.generated, clipped_output);
  const double expected =
      new_token_ratio_ * static_cast<double>(std::max<std::int64_t>(rank.output_left, 0));
  const double room = static_cast<double>(rank.cache.free() * setup_.rules.block_tokens) - expected;
  return static_cast<double>(wanted) < room;
}

bool Replica::admit(Rank& rank, ActiveIndex i, std::int64_t now, Outcome& outcome) {
  Active& a = at(i);
  const std::int64_t size = setup_.rules.block_tokens;
  const std::int64_t most = (a.prompt - 1) / size;  // at least one token is computed
  std::span<const std::uint64_t> names;
  if (setup_.rules.prefix_caching) names = table().names(a, setup_.rules.block_tokens);
  const std::int64_t hit = std::min(rank.cache.matched(names), most);
  static thread_local std::vector<std::uint32_t> no_slots;
  Prompt* prompt = table().prompt(a);
  auto& slots = prompt == nullptr ? no_slots : prompt->slots;
  const std::int64_t blocks = admission_blocks(a);
  if (!rank.cache.admit(names, hit, blocks - hit, slots)) return false;
  sink_evicted(rank);  // may push out of the tiers what this prompt would have found there
  std::int64_t lower = 0;
  if (tier_stack_.present())
    lower = std::min(tier_stack_.matched(names.subspan(static_cast<std::size_t>(hit))), most - hit);
  a.private_blocks = static_cast<std::int32_t>(blocks - hit);
  a.computed = static_cast<std::int32_t>((hit + lower) * size);
  rank.pending_prefill -= a.computed;
  stats_.prompt_tokens += a.prompt;
  stats_.reused_tokens += a.computed;
  stats_.reused_lower += lower * size;
  if (a.scheduled == never) {
    a.scheduled = now;
    a.reused = a.computed;
  }
  append_running(rank, i);
  if (lower > 0) {
    a.stage = Stage::loading;
    const auto wanted =
        names.subspan(static_cast<std::size_t>(hit), static_cast<std::size_t>(lower));
    outcome.loads.emplace_back(i, tier_stack_.read(wanted, now));
  } else {
    a.stage = Stage::prefilling;
    rank.prefilling.push_back(i);
    ++prefilling_;
  }
  return true;
}

void Replica::add_chunk(ActiveIndex i, std::int64_t& budget) {
  const Active& a = at(i);
  std::int64_t tokens = a.prompt - a.computed;
  if (setup_.rules.chunked_prefill) tokens = std::min(tokens, budget);
  if (tokens <= 0) return;
  chunks_.push_back({i, static_cast<std::int32_t>(tokens)});
  budget -= tokens;
}

void Replica::describe_work() {
  const std::int64_t per_sequence = 1 + setup_.rules.speculation.draft_tokens;
  for (std::size_t r = 0; r < work_.size(); ++r) {
    cost::RankWork& work = work_[r];
    const std::int64_t sequences = decodes_run_ ? sums_.decoding[r] : 0;
    work.decode_sequences = sequences;
    work.decode_tokens = sequences * per_sequence;
    describe_context(r, 0);
  }
  for (const std::uint16_t r : prompt_ranks_) {
    cost::RankWork& work = work_[r];
    work.prefill_tokens = work.prefill_sequences = 0;
    work.prefill_pairs = work.prefill_pairs_windowed = 0;
  }
  prompt_ranks_.clear();
  for (const Chunk& chunk : chunks_) {
    const Active& a = at(chunk.request);
    cost::RankWork& work = work_[a.rank];
    prompt_ranks_.push_back(a.rank);
    work.prefill_tokens += chunk.tokens;
    ++work.prefill_sequences;
    work.prefill_pairs += attention_pairs(a.computed, chunk.tokens, std::nullopt);
    work.prefill_pairs_windowed += attention_pairs(a.computed, chunk.tokens, setup_.rules.window);
  }
}

// What the decodes of rank `r` read `ahead` steps from now.
void Replica::describe_context(std::size_t r, std::int64_t ahead) {
  cost::RankWork& work = work_[r];
  if (work.decode_sequences == 0) {
    work.decode_context = work.decode_context_windowed = 0;
    return;
  }
  work.decode_context =
      ((sums_.context[r] + ahead * sums_.rate[r]) >> fixed_shift) + work.decode_tokens;
  work.decode_context_windowed = work.decode_context;
  if (setup_.rules.window)
    work.decode_context_windowed =
        ((sums_.windowed[r] + ahead * sums_.rate_in_window[r]) >> fixed_shift) + work.decode_tokens;
}

// How many steps from here on are sure to meet no change, the last one included. A stale timer
// only makes it fewer.
std::int64_t Replica::steps_until_change() const {
  if (setup_.single_steps || !chunks_.empty()) return 1;
  // Somebody may be admitted at the next boundary: nobody was let in after a preemption, or the
  // estimate of what running requests will write shrinks with every step.
  if (waiting_ > 0 && (preempted_ || setup_.rules.estimate_output)) return 1;
  std::int64_t steps = static_cast<std::int64_t>(horizon_);
  if (!timers_.empty())
    steps =
        std::min(steps, static_cast<std::int64_t>(timers_.front().key >> request_bits) - step_ + 1);
  if (!growth_timers_.empty())
    steps = std::min(steps,
                     static_cast<std::int64_t>(growth_timers_.front().key >> request_bits) - step_);
  return std::max<std::int64_t>(steps, 1);
}

void Replica::look_ahead(std::int64_t now) {
  const std::int64_t steps = steps_until_change();
  step_start_ = now;
  started_ = true;
  Instant end = Instant::at_ns(now);
  for (std::int64_t k = 0; k < steps; ++k) {
    if (k > 0) {
      const auto phase = static_cast<std::size_t>((step_ + k) % setup_.rules.block_tokens);
      for (std::size_t r = 0; r < ranks_.size(); ++r) {
        Rank& rank = ranks_[r];
        if (!rank.growth.empty()) {
          // Blocks taken by the inner steps 1 .. k, one for each sequence whose phase has come.
          if (k == 1) rank.promised = 0;
          rank.promised += rank.growth[phase];
          if (rank.promised > rank.cache.free()) return;
        }
        describe_context(r, k);
      }
    }
    const cost::StepCost cost = setup_.model->cost(work_);
    end = end + cost.total();
    pending_.push_back({end.ns(), cost});
  }
  if (steps == static_cast<std::int64_t>(horizon_))
    horizon_ = std::min(2 * horizon_, look_ahead_most);
}

Replica::Cut Replica::interrupt(std::int64_t now) {
  catch_up(now);
  if (pending_.empty() || (pending_.size() == 1 && started_)) return {};
  horizon_ = std::max<std::size_t>(1, horizon_ / 4);
  if (!started_) {  // exactly between two steps
    pending_.clear();
    return {.at_boundary = true, .end = std::nullopt};
  }
  pending_.resize(1);
  return {.at_boundary = false, .end = pending_.front().end};
}

}  // namespace racktwin::serve
