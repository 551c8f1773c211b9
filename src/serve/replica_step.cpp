// What a finished step did: tokens out, prompts done, sequences ended; and the folding of it
// into statistics.
#include <algorithm>

#include "serve/replica.hpp"

namespace racktwin::serve {
namespace {

constexpr double ratio_least = 0.7 * 0.14, ratio_decay = (0.7 - ratio_least) / 600;

}  // namespace

void Replica::catch_up(std::int64_t now) {
  while (pending_.size() > 1) {
    if (!started_ && step_start_ < now) start_inner_step();
    if (pending_.front().end > now) return;
    finish_step(pending_.front(), nullptr);
    step_start_ = pending_.front().end;
    pending_.pop_front();
    started_ = false;
  }
  if (pending_.size() == 1 && !started_ && step_start_ < now) start_inner_step();
}

void Replica::end(std::int64_t now, Outcome& outcome) {
  while (pending_.size() > 1) {
    if (!started_) start_inner_step();
    finish_step(pending_.front(), nullptr);
    step_start_ = pending_.front().end;
    pending_.pop_front();
    started_ = false;
  }
  RACKTWIN_CHECK(pending_.size() == 1 && pending_.front().end == now);
  if (!started_) start_inner_step();
  const PendingStep step = pending_.front();
  pending_.clear();
  finish_step(step, &outcome);
}

// The second and later steps of a macro-step take the blocks that look_ahead() promised.
void Replica::start_inner_step() {
  started_ = true;
  const auto phase = static_cast<std::size_t>(step_ % setup_.rules.block_tokens);
  for (Rank& rank : ranks_) {
    if (rank.growth.empty() || rank.growth[phase] == 0) continue;
    RACKTWIN_CHECK(rank.cache.take(rank.growth[phase]));
    sink_evicted(rank);
  }
}

void Replica::finish_step(const PendingStep& step, Outcome* outcome) {
  account(step);
  if (decodes_run_) {
    finish_decodes(step.end);
    if (outcome != nullptr) fire_timers(step.end, *outcome);
  }
  if (outcome != nullptr && !chunks_.empty()) finish_chunks(step.end, *outcome);
}

void Replica::account(const PendingStep& step) {
  ++stats_.steps;
  if (!chunks_.empty()) ++(decodes_run_ ? stats_.mixed_steps : stats_.prefill_steps);
  for (const Chunk& chunk : chunks_) stats_.prefill_tokens += chunk.tokens;
  stats_.sequences += static_cast<std::int64_t>(chunks_.size()) + (decodes_run_ ? decoding_ : 0);
  stats_.compute += step.cost.compute;
  stats_.memory += step.cost.memory;
  stats_.communication += step.cost.communication;
  stats_.overhead += step.cost.overhead;
  last_step_ns_ = step.end - step_start_;
  stats_.busy_ns += last_step_ns_;
  if (stats_.traces.size() < setup_.traced_steps) {
    std::int64_t prompt = 0;
    for (const Chunk& chunk : chunks_) prompt += chunk.tokens;
    stats_.traces.push_back(
        {step_start_, step.end,
         static_cast<std::int64_t>(chunks_.size()) + (decodes_run_ ? decoding_ : 0), prompt});
  }
  if (setup_.interval_ns > 0) count_busy(step_start_, step.end);
}

void Replica::finish_decodes(std::int64_t end) {
  ++stats_.decode_steps;
  stats_.decode_sequences += decoding_;
  std::int64_t rate = 0, context = 0;
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    context += sums_.context[r] >> fixed_shift;
    sums_.context[r] += sums_.rate[r];
    rate += sums_.rate[r];
  }
  if (setup_.rules.window)
    for (std::size_t r = 0; r < ranks_.size(); ++r) sums_.windowed[r] += sums_.rate_in_window[r];
  if (setup_.rules.estimate_output)
    for (std::size_t r = 0; r < ranks_.size(); ++r) ranks_[r].output_left -= sums_.decoding[r];
  stats_.decode_context += static_cast<double>(context);
  ++step_;
  new_token_ratio_ = std::max(ratio_least, new_token_ratio_ - ratio_decay);

  emitted_ += rate;
  const std::int64_t tokens = emitted_ >> fixed_shift;
  emitted_ -= tokens << fixed_shift;
  stats_.output_tokens += tokens;
  if (setup_.interval_ns > 0) count_interval(stats_.output_by_interval, end, tokens);

  // A step's tokens of one sequence share its gap.
  std::int64_t fresh_tokens = 0;
  for (const ActiveIndex i : fresh_) {
    Active& a = at(i);
    const std::int64_t count = std::max<std::int64_t>(1, a.rate >> fixed_shift);
    fresh_tokens += count;
    if (a.first_token == never) {
      a.first_token = end;  // handed over: the decode pool emits the first token
      continue;
    }
    stats_.chunk.add(end - a.last_token);
    stats_.itl.add((end - a.last_token) / count, count);
  }
  const std::int64_t old = decoding_ - static_cast<std::int64_t>(fresh_.size());
  if (old > 0) {
    const std::int64_t gap = end - last_decode_end_;
    const std::int64_t old_tokens = std::max(old, tokens - fresh_tokens);
    stats_.chunk.add(gap, old);
    stats_.itl.add(gap * old / old_tokens, old_tokens);
  }
  fresh_.clear();
  last_decode_end_ = end;
}

