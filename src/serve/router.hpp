// Which replica takes a request: the routing policies of the field, one interface.
//
// Observes: the request (never its output length) and a view of every candidate. Decides: an
// index into the views, or nothing (shed). Owns: its own memory. Draws: its own random stream.
// Promises: a candidate that accepts, if there is one; the same views and history, the same
// choice; with equal candidates, no candidate starves.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/id.hpp"
#include "base/time.hpp"
#include "serve/spec.hpp"
#include "workload/request.hpp"

namespace racktwin::serve {

// What a router knows of a replica.
struct ReplicaView {
  ReplicaId id;
  bool accepts = true;  // alive and not excluded
  // As of the last scrape (`as_of`); live when the staleness is zero.
  Instant as_of;
  std::int32_t waiting = 0, running = 0;
  // The router's own book, never stale, and blind to other routers of the pool.
  std::int32_t in_flight = 0;
  std::int64_t prefill_tokens = 0;  // placed and not prefilled yet
  std::int64_t kv_tokens = 0;       // prompts placed and not ended yet
  // Of this request: prompt tokens in the replica's cache, by its cache events.
  std::int64_t cached_tokens = 0;
};

class Router {
 public:
  virtual ~Router() = default;
  // `replicas` is not empty, in order of GPU, each id once; it may be a part of the pool, and
  // another part the next time.
  virtual std::optional<std::size_t> route(const workload::RequestView&,
                                           std::span<const ReplicaView> replicas) = 0;
};

// One row per policy: scenarios, help, documents and tests read this table.
struct RouterRow {
  std::string_view name, help;
  bool observes_cache;   // wants cached_tokens
  bool observes_gauges;  // wants waiting, running
  std::unique_ptr<Router> (*make)(const RouterSpec&, std::uint64_t seed, std::uint64_t index);
};
std::span<const RouterRow> router_table();
const RouterRow* router_row(std::string_view name);  // null when unknown
std::vector<std::string> router_names();

}  // namespace racktwin::serve
