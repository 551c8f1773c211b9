// One model replica: the engine's batching, its KV caches and its steps, as a state machine
// that is told the time. It schedules nothing and knows no other replica; what the outside
// must do comes back in an Outcome.
//
// A replica has `dp` attention ranks, each with its own sequences and cache; all ranks step
// together. At a step boundary `begin` forms the next batch and says when the outside must
// come back (`end`): after one step if a prompt is in it, otherwise after as many decode
// steps as nothing can change in (macro-step). Steps in between are made up by `catch_up`
// whenever somebody looks. Law: the same token times as one step at a time (`single_steps`).
//
// Batching (docs/models/serving.md): vLLM V1, TRT-LLM and SGLang differ in data (`Rules`).
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/histogram.hpp"
#include "base/rng.hpp"
#include "catalog/engine.hpp"
#include "cost/step_model.hpp"
#include "serve/active.hpp"
#include "serve/kv_cache.hpp"
#include "serve/kv_tiers.hpp"

namespace racktwin::serve {

// What differs between engines, and between pools of one engine.
struct Rules {
  bool mixed = true;             // prompts and decodes in one step; false: prompts go first, alone
  bool chunked_prefill = true;   // a prompt may be split over steps
  bool reserve_output = false;   // admission takes room for the longest output (no eviction)
  bool estimate_output = false;  // admission estimates it (SGLang's new-token ratio)
  bool preempt_least_done = false;       // victim: fewest tokens out (SGLang); else latest admitted
  int max_sequences = 256;               // per rank
  std::int64_t max_batch_tokens = 8192;  // per rank and step
  int block_tokens = 16;
  std::int64_t blocks = 0;             // per rank
  std::optional<std::int64_t> window;  // cost::attention_bound
  bool prefix_caching = true;
  Speculation speculation;
};
Rules rules_of(const catalog::Engine&, const Pool&);

// Query-key pairs of `tokens` queries after `before` cached tokens, each query seeing itself and
// what is before it, at most `bound` tokens.
std::int64_t attention_pairs(std::int64_t before, std::int64_t tokens,
                             std::optional<std::int64_t> bound);

struct StepTrace {  // one step, for the time-line view
  std::int64_t start_ns = 0, end_ns = 0, sequences = 0, prefill_tokens = 0;
};

// What happened inside steps, folded at once.
struct StepStats {
  std::int64_t steps = 0, mixed_steps = 0, prefill_steps = 0;
  std::int64_t prefill_tokens = 0, output_tokens = 0, sequences = 0;  // summed over steps
  std::int64_t preemptions = 0;
  std::int64_t reused_tokens = 0, prompt_tokens = 0;    // of prompts at admission
  std::int64_t reused_lower = 0;                        // of reused_tokens: from lower tiers
  Seconds compute, memory, communication, overhead;     // of one GPU
  std::int64_t decode_steps = 0, decode_sequences = 0;  // sequences summed over those steps
  double decode_context = 0;                            // tokens read, summed over them
  std::int64_t busy_ns = 0;
  Histogram itl, chunk;  // ns; itl per token, chunk per step of a sequence
  std::vector<std::int64_t> output_by_interval, busy_by_interval;  // when series are kept
  std::vector<StepTrace> traces;                                   // when asked for
};

class Replica {
 public:
  struct Outcome {                          // lists are appended to
    std::vector<ActiveIndex> finished;      // last token out
    std::vector<ActiveIndex> prefilled;     // Role::prefill only: to be handed over
    std::vector<ActiveIndex> first_tokens;  // of those prefilled here (router books)
    std::vector<std::pair<ActiveIndex, std::int64_t>> loads;  // call loaded() at that time
    std::vector<ActiveIndex> outgrown;  // alone on the rank and still too large: give up
  };
  struct Setup {
    Rules rules;
    bool prefill_only = false;
    int ranks = 1;
    const cost::StepModel* model = nullptr;  // borrowed
    ActiveTable* table = nullptr;            // borrowed
    KvTiers tiers;
    Bytes block_bytes;             // of one KV block, for the tiers
    bool single_steps = false;     // the plain way, one step per event
    std::int64_t interval_ns = 0;  // > 0: fill StepStats::..._by_interval
    std::size_t traced_steps = 0;  // keep so many StepTraces
    std::uint64_t seed = 1;
  };
  explicit Replica(const Setup&);

