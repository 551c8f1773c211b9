#include "sim/scenario_check.hpp"

#include <fmt/format.h>

#include <cmath>
#include <set>

#include "base/text.hpp"
#include "serve/router.hpp"

namespace racktwin::sim::detail {
namespace {

// The values of `name(item)` must differ.
template <class Items>
void check_unique(yaml::Section& at, std::string_view key, const Items& items) {
  std::set<std::string> seen;
  std::vector<yaml::Section> sections = at.list(key);
  for (std::size_t i = 0; i < items.size() && i < sections.size(); ++i)
    if (!seen.insert(items[i].name).second)
      sections[i].fail("name", fmt::format("two of the {} are called \"{}\"", key, items[i].name));
}

void check_pools(yaml::Section& at, const Scenario& s) {
  const auto& pools = s.deployment.pools;
  at.require("pools");
  if (pools.empty()) at.fail("pools", "at least one pool is needed, found none");
  std::int64_t mixed = 0, prefill = 0, decode = 0, gpus = 0;
  for (const serve::Pool& pool : pools) {
    mixed += pool.role == serve::Role::mixed;
    prefill += pool.role == serve::Role::prefill;
    decode += pool.role == serve::Role::decode;
    gpus += std::int64_t{pool.parallelism.gpus()} * pool.replicas;
  }
  const auto count =
      fmt::format("found {} mixed, {} prefill and {} decode", mixed, prefill, decode);
  if (mixed > 0 && prefill + decode > 0)
    at.fail("pools", "mixed pools do not stand beside prefill or decode pools; " + count);
  if (mixed == 0 && (prefill == 0 || decode == 0))
    at.fail("pools", "a disaggregated deployment needs prefill and decode pools; " + count);
  if (gpus > gpus_most)
    at.fail("pools",
            fmt::format("the pools take {} GPUs; at most {} are simulated", gpus, gpus_most));
  check_unique(at, "pools", pools);
}

// A tier that can hold something must be reachable.
void check_tier(yaml::Section& at, std::string_view name, Bytes size, BytesPerSecond bandwidth) {
  if (size > Bytes{} && !(bandwidth > BytesPerSecond{}))
    at.fail(name, fmt::format("a tier of {} needs {}_bandwidth > 0", format_quantity(size), name));
}

}  // namespace

void check(yaml::Section& at, const serve::Speculation& s) {
  if (s.draft_tokens > 0) at.require("acceptance");
  if (std::ssize(s.acceptance) != s.draft_tokens)
    at.fail("acceptance", fmt::format("one chance per draft token: {} are needed, found {}",
                                      s.draft_tokens, s.acceptance.size()));
}

void check(yaml::Section& at, const serve::KvTiers& t) {
  check_tier(at, "host", t.host, t.host_bandwidth);
  check_tier(at, "nvme", t.nvme, t.nvme_bandwidth);
  check_tier(at, "remote", t.remote, t.remote_bandwidth);
}

void check(yaml::Section& at, const serve::Pool& pool) {
  const cost::Parallelism& p = pool.parallelism;
  if (p.tp * p.dp % p.ep != 0)
    at.fail("ep", fmt::format("ep must divide tp * dp = {}, found {}", p.tp * p.dp, p.ep));
  if (pool.name.empty()) at.fail("name", "a pool needs a name");
}

void check(yaml::Section& at, const serve::RouterSpec& router) {
  if (!serve::router_row(router.policy))
    at.fail("policy", unknown_name("router policy", router.policy, serve::router_names()));
}

void check(yaml::Section& at, const workload::Lengths& l) {
  using Kind = workload::Lengths::Kind;
  if (l.kind == Kind::fixed && l.mean != std::floor(l.mean))
    at.fail("mean", fmt::format("a fixed length is a whole number, found {}", l.mean));
  if (l.kind == Kind::uniform) {
    at.require("min");
    at.require("max");
  }
  if (l.min > l.max)
    at.fail("min", fmt::format("min must not be above max = {}, found {}", l.max, l.min));
  if (l.kind != Kind::empirical) return;
  at.require("values");
  at.require("weights");
  double weight = 0;
  for (std::size_t i = 0; i < l.table.size(); ++i) {
    weight += l.table[i].second;
    if (i > 0 && l.table[i].first <= l.table[i - 1].first)
      at.fail("values", fmt::format("the values must rise; {} stands after {}", l.table[i].first,
                                    l.table[i - 1].first));
  }
  if (!(weight > 0)) at.fail("weights", "at least one weight must be above 0");
}

void check(yaml::Section& at, const workload::OpenLoop& load) {
  if (load.clients.empty()) at.fail("clients", "at least one client is needed, found none");
}

void check(yaml::Section& at, const workload::ClosedLoop& load) {
  if (load.requests > 0 && load.requests < load.concurrency)
    at.fail("requests", fmt::format("{} requests never reach the concurrency of {}", load.requests,
                                    load.concurrency));
}

// Whatever else the generators ask for.
void check(yaml::Section& at, const workload::Load& load) {
  const auto sound = workload::check(load);
  if (!sound.ok()) at.fail({}, sound.error().message);
}

void check(yaml::Section& at, const Slo& slo) {
  if (slo.name.empty()) at.fail("name", "an objective needs a name");
}

void check(yaml::Section& at, const Scenario& s) {
  if (s.warmup >= s.horizon)
    at.fail("warmup", fmt::format("the warm-up must end before the horizon of {}, found {}",
                                  format_quantity(s.horizon), format_quantity(s.warmup)));
  if (s.horizon / s.series_interval > double(intervals_most))
    at.fail("series_interval",
            fmt::format("the horizon of {} in steps of {} is more than {} samples",
                        format_quantity(s.horizon), format_quantity(s.series_interval),
                        intervals_most));
  if (s.slos.empty() || s.slos.size() > 255)
    at.fail("slos", fmt::format("1 to 255 objectives, found {}", s.slos.size()));
  check_unique(at, "slos", s.slos);
  check_pools(at, s);
}

}  // namespace racktwin::sim::detail
