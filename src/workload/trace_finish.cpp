// From the table that a reader filled to statistics and a Source.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/check.hpp"
#include "workload/trace_replay.hpp"

namespace racktwin::workload {
namespace {

// Leaves rows out; what waited for one of them waits for what that one waited for.
void keep_rows(Table& table, const std::vector<bool>& keep) {
  if (!table.edges.empty()) {
    const Graph graph(table);
    std::vector<Rows> waits_for(table.rows());
    for (const auto& [before, later] : table.edges) waits_for[later].push_back(before);
    for (const std::uint32_t row : topological(graph)) {
      Rows direct;
      std::int64_t more = 0;
      for (const std::uint32_t before : waits_for[row]) {
        if (keep[before]) {
          direct.push_back(before);
          continue;
        }
        direct.insert(direct.end(), waits_for[before].begin(), waits_for[before].end());
        if (!table.delay_ns.empty())
          more = std::max(more, std::min(table.delay_ns[before], longest_ns));
        // What the first of a chain left to wait for is its stamp.
        if (waits_for[before].empty()) {
          if (table.not_before.empty()) table.not_before.resize(table.rows(), 0);
          table.not_before[row] = 1;
        }
      }
      std::sort(direct.begin(), direct.end());
      direct.erase(std::unique(direct.begin(), direct.end()), direct.end());
      waits_for[row] = std::move(direct);
      if (more > 0) table.delay_ns[row] = std::min(table.delay_ns[row], INT64_MAX / 4) + more;
    }
    table.edges.clear();
    for (std::uint32_t row = 0; row < table.rows(); ++row)
      if (keep[row])
        for (const std::uint32_t before : waits_for[row]) table.edges.emplace_back(before, row);
  }
  Rows order;
  for (std::uint32_t row = 0; row < table.rows(); ++row)
    if (keep[row]) order.push_back(row);
  table.take_rows(order);
}

std::int64_t distinct_sessions(const Table& table) {
  std::vector<bool> seen(sessions_of(table));
  std::int64_t count = 0;
  for (const std::uint32_t id : table.session) {
    if (id == Table::no_session || seen[id]) continue;
    seen[id] = true;
    ++count;
  }
  return count;
}

void thin(Table& table, double part, std::uint64_t seed) {
  Rng rng(seed, "thin");
  std::vector<bool> keep_session(sessions_of(table));
  for (std::size_t i = 0; i < keep_session.size(); ++i) keep_session[i] = rng.uniform() < part;
  std::vector<bool> keep(table.rows());
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const bool in_session = !table.session.empty() && table.session[row] != Table::no_session;
    keep[row] = in_session ? keep_session[table.session[row]] : rng.uniform() < part;
  }
  keep_rows(table, keep);
}

Rows all_rows(const Table& table) {
  Rows rows(table.rows());
  std::iota(rows.begin(), rows.end(), 0);
  return rows;
}

// Adds the blocks of rows to the reuse of one tally. What a row shares with a prompt that was
// added before is in the cache, and is not looked up again.
class BlockMeter {
 public:
  BlockMeter(const Table& table, Tally& tally)
      : table_(table), tally_(tally), added_(table.prompts.size()) {}
  void add(std::uint32_t row) {
    if (table_.prompt.empty() || table_.prompt[row] == Table::no_prompt) return;
    const std::uint32_t id = table_.prompt[row];
    const Table::Prompt& prompt = table_.prompts[id];
    added_[id] = true;
    if (prompt.base == Table::no_prompt || added_[prompt.base]) {
      // The last shared id lies in the tail of the base.
      const std::uint64_t before = prompt.shared == 0 ? 0 : table_.tails[last_shared(prompt)];
      tally_.add_blocks(prompt.shared, before, table_.tails.data() + prompt.begin,
                        prompt.end - prompt.begin);
      return;
    }
    const std::vector<std::uint64_t> ids = table_.blocks_of(id);
    tally_.add_blocks(0, 0, ids.data(), ids.size());
  }

 private:
  std::size_t last_shared(const Table::Prompt& prompt) const {
    const Table::Prompt& base = table_.prompts[prompt.base];
    return base.begin + (prompt.shared - base.shared) - 1;
  }
  const Table& table_;
  Tally& tally_;
  std::vector<bool> added_;
};

TraceStats measure(const Table& table, const Scaling& scaling, std::uint64_t seed, bool& chained) {
  Tally tally;
  tally.sessions = distinct_sessions(table) * scaling.copies;
  Superposed all(table, all_rows(table), scaling, seed);
  // Copies share no block, so each is measured alone, turned as it is replayed; beyond eight
  // the mean no longer moves.
  std::vector<Rows> by_copy(
      table.prompts.empty() ? 0 : static_cast<std::size_t>(std::min(8, scaling.copies)));
  for (; !all.empty(); all.pop()) {
    const Superposed::Next& next = all.top();
    tally.add(next.ns, table.isl[next.row], table.osl[next.row]);
    if (next.copy < by_copy.size()) by_copy[next.copy].push_back(next.row);
  }
  for (const Rows& rows : by_copy) {
    BlockMeter meter(table, tally);
    for (const std::uint32_t row : rows) meter.add(row);
    tally.forget_blocks();
  }
  chained = tally.chained();
  return tally.result();
}

void sort_by_time(Table& table) {
  if (!std::is_sorted(table.stamp_ns.begin(), table.stamp_ns.end())) {
    Rows order = all_rows(table);
    std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      const std::int64_t first = table.stamp_ns[a], second = table.stamp_ns[b];
      return first != second ? first < second : a < b;
    });
    table.take_rows(order);
  }
  const std::int64_t origin = table.stamp_ns.empty() ? 0 : table.stamp_ns.front();
  for (std::int64_t& ns : table.stamp_ns) ns -= origin;
}