  // Nobody else's step can make this prompt fit, with its whole output.
  bool can_ever_hold(const Active&) const;

  // A new prompt to wait for admission on the rank with least work before it.
  void enqueue(ActiveIndex);
  // Hand-over, before the bytes travel: takes a slot and blocks on the emptiest rank that has
  // them. False changes nothing.
  bool reserve(ActiveIndex);
  bool has_room(const Active&) const;  // reserve() would succeed
  // Tokens that reserve() found here already, hence need not travel.
  std::int64_t reserved_tokens_cached(ActiveIndex i) const { return (*setup_.table)[i].computed; }
  void join(ActiveIndex);            // the bytes are here: decode from the next boundary
  void loaded(ActiveIndex);          // its lower-tier blocks have come up
  void release_source(ActiveIndex);  // prefill side: the bytes have left

  bool busy() const { return !pending_.empty(); }
  // At a boundary: forms a batch and starts it. When `end` is due, or nothing if idle.
  std::optional<std::int64_t> begin(std::int64_t now, Outcome&);
  // New work came in the middle of a macro-step: it is cut after the step under way.
  struct Cut {
    bool at_boundary = false;         // no step is under way at `now`: call begin(), not end()
    std::optional<std::int64_t> end;  // due sooner than begin() said
  };
  Cut interrupt(std::int64_t now);
  void end(std::int64_t now, Outcome&);
  void catch_up(std::int64_t now);  // makes up the inner steps that ended at or before `now`

  // Views; call catch_up first where noted.
  std::int32_t waiting() const { return waiting_; }
  std::int32_t running() const { return running_; }
  double kv_used() const;                         // after catch_up
  std::int64_t cached_tokens(ActiveIndex) const;  // best rank; after catch_up
  std::int64_t blocks_used() const;               // after catch_up
  std::int64_t blocks_total() const { return setup_.rules.blocks * setup_.ranks; }
  int free_slots() const { return setup_.ranks * setup_.rules.max_sequences - running_; }
  const StepStats& stats() const { return stats_; }
  std::int64_t last_step_ns() const { return last_step_ns_; }  // duration of the latest one
  const KvTierStack& tiers() const { return tier_stack_; }
  // Work of a mean decode (or, without decodes, mean prefill) step, for explain().
  std::vector<cost::RankWork> typical_work() const;

 private:
  static constexpr int fixed_shift = 20, request_bits = 26;
  struct Rank {
    explicit Rank(std::int64_t blocks) : cache(blocks) {}
    KvCache cache;
    std::deque<ActiveIndex> waiting;
    std::vector<ActiveIndex> prefilling;              // admitted, not loading, in order
    ActiveIndex first = no_active, last = no_active;  // running, in order of admission
    std::int64_t pending_prefill = 0;                 // tokens waiting and under way
    std::int64_t output_left = 0;                     // SGLang's estimate base
    std::int64_t promised = 0;                        // blocks that a look-ahead has counted on
    std::vector<std::int32_t> growth;  // [step mod block]: sequences that need a block then
  };
  // What every step walks over, an array per quantity, indexed by rank: sums over its decoding
  // sequences, in fixed point where they are tokens; context as of before the step.
  struct Sums {
    std::vector<std::int64_t> context, rate, windowed, rate_in_window;
    std::vector<std::int32_t> decoding, running;
  };
  enum class Timer : std::uint8_t { leave_window, finish, grow };
  struct TimerEntry {
    std::uint64_t key;  // step in the high bits, request in the low 26
    std::uint32_t epoch;
    Timer kind;
    friend bool operator>(const TimerEntry& a, const TimerEntry& b) {
      return a.key != b.key ? a.key > b.key : a.kind > b.kind;
    }
  };
  struct Chunk {
    ActiveIndex request;
    std::int32_t tokens;
  };
  struct PendingStep {
    std::int64_t end;
    cost::StepCost cost;
  };

