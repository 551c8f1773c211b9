// The requests that are in the system, as flat records indexed by a small number, so that a
// day of traffic needs memory only for what is in flight.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "workload/request.hpp"

namespace racktwin::serve {

using ActiveIndex = std::uint32_t;
inline constexpr ActiveIndex no_active = UINT32_MAX;
inline constexpr std::uint32_t no_replica = UINT32_MAX;
inline constexpr std::int64_t never = -1;  // of a stamp in nanoseconds

enum class Stage : std::uint8_t {
  waiting,     // in a rank's queue
  loading,     // admitted; its prefix comes up from a lower cache tier
  prefilling,  // admitted; prompt tokens are being computed
  decoding,    // one step, one token (or more, with speculation)
  held,        // prefilled; its KV waits for a decode slot or is on its way
};

// A prompt's identity, kept only where something may be shared.
struct Prompt {
  std::vector<std::uint64_t> blocks;  // as the source gave them
  int block_tokens = 0;
  std::vector<std::uint64_t> names;  // the same for an engine's block size, whole blocks only
  int name_tokens = 0;
  std::vector<std::uint32_t> slots;         // references held in the cache of `replica`
  std::vector<std::uint32_t> source_slots;  // and, during a hand-over, in the prefill replica's
};

struct Active {
  RequestId id;
  std::uint32_t session = 0;
  bool live = false, has_session = false, local_prefill = false;
  std::uint8_t slo_class = 0;
  Stage stage = Stage::waiting;
  std::int32_t isl = 0, osl = 0, max_tokens = 0;

  // Nanoseconds on the simulated clock; `never` until it happens.
  std::int64_t arrival = 0, scheduled = never, prefilled = never, slot = never, transferred = never,
               first_token = never, last_token = never;

  std::uint32_t prefill_replica = no_replica, replica = no_replica;  // where it is now
  std::uint16_t rank = 0, prefill_rank = 0;
  std::int32_t prompt = 0;     // tokens to compute before decoding goes on: isl + regenerated
  std::int32_t computed = 0;   // of them, with what was found in a cache
  std::int32_t generated = 0;  // output tokens so far, exact when not decoding
  std::int32_t reused = 0;     // prompt tokens found in a cache at first admission
  std::int32_t private_blocks = 0, source_private_blocks = 0;
  std::int32_t preemptions = 0;
  std::uint32_t prompt_index = UINT32_MAX;  // into the table's prompts
  // Which router replica placed it, where, and what stands in its book for it.
  std::uint16_t router = 0, decode_router = 0;
  std::int32_t booked_prefill = 0;

  // While decoding: context(step) = base_context + rate * (step - join_step), in fixed point.
  std::int64_t join_step = 0, rate = 0;
  std::int32_t base_context = 0;
  std::int32_t allocated = 0;  // tokens that its blocks hold, with speculation
  std::uint32_t epoch = 0;     // makes entries of earlier decodings stale
  bool in_window = false;      // context still below the attention bound
  ActiveIndex previous = no_active, next = no_active;  // running list of the rank
};

class ActiveTable {
 public:
  ActiveIndex add(workload::Request&& request);
  void remove(ActiveIndex);
  Active& operator[](ActiveIndex i) { return rows_[i]; }
  const Active& operator[](ActiveIndex i) const { return rows_[i]; }
  // The prompt of a request that has one; null otherwise.
  Prompt* prompt(const Active& a) {
    return a.prompt_index == UINT32_MAX ? nullptr : &prompts_[a.prompt_index];
  }
  // Names of the prompt's whole blocks for an engine's block size, made once per size. Empty
  // where nothing is known or the sizes do not divide one another.
  const std::vector<std::uint64_t>& names(const Active&, int block_tokens);

  std::size_t size() const { return rows_.size() - free_.size(); }  // live ones
  std::size_t rows() const { return rows_.size(); }                 // for walks: see `live`

 private:
  std::vector<Active> rows_;
  std::vector<ActiveIndex> free_;
  std::deque<Prompt> prompts_;  // a deque: references stay good while it grows
  std::vector<std::uint32_t> free_prompts_;
};

}  // namespace racktwin::serve
