// Building the system, taking requests in, and driving replicas through their steps.
#include "serve/cluster.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace racktwin::serve {

Cluster::Cluster(des::Simulation& simulation, net::Fabric& fabric, const Setup& setup,
                 Observer& observer)
    : simulation_(simulation), fabric_(fabric), setup_(setup), observer_(observer) {
  std::size_t place = 0;
  for (std::size_t p = 0; p < setup_.pools.size(); ++p) {
    const PoolSetup& pool = setup_.pools[p];
    const cost::Parallelism& shape = pool.pool.parallelism;
    Replica::Setup replica{.rules = pool.rules,
                           .prefill_only = pool.pool.role == Role::prefill,
                           .ranks = shape.dp,
                           .model = pool.model,
                           .table = &table_,
                           .tiers = pool.pool.tiers,
                           .block_bytes = pool.block_bytes,
                           .single_steps = setup_.single_steps,
                           .interval_ns = setup_.interval_ns,
                           .seed = setup_.seed};
    disaggregated_ = disaggregated_ || pool.pool.role == Role::prefill;
    for (int j = 0; j < pool.pool.replicas; ++j) {
      replica.traced_steps = j == 0 ? setup_.traced_steps : 0;
      Seat& seat = *seats_.emplace_back(std::make_unique<Seat>(replica));
      seat.pool = p;
      seat.first = setup_.first_gpus[place++];
      seat.rank_gpus = shape.tp * shape.pp;
      seat.group = pool.pool.role == Role::decode ? decode : intake;
      groups_[seat.group].members.push_back(static_cast<std::uint32_t>(seats_.size() - 1));
    }
  }
  add_group(intake, setup_.router, setup_.seed);
  add_group(decode, setup_.decode_router, setup_.seed + 1);
  near_.resize(static_cast<std::size_t>(setup_.ports.gpus / setup_.ports.domain) + 1);
  const auto& members = groups_[decode].members;
  for (std::size_t k = 0; k < members.size(); ++k) {
    auto& range =
        near_[seats_[members[k]]->first.index / static_cast<std::uint32_t>(setup_.ports.domain)];
    if (range.second++ == 0) range.first = k;
  }
}

void Cluster::add_group(std::size_t g, const RouterSpec& spec, std::uint64_t seed) {
  Group& group = groups_[g];
  group.spec = spec;
  group.row = router_row(spec.policy);
  RACKTWIN_CHECK(group.row != nullptr && spec.replicas >= 1);
  std::stable_sort(
      group.members.begin(), group.members.end(),
      [&](std::uint32_t a, std::uint32_t b) { return seats_[a]->first < seats_[b]->first; });
  for (const std::uint32_t s : group.members)
    group.one_pool = group.one_pool && seats_[s]->pool == seats_[group.members.front()]->pool;
  for (int q = 0; q < spec.replicas; ++q) {
    group.routers.push_back(group.row->make(spec, seed, static_cast<std::uint64_t>(q)));
    auto& views = group.views.emplace_back();
    for (std::size_t k = 0; k < group.members.size(); ++k) {
      views.push_back({.id = ReplicaId{group.members[k]}});
      seats_[group.members[k]]->view = k;
    }
  }
}

void Cluster::scrape(std::uint64_t g) {
  Group& group = groups_[g];
  for (auto& views : group.views)
    for (std::size_t k = 0; k < views.size(); ++k) {
      const Replica& replica = seats_[group.members[k]]->replica;
      views[k].as_of = simulation_.now();
      views[k].waiting = replica.waiting();
      views[k].running = replica.running();
    }
  // Nothing to see, nothing to look for: submit() starts the clock again.
  if (in_system() > 0)
    simulation_.after(group.spec.staleness, des::Phase::telemetry,
                      des::bind<&Cluster::scrape>(*this, g));
  else
    group.scraping = false;
}

void Cluster::refresh(std::uint32_t s) {
  const Seat& seat = *seats_[s];
  Group& group = groups_[seat.group];
  const bool room = seat.group == intake || seat.replica.free_slots() > 0;
  for (auto& views : group.views) {
    ReplicaView& view = views[seat.view];
    view.accepts = room;
    if (group.spec.staleness > Seconds{}) continue;
    view.as_of = simulation_.now();
    view.waiting = seat.replica.waiting();
    view.running = seat.replica.running();
  }
}

workload::RequestView Cluster::view_of(const Active& a) {
  workload::RequestView view{.id = a.id,
                             .arrival = Instant::at_ns(a.arrival),
                             .isl = a.isl,
                             .max_tokens = a.max_tokens,
                             .slo_class = a.slo_class};
  if (a.has_session) view.session = SessionId{a.session};
  if (const Prompt* prompt = table_.prompt(a)) {
    view.blocks = prompt->blocks;
    view.block_tokens = prompt->block_tokens;
  }
  return view;
}

