#include "workload/generator.hpp"

#include <fmt/format.h>

#include <cmath>

#include "base/check.hpp"
#include "workload/samplers.hpp"

namespace racktwin::workload {
namespace {

Error refuse(std::string_view where, std::string message) {
  return {Error::Code::invalid_input, std::move(message), std::string(where)};
}

bool in_range(double value, double low, double high) {
  return std::isfinite(value) && value >= low && value <= high;
}

Result<Done> check_rate(PerSecond rate, const Diurnal& diurnal, std::string_view where) {
  if (!in_range(rate.in(unit::per_second), 0, 1e9))
    return refuse(where, fmt::format("the rate {} /s is not between 0 and 1e9 /s",
                                     rate.in(unit::per_second)));
  if (!in_range(diurnal.swing, 0, 1))
    return refuse(where, fmt::format("the diurnal swing {} is not between 0 and 1", diurnal.swing));
  if (!in_range(diurnal.period.in(unit::sec), 1, 1e9))
    return refuse(where, "the diurnal period is not between 1 s and 1e9 s");
  if (!in_range(diurnal.peak.in(unit::sec), -1e9, 1e9))
    return refuse(where, "the diurnal peak is not between -1e9 s and 1e9 s");
  return Done{};
}

Result<Done> check_cv(double cv, std::string_view where) {
  if (!in_range(cv, 0, 1000))
    return refuse(where, fmt::format("the cv {} of the gaps is not between 0 and 1000", cv));
  return Done{};
}

Result<Done> check(const Client& client) {
  const std::string where = fmt::format("client \"{}\"", client.name);
  if (!in_range(client.share, 0, 1e12))
    return refuse(where, fmt::format("the share {} is not between 0 and 1e12", client.share));
  RACKTWIN_TRY_DONE(check_cv(client.cv, where));
  RACKTWIN_TRY_DONE(workload::check(client.isl, where + ": isl"));
  RACKTWIN_TRY_DONE(workload::check(client.osl, where + ": osl"));
  for (const Client::Window& window : client.windows) {
    if (!in_range(window.rate, 0, 1e12))
      return refuse(where,
                    fmt::format("the rate {} of a window is not between 0 and 1e12", window.rate));
    RACKTWIN_TRY_DONE(check_cv(window.cv, where));
  }
  if (!in_range(client.window.in(unit::sec), 1e-3, 1e9) ||
      !in_range(client.period.in(unit::sec), 1e-3, 1e9))
    return refuse(where, "a window or period is not between 1 ms and 1e9 s");
  for (const auto& [isl, osl] : client.periods) {
    RACKTWIN_TRY_DONE(workload::check(isl, where + ": isl"));
    RACKTWIN_TRY_DONE(workload::check(osl, where + ": osl"));
  }
  return Done{};
}

Result<Done> check_load(const OpenLoop& load) {
  RACKTWIN_TRY_DONE(check_rate(load.rate, load.diurnal, "open loop"));
  if (load.clients.empty()) return refuse("open loop", "has no client; one at least is needed");
  for (const Client& client : load.clients) RACKTWIN_TRY_DONE(check(client));
  return Done{};
}

Result<Done> check_load(const ClosedLoop& load) {
  if (load.concurrency < 1 || load.concurrency > 1000000000)
    return refuse("closed loop",
                  fmt::format("the concurrency {} is not between 1 and 1e9", load.concurrency));
  if (load.requests < 0)
    return refuse("closed loop", fmt::format("{} requests are not >= 0", load.requests));
  RACKTWIN_TRY_DONE(check(load.isl, "closed loop: isl"));
  return check(load.osl, "closed loop: osl");
}

Result<Done> check_load(const Burst& load) {
  if (load.requests < 1 || load.requests > 4000000000)
    return refuse("burst", fmt::format("{} requests are not between 1 and 4e9", load.requests));
  RACKTWIN_TRY_DONE(check(load.isl, "burst: isl"));
  return check(load.osl, "burst: osl");
}

Result<Done> check_load(const Sessions& load) {
  constexpr std::string_view where = "sessions";
  RACKTWIN_TRY_DONE(check_rate(load.starts.rate, load.starts.diurnal, where));
  RACKTWIN_TRY_DONE(check_cv(load.starts.cv, where));
  if (load.concurrency < 0 || load.concurrency > 1000000000)
    return refuse(where,
                  fmt::format("the concurrency {} is not between 0 and 1e9", load.concurrency));
  const std::pair<const Lengths*, std::string_view> parts[] = {
      {&load.turns, "turns"},
      {&load.first_prompt, "first_prompt"},
      {&load.new_tokens, "new_tokens"},
      {&load.osl, "osl"},
      {&load.think_ms, "think"},
      {&load.parallel_agents, "parallel_agents"},
      {&load.sub_agent_calls, "sub_agent_calls"},
      {&load.agent_think_ms, "agent_think"}};
  for (const auto& [lengths, name] : parts)
    RACKTWIN_TRY_DONE(check(*lengths, fmt::format("sessions: {}", name)));
  if (load.system_prompt < 0 || load.system_prompt > load.max_context)
    return refuse(where, fmt::format("the system prompt of {} tokens is not between 0 and the "
                                     "largest context, {}",
                                     load.system_prompt, load.max_context));
  if (!in_range(load.sub_agents, 0, 1))
    return refuse(where, fmt::format("sub_agents {} is a chance, from 0 to 1", load.sub_agents));
  if (load.max_context < 2)
    return refuse(where,
                  fmt::format("max_context {} leaves no room; 2 at least", load.max_context));
  if (load.block_tokens < 0)
    return refuse(where, fmt::format("block_tokens {} is not >= 0", load.block_tokens));
  return Done{};
}

}  // namespace

Result<Done> check(const Load& load) {
  return std::visit([](const auto& kind) { return check_load(kind); }, load);
}

std::unique_ptr<Source> generate(const Load& load, Seconds horizon, std::uint64_t seed) {
  RACKTWIN_CHECK(check(load).ok());
  RACKTWIN_CHECK(horizon.in(unit::sec) >= 0);
  struct Visitor {
    Seconds horizon;
    std::uint64_t seed;
    std::unique_ptr<Source> operator()(const OpenLoop& l) { return open_loop(l, horizon, seed); }
    std::unique_ptr<Source> operator()(const ClosedLoop& l) {
      return closed_loop(l, horizon, seed);
    }
    std::unique_ptr<Source> operator()(const Burst& l) { return burst(l, horizon, seed); }
    std::unique_ptr<Source> operator()(const Sessions& l) { return sessions(l, horizon, seed); }
  };
  return std::visit(Visitor{horizon, seed}, load);
}

}  // namespace racktwin::workload
