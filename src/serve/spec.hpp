// A serving deployment as plain data: pools of equal replicas, and the policies between
// them. What a scenario file says, resolved; nothing here decides anything.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "cost/operators.hpp"

namespace racktwin::serve {

// Multi-token prediction / draft model: `draft_tokens` guesses are verified per step.
struct Speculation {
  int draft_tokens = 0;  // 0 = off
  // acceptance[i]: chance that guess i + 1 is right when all before it were; size = draft_tokens.
  std::vector<double> acceptance;
  // Mean tokens per step: 1 + a1 + a1 a2 + ...
  double tokens_per_step() const;
  friend bool operator==(const Speculation&, const Speculation&) = default;
};

// Cache tiers below HBM. 0 bytes = absent. Bandwidths are per GPU of the replica.
struct KvTiers {
  Bytes host, nvme, remote;                                         // per replica
  BytesPerSecond host_bandwidth, nvme_bandwidth, remote_bandwidth;  // per replica
  Seconds host_latency, nvme_latency, remote_latency;
  friend bool operator==(const KvTiers&, const KvTiers&) = default;
};

enum class Role : std::uint8_t { mixed, prefill, decode };  // prefill + decode = disaggregated

struct Pool {
  std::string name = "serve";
  Role role = Role::mixed;
  int replicas = 1;
  cost::Parallelism parallelism;
  std::string engine = "trtllm-1.3";
  // Overrides of the engine's own values.
  std::optional<int> max_sequences;              // per attention rank
  std::optional<std::int64_t> max_batch_tokens;  // per attention rank
  std::optional<int> block_tokens;
  std::optional<double> memory_fraction;
  std::optional<std::int64_t> kv_blocks;  // per attention rank: measured on a real engine
  bool prefix_caching = true;
  Speculation speculation;
  KvTiers tiers;
  // Racks: replicas are packed rack by rack in order, never across NVLink domains unless one
  // replica is larger than a domain.
  friend bool operator==(const Pool&, const Pool&) = default;
};

// Which replica of a pool takes a request.
struct RouterSpec {
  std::string policy = "kv-aware";
  Seconds staleness;  // age of the load signals a router sees; 0 = live
  int replicas = 1;   // routers that share the pool, each blind to the others' latest choices
  double overlap_weight = 1;     // kv-aware: worth of a cached block against a new one
  double temperature = 0;        // kv-aware: soft-max over costs instead of the least
  double cache_threshold = 0.5;  // cache-aware: matched part of the prompt
  double balance_absolute = 32, balance_relative = 1.0001;  // cache-aware: when to balance
  friend bool operator==(const RouterSpec&, const RouterSpec&) = default;
};

// Hand-over from prefill to decode pools.
struct Disaggregation {
  // A decode replica prefills by itself when fewer than so many tokens are not cached there.
  std::int64_t local_prefill_below = 0;
  bool layerwise_overlap = false;  // KV of early layers travels while later ones compute
  bool prefer_domain = true;       // decode where the prefill's NVLink domain has room
  Seconds descriptor_cost;         // per transfer: hand-shake and descriptor list
  friend bool operator==(const Disaggregation&, const Disaggregation&) = default;
};

// Which GPUs a replica gets. A replica no larger than an NVLink domain lies inside one.
enum class Placement : std::uint8_t {
  spread,  // the replicas of every pool evenly over the domains: pools share racks
  packed,  // pool after pool, domain after domain
};

struct Deployment {
  Placement placement = Placement::spread;
  std::vector<Pool> pools;  // one mixed, or any number of prefill and decode
  RouterSpec router;
  RouterSpec decode_router{.policy = "least-loaded"};
  Disaggregation disaggregation;
  friend bool operator==(const Deployment&, const Deployment&) = default;
};

}  // namespace racktwin::serve