// The router's choice among `count` members from `first` on.
std::optional<std::uint32_t> Cluster::choose(std::size_t g, ActiveIndex i, std::size_t first,
                                             std::size_t count) {
  Group& group = groups_[g];
  Active& a = table_[i];
  const std::size_t q = a.id.index % group.routers.size();
  const std::span<ReplicaView> views = std::span(group.views[q]).subspan(first, count);
  if (group.row->observes_cache && table_.prompt(a) != nullptr) {
    for (ReplicaView& view : views) {
      Replica& replica = seats_[view.id.index]->replica;
      replica.catch_up(simulation_.now().ns());
      view.cached_tokens = std::min<std::int64_t>(replica.cached_tokens(i), a.isl - 1);
    }
  } else if (group.row->observes_cache && group.had_prompts) {
    for (ReplicaView& view : views) view.cached_tokens = 0;
  }
  group.had_prompts = group.had_prompts || table_.prompt(a) != nullptr;
  std::vector<ReplicaView*> too_small;  // of pools that can never hold it
  if (!group.one_pool)
    for (ReplicaView& view : views)
      if (view.accepts && !seats_[view.id.index]->replica.can_ever_hold(a)) {
        view.accepts = false;
        too_small.push_back(&view);
      }
  const auto choice = group.routers[q]->route(view_of(a), views);
  for (ReplicaView* view : too_small) view->accepts = true;
  if (!choice) return std::nullopt;
  a.router = static_cast<std::uint16_t>(q);
  return views[*choice].id.index;
}

void Cluster::book(std::uint32_t s, ActiveIndex i, std::int64_t prefill_tokens) {
  Active& a = table_[i];
  const Seat& seat = *seats_[s];
  ReplicaView& view = groups_[seat.group].views[a.router][seat.view];
  a.replica = s;
  a.booked_prefill = static_cast<std::int32_t>(prefill_tokens);
  ++view.in_flight;
  view.prefill_tokens += prefill_tokens;
  view.kv_tokens += a.isl;
}

void Cluster::unbook_prefill(ActiveIndex i) {
  Active& a = table_[i];
  const Seat& seat = *seats_[a.replica];
  groups_[seat.group].views[a.router][seat.view].prefill_tokens -= a.booked_prefill;
  a.booked_prefill = 0;
}

void Cluster::unbook(ActiveIndex i) {
  unbook_prefill(i);
  const Active& a = table_[i];
  const Seat& seat = *seats_[a.replica];
  ReplicaView& view = groups_[seat.group].views[a.router][seat.view];
  --view.in_flight;
  view.kv_tokens -= a.isl;
}

void Cluster::submit(workload::Request&& request) {
  RACKTWIN_CHECK(request.isl >= 1 && request.osl >= 1);
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    Group& group = groups_[g];
    if (group.scraping || !(group.spec.staleness > Seconds{}) || group.members.empty()) continue;
    group.scraping = true;
    simulation_.after(group.spec.staleness, des::Phase::telemetry,
                      des::bind<&Cluster::scrape>(*this, g));
  }
  const ActiveIndex i = table_.add(std::move(request));
  const Active& a = table_[i];
  if (setup_.max_position > 0 && std::int64_t{a.isl} + a.max_tokens > setup_.max_position)
    return retire(i, End::shed, "longer than the model's context");
  for (const Group& group : groups_)
    if (!group.members.empty() && !holds(group, a))
      return retire(i, End::shed, "larger than the KV cache of a rank");
  const auto seat = place_request(i);
  if (!seat) return retire(i, End::shed, "no replica accepts requests");
  seats_[*seat]->replica.catch_up(simulation_.now().ns());
  const std::int64_t cached = seats_[*seat]->replica.cached_tokens(i);
  book(*seat, i, std::max<std::int64_t>(a.isl - cached, 1));
  seats_[*seat]->replica.enqueue(i);
  wake(*seat);
  refresh(*seat);
}

// Whether some pool of the group can hold it. Replicas of a pool stand together or in turns:
// all are asked only where there is more than one shape.
bool Cluster::holds(const Group& group, const Active& a) const {
  const auto can = [&](std::uint32_t s) { return seats_[s]->replica.can_ever_hold(a); };
  if (group.one_pool) return can(group.members.front());
  return std::any_of(group.members.begin(), group.members.end(), can);
}