  ActiveTable& table() const { return *setup_.table; }
  Active& at(ActiveIndex i) const { return (*setup_.table)[i]; }

  // replica.cpp: running list, decoding sums, caches.
  void append_running(Rank&, ActiveIndex);
  void remove_running(Rank&, ActiveIndex);
  void start_decoding(ActiveIndex);
  void stop_decoding(ActiveIndex);  // leaves the sums; `generated` is exact afterwards
  void set_timer(std::vector<TimerEntry>&, std::int64_t step, ActiveIndex, Timer);
  void set_growth_timer(ActiveIndex);
  bool stale(const TimerEntry&) const;
  std::int64_t draw_steps(const Active&, std::int64_t tokens);
  void publish_prompt(ActiveIndex);
  void release(ActiveIndex);
  void finish(ActiveIndex, std::int64_t now, Outcome&);
  std::int64_t blocks_for(std::int64_t tokens) const;
  std::int64_t admission_blocks(const Active&) const;
  std::size_t rank_with_room(const Active&) const;
  void sink_evicted(Rank&);

  // replica_batch.cpp: what runs in the next step.
  bool grow_sequences(Outcome&);  // blocks for the step to come; true if it preempted
  bool make_room(Rank&, std::int64_t blocks, Outcome&);  // preempts; false: the rank is empty
  void grow_by_timer(Outcome&);
  void take_out(Rank&, ActiveIndex), preempt(Rank&, ActiveIndex);
  void give_up(Rank&, ActiveIndex, Outcome&);
  ActiveIndex victim(const Rank&) const;
  void form_chunks(std::int64_t now, Outcome&, bool admit_new);
  bool admit(Rank&, ActiveIndex, std::int64_t now, Outcome&);
  bool estimate_allows(const Rank&, const Active&) const;
  void add_chunk(ActiveIndex, std::int64_t& budget);
  void describe_work();
  void describe_context(std::size_t rank, std::int64_t ahead);
  void look_ahead(std::int64_t now);
  std::int64_t steps_until_change() const;

  // replica_step.cpp: what a finished step did.
  void account(const PendingStep&);
  void finish_step(const PendingStep&, Outcome*);
  void finish_decodes(std::int64_t end);
  void fire_timers(std::int64_t end, Outcome&);
  void finish_chunks(std::int64_t end, Outcome&);
  void start_inner_step();
  void count_interval(std::vector<std::int64_t>&, std::int64_t at, std::int64_t amount) const;
  void count_busy(std::int64_t start, std::int64_t end);

  Setup setup_;
  std::vector<Rank> ranks_;
  Sums sums_;
  KvTierStack tier_stack_;
  Rng rng_;
  StepStats stats_;
  std::int64_t step_ = 0;        // decode steps begun so far: the index of the next one
  std::int64_t step_start_ = 0;  // when pending_.front() began
  std::int64_t last_decode_end_ = 0;
  std::int64_t last_step_ns_ = 0;
  double new_token_ratio_ = 0.7;
  std::int32_t waiting_ = 0, running_ = 0, decoding_ = 0, prefilling_ = 0;
  std::int64_t emitted_ = 0;  // fixed point: part of a token carried to the next step
  bool started_ = false;      // the first pending step has taken its blocks
  bool preempted_ = false;    // at the last boundary: nothing was admitted there
  std::vector<TimerEntry> timers_, growth_timers_;  // heaps, soonest first
  std::vector<ActiveIndex> joining_;                // start decoding at the next boundary
  std::vector<ActiveIndex> fresh_;                  // decoding, without a step done yet
  std::vector<Chunk> chunks_;                       // of the step under way
  bool decodes_run_ = false;                        // in the step under way
  std::vector<cost::RankWork> work_;
  std::vector<std::uint16_t> prompt_ranks_;  // that have prompt tokens in work_
  std::deque<PendingStep> pending_;          // steps under way and looked ahead
  std::size_t horizon_ = 8;                  // how far to look ahead: adapts to how often it is cut
};

}  // namespace racktwin::serve
