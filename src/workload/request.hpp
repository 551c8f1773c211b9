// A request, as the client knows it and as the simulation knows it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/id.hpp"
#include "base/time.hpp"

namespace racktwin::workload {

// All that a router or an admission policy may see. The true output length is not here: a
// policy that peeks at it does not compile.
struct RequestView {
  RequestId id;
  Instant arrival;
  std::int64_t isl = 0;         // input sequence length, tokens, >= 1
  std::int64_t max_tokens = 0;  // the client's own limit on output
  std::optional<SessionId> session;
  std::uint8_t slo_class = 0;
  // Identity of the prompt, block by block: blocks[i] names tokens [0, (i+1) * block_tokens)
  // (a chained hash), so that equal ids mean equal prefixes. The last one may be partial.
  // Empty = nothing is known to be shared. Fewer than the prompt has (some traces round down)
  // = the rest is shared with nobody.
  std::span<const std::uint64_t> blocks;
  int block_tokens = 0;  // tokens per entry of `blocks`; 0 when there is none
};

struct Request {
  RequestId id;  // 0, 1, 2, ... in order of arrival, given by the source
  Instant arrival;
  std::int64_t isl = 0;
  std::int64_t osl = 0;  // output sequence length, tokens, >= 1: oracle, for the engine only
  std::int64_t max_tokens = 0;
  std::optional<SessionId> session;
  std::uint8_t slo_class = 0;
  int block_tokens = 0;
  std::vector<std::uint64_t> blocks;

  RequestView view() const {
    return {id, arrival, isl, max_tokens, session, slo_class, blocks, block_tokens};
  }
};

}  // namespace racktwin::workload