void Replica::fire_timers(std::int64_t end, Outcome& outcome) {
  const auto due = static_cast<std::uint64_t>(step_) << request_bits;
  while (!timers_.empty() && timers_.front().key < due) {
    std::pop_heap(timers_.begin(), timers_.end(), std::greater<>{});
    const TimerEntry timer = timers_.back();
    timers_.pop_back();
    if (stale(timer)) continue;
    const auto i = static_cast<ActiveIndex>(timer.key & ((1u << request_bits) - 1));
    if (timer.kind == Timer::finish) {
      finish(i, end, outcome);
      continue;
    }
    Active& a = at(i);
    const std::int64_t context =
        (std::int64_t{a.base_context} << fixed_shift) + a.rate * (step_ - a.join_step);
    sums_.windowed[a.rank] += (*setup_.rules.window << fixed_shift) - context;
    sums_.rate_in_window[a.rank] -= a.rate;
    a.in_window = false;
  }
}

void Replica::finish_chunks(std::int64_t end, Outcome& outcome) {
  for (const Chunk& chunk : chunks_) {
    Active& a = at(chunk.request);
    Rank& rank = ranks_[a.rank];
    a.computed += chunk.tokens;
    rank.pending_prefill -= chunk.tokens;
    if (a.computed < a.prompt) continue;
    prefilling_ -= static_cast<std::int32_t>(std::erase(rank.prefilling, chunk.request));
    publish_prompt(chunk.request);
    if (a.prefilled == never) a.prefilled = end;
    if (setup_.prefill_only) {
      a.stage = Stage::held;
      remove_running(rank, chunk.request);  // its blocks stay until the bytes have left
      outcome.prefilled.push_back(chunk.request);
      continue;
    }
    if (a.first_token == never) {
      a.first_token = end;
      outcome.first_tokens.push_back(chunk.request);
    } else {
      stats_.itl.add(end - a.last_token);
      stats_.chunk.add(end - a.last_token);
    }
    a.last_token = end;
    ++a.generated;
    ++stats_.output_tokens;
    if (setup_.interval_ns > 0) count_interval(stats_.output_by_interval, end, 1);
    if (a.generated == a.osl)
      finish(chunk.request, end, outcome);
    else
      joining_.push_back(chunk.request);
  }
  chunks_.clear();
}

void Replica::count_interval(std::vector<std::int64_t>& counts, std::int64_t when,
                             std::int64_t amount) const {
  const auto i = static_cast<std::size_t>(when / setup_.interval_ns);
  if (i >= counts.size()) counts.resize(i + 1);
  counts[i] += amount;
}

void Replica::count_busy(std::int64_t start, std::int64_t end) {
  while (start < end) {
    const std::int64_t edge = (start / setup_.interval_ns + 1) * setup_.interval_ns;
    const std::int64_t until = std::min(edge, end);
    count_interval(stats_.busy_by_interval, start, until - start);
    start = until;
  }
}

std::vector<cost::RankWork> Replica::typical_work() const {
  std::vector<cost::RankWork> work(ranks_.size());
  const auto count = static_cast<std::int64_t>(ranks_.size());
  const auto mean = [count](double sum, std::int64_t steps) {
    return steps == 0 ? 0
                      : static_cast<std::int64_t>(sum / static_cast<double>(steps * count) + 0.5);
  };
  const std::int64_t prefills = stats_.prefill_steps + stats_.mixed_steps;
  for (cost::RankWork& w : work) {
    if (stats_.decode_steps > 0) {
      w.decode_sequences = std::max<std::int64_t>(
          1, mean(static_cast<double>(stats_.decode_sequences), stats_.decode_steps));
      w.decode_tokens = w.decode_sequences * (1 + setup_.rules.speculation.draft_tokens);
      w.decode_context =
          std::max(w.decode_sequences, mean(stats_.decode_context, stats_.decode_steps));
      w.decode_context_windowed =
          setup_.rules.window
              ? std::min(w.decode_context, w.decode_sequences * *setup_.rules.window)
              : w.decode_context;
    } else if (prefills > 0) {
      w.prefill_tokens =
          std::max<std::int64_t>(1, mean(static_cast<double>(stats_.prefill_tokens), prefills));
      w.prefill_sequences = 1;
      w.prefill_pairs = attention_pairs(0, w.prefill_tokens, std::nullopt);
      w.prefill_pairs_windowed = attention_pairs(0, w.prefill_tokens, setup_.rules.window);
    }
  }
  return work;
}

}  // namespace racktwin::serve
