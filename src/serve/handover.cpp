// From prefill to decode: the choice of a decode replica, back-pressure, and the transfer.
#include <fmt/format.h>

#include <algorithm>

#include "serve/cluster.hpp"

namespace racktwin::serve {

void Cluster::hand_over(ActiveIndex i) {
  unbook_prefill(i);
  // First come, first served: nobody overtakes those who wait.
  if (!pending_.empty() || !try_hand_over(i, true)) pending_.push_back(i);
}

bool Cluster::try_hand_over(ActiveIndex i, bool at_once) {
  if (setup_.disaggregation.prefer_domain) {
    const std::uint32_t domain =
        seats_[table_[i].replica]->first.index / static_cast<std::uint32_t>(setup_.ports.domain);
    const auto [first, count] = near_[domain];
    if (count > 0 && try_range(i, first, count, at_once)) return true;
  }
  return try_range(i, 0, groups_[decode].members.size(), at_once);
}

// Asks the router until a choice has room; one that has none is left out for this request.
bool Cluster::try_range(ActiveIndex i, std::size_t first, std::size_t count, bool at_once) {
  Group& group = groups_[decode];
  const std::uint16_t intake_router = table_[i].router;
  std::vector<std::uint32_t> excluded;
  std::optional<std::uint32_t> taken;
  while (!taken) {
    const auto choice = choose(decode, i, first, count);
    if (!choice) break;
    Seat& seat = *seats_[*choice];
    seat.replica.catch_up(simulation_.now().ns());
    if (seat.replica.reserve(i)) {
      taken = choice;
    } else {
      // From here on only those are asked for that have room.
      for (const ReplicaView& view : std::span(group.views[0]).subspan(first, count)) {
        Seat& other = *seats_[view.id.index];
        other.replica.catch_up(simulation_.now().ns());
        if (!view.accepts || other.replica.has_room(table_[i])) continue;
        for (auto& views : group.views) views[other.view].accepts = false;
        excluded.push_back(view.id.index);
      }
    }
  }
  for (const std::uint32_t s : excluded) refresh(s);
  const std::uint16_t decode_router = table_[i].router;
  table_[i].router = intake_router;
  if (!taken) return false;
  table_[i].decode_router = decode_router;
  start_transfer(i, *taken, at_once);
  return true;
}

void Cluster::start_transfer(ActiveIndex i, std::uint32_t s, bool at_once) {
  Active& a = table_[i];
  const std::uint32_t source_seat = a.replica;
  unbook(i);  // leaves the prefill replica's book ...
  a.prefill_replica = source_seat;
  a.router = a.decode_router;
  book(s, i, 0);  // ... and enters the decode replica's
  refresh(s);
  // What reserve() took may be blocks that a macro-step had counted on.
  if (seats_[s]->replica.busy()) wake(s);
  a.slot = simulation_.now().ns();
  transfers_.wait_for_slot.add(a.slot - a.prefilled);

  const Seat& source = *seats_[source_seat];
  const Seat& target = *seats_[s];
  const auto endpoint = [](const Seat& seat, int rank) {
    return net::Endpoint{
        GpuId{seat.first.index + static_cast<std::uint32_t>(rank * seat.rank_gpus)},
        seat.rank_gpus};
  };
  net::Transfer transfer{.source = endpoint(source, a.prefill_rank),
                         .target = endpoint(target, a.rank),
                         .setup = setup_.disaggregation.descriptor_cost};
  const std::int64_t tokens = a.isl - seats_[s]->replica.reserved_tokens_cached(i);
  transfer.size =
      static_cast<double>(tokens) * setup_.kv_bytes_per_token * unit::byte + setup_.state_bytes;
  ++transfers_.count;
  if (net::same_domain(setup_.ports, transfer.source, transfer.target)) ++transfers_.inside_domain;
  transfers_.bytes += transfer.size;
  moved_tokens_ += tokens;
  if (at_once && setup_.disaggregation.layerwise_overlap)
    transfer.size = visible_bytes(a, transfer, source);
  if (!(transfer.size > Bytes{})) {  // all of it is there already
    simulation_.at(simulation_.now(), des::Phase::transfer,
                   des::bind<&Cluster::on_transferred>(*this, i));
    return;
  }
  fabric_.start(transfer, des::bind<&Cluster::on_transferred>(*this, i));
}

// Layer-wise overlap: the KV of a layer leaves as soon as it is computed, so what is left when
// the prompt is done is at least the last layer's, and what the last step had no time to send.
// Simplified: the overlapped part does not load the fabric. Wrong when ports are crowded.
Bytes Cluster::visible_bytes(const Active&, const net::Transfer& transfer,
                             const Seat& source) const {
  const Seconds sent_for = static_cast<double>(source.replica.last_step_ns()) * unit::ns;
  const Seconds whole = net::alone(setup_.ports, transfer) - transfer.setup;
  const double part = whole > Seconds{} ? std::max(0.0, 1 - sent_for / whole) : 0;
  return transfer.size * std::max(part, 1.0 / setup_.layers);
}

void Cluster::on_transferred(std::uint64_t request) {
  const auto i = static_cast<ActiveIndex>(request);
  Active& a = table_[i];
  a.transferred = simulation_.now().ns();
  transfers_.duration.add(a.transferred - a.slot);
  Seat& source = *seats_[a.prefill_replica];
  source.replica.catch_up(a.transferred);
  source.replica.release_source(i);
  if (source.replica.waiting() > 0) wake(a.prefill_replica);
  Seat& target = *seats_[a.replica];
  target.replica.catch_up(a.transferred);
  target.replica.join(i);
  wake(a.replica);
}

// Room has been made on decode replica `s`: those who wait come in, first come first. The first
// in line has been refused by every other replica since that one made room.
void Cluster::pump(std::uint32_t s) {
  Seat& seat = *seats_[s];
  const ActiveIndex i = pending_.front();
  if (seat.replica.free_slots() <= 0 || !seat.replica.reserve(i)) return;
  pending_.pop_front();
  table_[i].decode_router =
      static_cast<std::uint16_t>(table_[i].id.index % groups_[decode].routers.size());
  start_transfer(i, s, false);
  // Who is first now may be smaller, and fit where the one before did not.
  while (!pending_.empty() && try_hand_over(pending_.front(), false)) pending_.pop_front();
}

void Cluster::give_up_all() {
  catch_up_all();
  for (std::size_t i = 0; i < table_.rows(); ++i) {
    Active& a = table_[static_cast<ActiveIndex>(i)];
    if (!a.live) continue;
    if (Prompt* prompt = table_.prompt(a)) {  // the caches end with the run
      prompt->slots.clear();
      prompt->source_slots.clear();
    }
    retire(static_cast<ActiveIndex>(i), End::unfinished, {});
  }
}

std::string Cluster::stuck() const {
  std::string text;
  for (std::size_t s = 0; s < seats_.size(); ++s) {
    const Replica& replica = seats_[s]->replica;
    if (replica.waiting() == 0 || replica.busy()) continue;
    text += fmt::format(
        "{}replica {} of pool \"{}\" has {} waiting, {} running, {} of {} KV blocks used",
        text.empty() ? "" : "; ", s, setup_.pools[seats_[s]->pool].pool.name, replica.waiting(),
        replica.running(), replica.blocks_used(), replica.blocks_total());
  }
  if (!pending_.empty())
    text += fmt::format("{}{} prefilled requests wait for a decode slot", text.empty() ? "" : "; ",
                        pending_.size());
  return text;
}

}  // namespace racktwin::serve