// Conditional local prefill: a prompt that a decode replica has nearly all of goes there.
std::optional<std::uint32_t> Cluster::place_request(ActiveIndex i) {
  const std::int64_t below = setup_.disaggregation.local_prefill_below;
  if (disaggregated_ && below > 0) {
    const auto seat = choose(decode, i, 0, groups_[decode].members.size());
    if (seat) {
      seats_[*seat]->replica.catch_up(simulation_.now().ns());
      if (table_[i].isl - seats_[*seat]->replica.cached_tokens(i) < below) {
        table_[i].local_prefill = true;
        return seat;
      }
    }
  }
  return choose(intake, i, 0, groups_[intake].members.size());
}

void Cluster::due_begin(std::uint32_t s) {
  Seat& seat = *seats_[s];
  if (seat.begin_due) return;
  seat.begin_due = true;
  simulation_.at(simulation_.now(), des::Phase::decision, des::bind<&Cluster::on_begin>(*this, s));
}

// New work has come to a replica: it sees it at its next step boundary.
void Cluster::wake(std::uint32_t s) {
  Seat& seat = *seats_[s];
  if (!seat.replica.busy()) return due_begin(s);
  const Replica::Cut cut = seat.replica.interrupt(simulation_.now().ns());
  if (!cut.at_boundary && !cut.end) return;
  simulation_.cancel(seat.end);
  seat.end = {};
  if (cut.at_boundary) return due_begin(s);
  seat.end = simulation_.at(Instant::at_ns(*cut.end), des::Phase::completion,
                            des::bind<&Cluster::on_end>(*this, s));
}

void Cluster::on_begin(std::uint64_t s) {
  Seat& seat = *seats_[s];
  seat.begin_due = false;
  Replica::Outcome outcome;
  const auto end = seat.replica.begin(simulation_.now().ns(), outcome);
  if (end)
    seat.end = simulation_.at(Instant::at_ns(*end), des::Phase::completion,
                              des::bind<&Cluster::on_end>(*this, s));
  apply(static_cast<std::uint32_t>(s), outcome);
}

void Cluster::on_end(std::uint64_t s) {
  Seat& seat = *seats_[s];
  seat.end = {};
  ended_.emplace_back(static_cast<std::uint32_t>(s), Replica::Outcome{});
  seat.replica.end(simulation_.now().ns(), ended_.back().second);
  if (simulation_.more_now(des::Phase::completion)) return;
  std::sort(ended_.begin(), ended_.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  std::swap(ended_, settled_);
  for (const auto& [seat_ended, outcome] : settled_) apply(seat_ended, outcome);
  // The next batch waits for what else comes at this instant, if anything does.
  for (const auto& [seat_ended, outcome] : settled_)
    if (simulation_.quiet())
      on_begin(seat_ended);
    else
      due_begin(seat_ended);
  settled_.clear();
}

void Cluster::apply(std::uint32_t s, const Replica::Outcome& outcome) {
  for (const ActiveIndex i : outcome.first_tokens) unbook_prefill(i);
  for (const auto& [i, ready] : outcome.loads)
    simulation_.at(Instant::at_ns(ready), des::Phase::transfer,
                   des::bind<&Cluster::on_loaded>(*this, i));
  for (const ActiveIndex i : outcome.finished) retire(i, End::completed, {});
  // Found out while a batch was formed, told a moment later: what follows from it comes after
  // every batch of this instant, in whichever order they were formed.
  for (const ActiveIndex i : outcome.outgrown)
    simulation_.after(1 * unit::ns, des::Phase::transfer,
                      des::bind<&Cluster::on_outgrown>(*this, i));
  for (const ActiveIndex i : outcome.prefilled) hand_over(i);
  refresh(s);
  if (seats_[s]->group == decode && !pending_.empty()) pump(s);
}

void Cluster::on_loaded(std::uint64_t i) {
  const std::uint32_t s = table_[static_cast<ActiveIndex>(i)].replica;
  seats_[s]->replica.loaded(static_cast<ActiveIndex>(i));
  wake(s);
}

void Cluster::on_outgrown(std::uint64_t i) {
  const std::uint32_t s = table_[static_cast<ActiveIndex>(i)].replica;
  retire(static_cast<ActiveIndex>(i), End::shed, "output outgrew the KV cache of a rank");
  if (seats_[s]->group == decode && !pending_.empty()) pump(s);
}

void Cluster::retire(ActiveIndex i, End end, std::string_view reason) {
  const Active& a = table_[i];
  if (a.replica != no_replica) unbook(i);
  observer_.ended(a, end, reason);
  table_.remove(i);
}

std::size_t Cluster::scrapes_due() const {
  return std::size_t{groups_[intake].scraping} + std::size_t{groups_[decode].scraping};
}

void Cluster::catch_up_all() {
  for (const auto& seat : seats_) seat->replica.catch_up(simulation_.now().ns());
}

}  // namespace racktwin::serve
