// The table of a trace and its statistics.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.hpp"
#include "workload/trace_reader.hpp"

namespace racktwin::workload {

std::uint32_t Table::add(std::int64_t ns, std::int64_t row_isl, std::int64_t row_osl) {
  stamp_ns.push_back(ns);
  isl.push_back(static_cast<std::uint32_t>(row_isl));
  osl.push_back(static_cast<std::uint32_t>(row_osl));
  if (!session.empty()) session.push_back(no_session);
  if (!max_tokens.empty()) max_tokens.push_back(0);
  if (!delay_ns.empty()) delay_ns.push_back(0);
  if (!not_before.empty()) not_before.push_back(0);
  if (!prompt.empty()) prompt.push_back(no_prompt);
  return static_cast<std::uint32_t>(rows() - 1);
}

void Table::add_blocks(const std::vector<std::uint64_t>& ids, std::uint32_t base,
                       std::size_t shared) {
  if (prompt.empty()) prompt.resize(rows(), no_prompt);
  // The list that holds the last shared id in its own tail: chains stay short.
  while (base != no_prompt && shared <= prompts[base].shared) base = prompts[base].base;
  if (shared == 0) base = no_prompt;
  prompts.push_back({base, static_cast<std::uint32_t>(shared), tails.size(), 0});
  tails.insert(tails.end(), ids.begin(), ids.end());
  prompts.back().end = tails.size();
  prompt.back() = static_cast<std::uint32_t>(prompts.size() - 1);
}

std::size_t Table::block_count(std::uint32_t of_prompt) const {
  if (of_prompt == no_prompt) return 0;
  const Prompt& p = prompts[of_prompt];
  return p.shared + (p.end - p.begin);
}

std::vector<std::uint64_t> Table::blocks_of(std::uint32_t of_prompt) const {
  std::vector<std::uint64_t> ids(block_count(of_prompt));
  std::size_t end = ids.size();
  while (end > 0) {  // from the last tail to the first
    const Prompt& p = prompts[of_prompt];
    std::copy_n(tails.begin() + static_cast<std::ptrdiff_t>(p.begin), end - p.shared,
                ids.begin() + p.shared);
    end = p.shared;
    of_prompt = p.base;
  }
  return ids;
}

void Table::set_session(std::uint32_t id) {
  if (session.empty()) session.resize(rows(), no_session);
  session.back() = id;
}
void Table::set_delay(std::int64_t ns) {
  if (delay_ns.empty()) delay_ns.resize(rows(), 0);
  delay_ns.back() = ns;
}
void Table::set_not_before() {
  if (not_before.empty()) not_before.resize(rows(), 0);
  not_before.back() = 1;
}
void Table::set_max_tokens(std::int64_t tokens) {
  if (max_tokens.empty()) max_tokens.resize(rows(), 0);
  max_tokens.back() = static_cast<std::uint32_t>(tokens);
}

namespace {
template <class T>
void reorder(std::vector<T>& column, const std::vector<std::uint32_t>& order) {
  if (column.empty()) return;
  std::vector<T> taken;
  taken.reserve(order.size());
  for (const std::uint32_t row : order) taken.push_back(column[row]);
  column = std::move(taken);
}
}  // namespace

void Table::take_rows(const std::vector<std::uint32_t>& order) {
  if (!edges.empty()) {
    std::vector<std::uint32_t> place(rows(), UINT32_MAX);
    for (std::size_t i = 0; i < order.size(); ++i) place[order[i]] = static_cast<std::uint32_t>(i);
    for (auto& [before, after] : edges) {
      before = place[before];
      after = place[after];
    }
    std::erase_if(edges,
                  [](const auto& e) { return e.first == UINT32_MAX || e.second == UINT32_MAX; });
  }
  reorder(stamp_ns, order);
  reorder(isl, order);
  reorder(osl, order);
  reorder(session, order);
  reorder(prompt, order);
  reorder(max_tokens, order);
  reorder(delay_ns, order);
  reorder(not_before, order);
}

void Tally::Windows::add(std::int64_t since_first) {
  if (since_first >= (index + 1) * width_ns) {
    squares += static_cast<double>(count) * static_cast<double>(count);
    index = since_first / width_ns;
    count = 0;
  }
  ++count;
}

// Variance over mean of the counts of all windows from the first arrival to the last.
double Tally::Windows::dispersion(std::int64_t requests, std::int64_t span) const {
  const double windows = static_cast<double>(span / width_ns + 1);
  const double mean = static_cast<double>(requests) / windows;
  const double all = squares + static_cast<double>(count) * static_cast<double>(count);
  return mean > 0 ? (all / windows - mean * mean) / mean : 0;
}

void Tally::Lengths::add(std::int64_t value) {
  constexpr std::int64_t exact = std::int64_t{1} << 20;
  ++count_;
  sum_ += static_cast<double>(value);
  max_ = std::max(max_, value);
  if (value >= exact) {
    large_.add(value);
    return;
  }
  const auto at = static_cast<std::size_t>(value);
  if (at >= small_.size()) small_.resize(std::max(at + 1, 2 * small_.size()));
  ++small_[at];
}

TraceStats::Length Tally::Lengths::result() const {
  TraceStats::Length length;
  if (count_ == 0) return length;
  length.mean = sum_ / static_cast<double>(count_);
  length.max = max_;
  const std::pair<double, std::int64_t*> wanted[] = {
      {0.5, &length.p50}, {0.95, &length.p95}, {0.99, &length.p99}};
  for (const auto& [part, value] : wanted) {
    const auto rank = std::max<std::int64_t>(
        1, static_cast<std::int64_t>(std::ceil(part * static_cast<double>(count_))));
    std::int64_t seen = 0;
    std::size_t at = 0;
    while (at < small_.size() && seen + small_[at] < rank) seen += small_[at++];
    if (at < small_.size()) {
      *value = static_cast<std::int64_t>(at);
      continue;
    }
    const double above = static_cast<double>(rank - seen) / static_cast<double>(large_.count());
    *value = static_cast<std::int64_t>(large_.percentile(std::min(1.0, above)));
  }
  return length;
}

void Tally::add(std::int64_t ns, std::int64_t isl, std::int64_t osl) {
  if (requests_++ == 0) {
    first_ = last_ = ns;
  } else {
    const double gap = static_cast<double>(ns - last_);
    gap_squares_ += gap * gap;
  }
  last_ = ns;
  for (Windows& windows : windows_) windows.add(ns - first_);
  isl_.add(isl);
  osl_.add(osl);
}

namespace {
// The largest key is the map's own.
std::uint64_t key_of(std::uint64_t id) {
  return id == UINT64_MAX ? UINT64_MAX - 1 : id;
}
std::uint32_t digest_of(std::uint64_t id) {
  return static_cast<std::uint32_t>(mix(id) >> 32);
}
}  // namespace

void Tally::add_blocks(std::size_t known, std::uint64_t before, const std::uint64_t* ids,
                       std::size_t count) {
  bool still = true;
  std::uint32_t digest = known > 0 ? digest_of(key_of(before)) : 0;  // of the block before
  blocks_ += static_cast<std::int64_t>(known + count);
  hits_ += static_cast<std::int64_t>(known);
  for (std::size_t i = 0; i < count; ++i) {
    bool fresh = false;
    const std::uint64_t id = key_of(ids[i]);
    chained_ = seen_.put(id, digest, fresh) == digest && chained_;
    still = still && !fresh;
    hits_ += still;
    digest = digest_of(id);
  }
}

void Tally::forget_blocks() {
  seen_ = IdMap{};
}

TraceStats Tally::result() const {
  TraceStats stats;
  stats.requests = requests_;
  stats.sessions = sessions;
  const std::int64_t span = last_ - first_;
  stats.span = static_cast<double>(span) * unit::ns;
  if (requests_ > 1 && span > 0) {
    const double gaps = static_cast<double>(requests_ - 1);
    const double mean = static_cast<double>(span) / gaps;
    stats.cv = std::sqrt(std::max(0.0, gap_squares_ / gaps - mean * mean)) / mean;
    stats.dispersion_1s = windows_[0].dispersion(requests_, span);
    stats.dispersion_10s = windows_[1].dispersion(requests_, span);
    stats.dispersion_60s = windows_[2].dispersion(requests_, span);
  }
  stats.isl = isl_.result();
  stats.osl = osl_.result();
  if (blocks_ > 0) stats.reuse = static_cast<double>(hits_) / static_cast<double>(blocks_);
  return stats;
}

std::optional<std::string> ClockCheck::note(std::int64_t ns, std::int64_t line) {
  constexpr std::int64_t year_2000 = 946684800000000000, ten_years = 315360000000000000;
  if (ns >= year_2000) {
    if (!epoch_line_) epoch_line_ = line;
  } else if (ns < ten_years) {
    if (!relative_line_) relative_line_ = line;
  }
  if (!epoch_line_ || !relative_line_) return std::nullopt;
  return fmt::format(
      "the times mix two clocks: line {} counts from 1970, line {} from a start of its own; "
      "one origin is needed",
      *epoch_line_, *relative_line_);
}

}  // namespace racktwin::workload