// Ids that do not already stand for the whole prefix are chained. Bases come before what is
// built on them, so a prefix is chained when its tail is reached.
void chain_blocks(Table& table) {
  for (std::uint32_t id = 0; id < table.prompts.size(); ++id) {
    const Table::Prompt& prompt = table.prompts[id];
    std::uint64_t before = 0;
    if (prompt.shared > 0) {
      const Table::Prompt& base = table.prompts[prompt.base];
      before = table.tails[base.begin + (prompt.shared - base.shared) - 1];
    }
    for (std::uint64_t i = prompt.begin; i < prompt.end; ++i)
      before = table.tails[i] = mix(before, table.tails[i]);
  }
}

std::string list_of(const std::map<std::string, std::int64_t>& skipped) {
  std::string list;
  for (const auto& [reason, rows] : skipped)
    list += fmt::format("{}{} {}", list.empty() ? "" : ", ", rows, reason);
  return list.empty() ? "no row at all" : list;
}

}  // namespace

std::optional<std::string> span_problem(std::int64_t span_ns, const Scaling& scaling) {
  const double years = static_cast<double>(span_ns) / static_cast<double>(longest_ns) * 10;
  if (span_ns > longest_ns)
    return fmt::format("has times that lie {:.0f} years apart; ten at most: a clock is wrong",
                       years);
  if (years / scaling.compress > 10)
    return fmt::format("would last {:.0f} years when its time is divided by {}; ten at most",
                       years / scaling.compress, scaling.compress);
  return std::nullopt;
}

Result<Trace> finish(Table table, const Input& input, const TraceOptions& options) {
  const auto empty = [&] {
    return Error{Error::Code::invalid_input,
                 fmt::format("has no request that can be replayed ({})", list_of(table.skipped)),
                 input.name};
  };
  if (table.rows() == 0) return empty();
  if (!options.closed_loop_sessions) {
    table.edges.clear();
    table.delay_ns.clear();
    table.not_before.clear();
  }
  sort_by_time(table);
  if (const auto problem = span_problem(table.stamp_ns.back(), options.scaling))
    return Error{Error::Code::invalid_input, *problem, input.name};
  if (topological(Graph(table)).size() < table.rows())
    return Error{Error::Code::invalid_input, "has requests that wait for one another in a circle",
                 input.name};
  if (options.limit || options.max_context) {
    std::vector<bool> keep(table.rows(), true);
    const std::int64_t limit = options.limit.value_or(INT64_MAX);
    for (std::size_t row = 0; row < table.rows(); ++row) {
      keep[row] = static_cast<std::int64_t>(row) < limit;
      const std::int64_t context = std::int64_t{table.isl[row]} + table.osl[row];
      if (!keep[row] || !options.max_context || context <= *options.max_context) continue;
      keep[row] = false;
      ++table.skipped["longer than the largest context"];
    }
    keep_rows(table, keep);
    if (table.rows() == 0) return empty();
    sort_by_time(table);
  }
  table.closed_loop = !table.edges.empty();
  Trace trace;
  trace.info.format = table.format;
  trace.info.time_unit = table.time_unit;
  trace.info.closed_loop = table.closed_loop || (options.concurrency && !table.session.empty());
  trace.info.block_tokens = table.prompts.empty() ? 0 : table.block_tokens;
  bool chained = true;
  trace.info.stats = measure(table, Scaling{}, options.seed, chained);
  if (!chained) {
    chain_blocks(table);
    trace.info.stats = measure(table, Scaling{}, options.seed, chained);
  }
  const Scaling& scaling = options.scaling;
  trace.info.scaled = trace.info.stats;
  if (scaling.keep < 1) thin(table, scaling.keep, options.seed);
  trace.info.skipped = table.skipped;
  if (table.rows() == 0)
    return Error{Error::Code::invalid_input,
                 fmt::format("keeps no request when thinned to {}", scaling.keep), input.name};
  if (scaling.keep < 1) sort_by_time(table);
  if (scaling.keep < 1 || scaling.copies > 1 || scaling.compress != 1)
    trace.info.scaled = measure(table, scaling, options.seed, chained);
  trace.source = replay(std::move(table), options);
  return trace;
}

}  // namespace racktwin::workload
