// From the table that a reader filled to statistics and a Source.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <queue>

#include "base/check.hpp"
#include "workload/trace_reader.hpp"

namespace racktwin::workload {
namespace {

using Rows = std::vector<std::uint32_t>;

// Every row's successors, contiguous.
struct Graph {
  std::vector<std::uint32_t> begin, after, waits;
  explicit Graph(const Table& table)
      : begin(table.rows() + 1), after(table.edges.size()), waits(table.rows()) {
    for (const auto& [before, later] : table.edges) {
      ++begin[before + 1];
      ++waits[later];
    }
    std::partial_sum(begin.begin(), begin.end(), begin.begin());
    std::vector<std::uint32_t> place(begin.begin(), begin.end() - 1);
    for (const auto& [before, later] : table.edges) after[place[before]++] = later;
  }
};

// Rows so that each comes after all that it waits for; shorter than the table on a circle.
Rows topological(const Graph& graph) {
  Rows order;
  std::vector<std::uint32_t> waits = graph.waits;
  for (std::uint32_t row = 0; row < waits.size(); ++row)
    if (waits[row] == 0) order.push_back(row);
  for (std::size_t i = 0; i < order.size(); ++i)
    for (std::uint32_t k = graph.begin[order[i]]; k < graph.begin[order[i] + 1]; ++k)
      if (--waits[graph.after[k]] == 0) order.push_back(graph.after[k]);
  return order;
}

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
        if (!table.delay_ns.empty()) more = std::max(more, table.delay_ns[before]);
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

std::uint32_t sessions_of(const Table& table) {
  std::uint32_t most = 0;
  for (const std::uint32_t id : table.session)
    if (id != Table::no_session) most = std::max(most, id + 1);
  return most;
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

// Copies of a list of rows, each turned round the span by its phase, in order of time.
class Superposed {
 public:
  struct Next {
    std::int64_t ns = 0;
    std::uint32_t copy = 0, row = 0;
  };
  Superposed(const Table& table, Rows rows, const Scaling& scaling, std::uint64_t seed)
      : stamp_ns_(&table.stamp_ns), rows_(std::move(rows)), compress_(scaling.compress) {
    // A period of n mean gaps, so that first and last do not meet and the rate stays.
    const std::int64_t span = table.stamp_ns.empty() ? 0 : table.stamp_ns.back();
    const auto n = static_cast<std::int64_t>(table.rows());
    period_ = std::max<std::int64_t>(1, n > 1 ? span + span / (n - 1) : span);
    Rng rng(seed, "phase");
    for (int copy = 0; copy < scaling.copies; ++copy)
      phase_.push_back(
          copy == 0 ? 0
                    : static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(period_))));
    for (std::uint32_t copy = 0; copy < phase_.size(); ++copy) {
      const auto first = std::partition_point(rows_.begin(), rows_.end(), [&](std::uint32_t row) {
        return (*stamp_ns_)[row] + phase_[copy] < period_;
      });
      cursors_.push_back(
          {first == rows_.end() ? 0 : static_cast<std::size_t>(first - rows_.begin()),
           rows_.size()});
      push(copy);
    }
  }
  bool empty() const { return heap_.empty(); }
  const Next& top() const { return heap_.top(); }
  void pop() {
    const std::uint32_t copy = heap_.top().copy;
    heap_.pop();
    push(copy);
  }
  // When a row of a copy is stamped, if rows stamped like `anchor` are turned round with it.
  std::int64_t time(std::uint32_t copy, std::uint32_t row, std::int64_t anchor) const {
    std::int64_t ns = (*stamp_ns_)[row] + phase_[copy];
    if (anchor + phase_[copy] >= period_) ns -= period_;
    return scaled(std::max<std::int64_t>(0, ns));
  }
  std::int64_t scaled(std::int64_t ns) const {
    return compress_ == 1 ? ns
                          : static_cast<std::int64_t>(static_cast<double>(ns) / compress_ + 0.5);
  }

 private:
  struct Cursor {
    std::size_t at = 0, left = 0;
  };
  struct Later {
    bool operator()(const Next& a, const Next& b) const {
      return a.ns != b.ns ? a.ns > b.ns : a.copy > b.copy;
    }
  };
  void push(std::uint32_t copy) {
    Cursor& cursor = cursors_[copy];
    if (cursor.left == 0) return;
    const std::uint32_t row = rows_[cursor.at];
    heap_.push({time(copy, row, (*stamp_ns_)[row]), copy, row});
    --cursor.left;
    if (++cursor.at == rows_.size()) cursor.at = 0;
  }
  const std::vector<std::int64_t>* stamp_ns_;
  Rows rows_;
  double compress_;
  std::int64_t period_ = 1;
  std::vector<std::int64_t> phase_;
  std::vector<Cursor> cursors_;
  std::priority_queue<Next, std::vector<Next>, Later> heap_;
};

Rows all_rows(const Table& table) {
  Rows rows(table.rows());
  std::iota(rows.begin(), rows.end(), 0);
  return rows;
}

class TableSource final : public Source {
 public:
  TableSource(Table table, const TraceOptions& options)
      : table_(std::move(table)),
        graph_(table_),
        sessions_(sessions_of(table_)),
        queued_(options.concurrency && sessions_ > 0),
        waits_(!table_.edges.empty()),
        stamped_(table_, queued_ ? Rows{} : roots(), options.scaling, options.seed) {
    const auto copies = static_cast<std::uint32_t>(options.scaling.copies);
    RACKTWIN_CHECK(static_cast<std::uint64_t>(copies) * table_.rows() < UINT32_MAX);
    for (std::uint32_t copy = 0; copy < copies; ++copy)
      salt_.push_back(copy == 0 ? 0 : mix(options.seed, copy));
    for (const std::uint32_t osl : table_.osl) longest_ = std::max(longest_, osl);
    first_of_session_.assign(sessions_, INT64_MAX);
    for (std::uint32_t row = 0; row < table_.session.size(); ++row)
      if (table_.session[row] != Table::no_session)
        first_of_session_[table_.session[row]] =
            std::min(first_of_session_[table_.session[row]], table_.stamp_ns[row]);
    if (waits_) {
      for (std::uint32_t copy = 0; copy < copies; ++copy)
        left_.insert(left_.end(), graph_.waits.begin(), graph_.waits.end());
      ready_ns_.assign(left_.size(), 0);
    }
    if (queued_) queue_sessions(*options.concurrency, copies);
  }

  std::optional<Instant> peek() override {
    const bool stamped = !stamped_.empty(), waiting = !waiting_.empty();
    if (!stamped && !waiting) return std::nullopt;
    if (stamped && (!waiting || stamped_.top().ns <= waiting_.top().ns))
      return Instant::at_ns(stamped_.top().ns);
    return Instant::at_ns(waiting_.top().ns);
  }

  Request next() override {
    const std::optional<Instant> arrival = peek();
    RACKTWIN_CHECK(arrival.has_value());
    std::uint32_t copy = 0, row = 0;
    if (!stamped_.empty() && stamped_.top().ns == arrival->ns()) {
      copy = stamped_.top().copy;
      row = stamped_.top().row;
      stamped_.pop();
    } else {
      const auto n = static_cast<std::uint32_t>(table_.rows());
      copy = waiting_.top().instance / n;
      row = waiting_.top().instance % n;
      waiting_.pop();
    }
    if (waits_ || queued_)
      in_flight_.insert(next_id_, copy * static_cast<std::uint32_t>(table_.rows()) + row);
    return request(*arrival, copy, row);
  }

  void completed(RequestId id, Instant when) override {
    if (!waits_ && !queued_) return;
    const std::optional<std::uint32_t> instance = in_flight_.take(id.index);
    RACKTWIN_CHECK(instance.has_value());
    const auto n = static_cast<std::uint32_t>(table_.rows());
    const std::uint32_t copy = *instance / n, row = *instance % n;
    for (std::uint32_t k = graph_.begin[row]; k < graph_.begin[row + 1]; ++k) {
      const std::uint32_t later = copy * n + graph_.after[k];
      ready_ns_[later] = std::max(ready_ns_[later], when.ns());
      if (--left_[later] == 0) release(copy, graph_.after[k]);
    }
    if (queued_) session_row_ended(copy, row, when);
  }

 private:
  struct Waiting {
    std::int64_t ns = 0;
    std::uint64_t sequence = 0;
    std::uint32_t instance = 0;
    bool operator>(const Waiting& b) const {
      return ns != b.ns ? ns > b.ns : sequence > b.sequence;
    }
  };

  Rows roots() const {
    Rows rows;
    for (std::uint32_t row = 0; row < table_.rows(); ++row)
      if (graph_.waits[row] == 0) rows.push_back(row);
    return rows;
  }

  void release(std::uint32_t copy, std::uint32_t row) {
    const std::uint32_t instance = copy * static_cast<std::uint32_t>(table_.rows()) + row;
    const std::int64_t delay = table_.delay_ns.empty() ? 0 : table_.delay_ns[row];
    std::int64_t ns = ready_ns_[instance] + stamped_.scaled(delay);
    const bool stamp = !queued_ && !table_.not_before.empty() && table_.not_before[row];
    if (stamp) {
      const bool in_session = !table_.session.empty() && table_.session[row] != Table::no_session;
      const std::int64_t anchor =
          in_session ? first_of_session_[table_.session[row]] : table_.stamp_ns[row];
      ns = std::max(ns, stamped_.time(copy, row, anchor));
    }
    waiting_.push({ns, next_sequence_++, instance});
  }

  Request request(Instant arrival, std::uint32_t copy, std::uint32_t row) {
    Request request;
    request.id = RequestId{next_id_++};
    request.arrival = arrival;
    request.isl = table_.isl[row];
    request.osl = table_.osl[row];
    const bool limited = !table_.max_tokens.empty() && table_.max_tokens[row] > 0;
    request.max_tokens =
        std::max<std::int64_t>(request.osl, limited ? table_.max_tokens[row] : longest_);
    if (!table_.session.empty() && table_.session[row] != Table::no_session)
      request.session = SessionId{copy * sessions_ + table_.session[row]};
    if (table_.prompt.empty() || table_.prompt[row] == Table::no_prompt) return request;
    request.block_tokens = table_.block_tokens;
    request.blocks = table_.blocks_of(table_.prompt[row]);
    if (salt_[copy] != 0)
      for (std::uint64_t& id : request.blocks) id = mix(id ^ salt_[copy]);
    return request;
  }

  // Sessions one after another: rows outside any session stand alone.
  void queue_sessions(std::int64_t concurrency, std::uint32_t copies) {
    rows_of_session_.resize(sessions_);
    for (std::uint32_t row = 0; row < table_.rows(); ++row) {
      if (table_.session[row] == Table::no_session) {
        for (std::uint32_t copy = 0; copy < copies; ++copy) {
          const auto n = static_cast<std::uint32_t>(table_.rows());
          waiting_.push({table_.stamp_ns[row], next_sequence_++, copy * n + row});
        }
        continue;
      }
      rows_of_session_[table_.session[row]].push_back(row);
    }
    for (std::uint32_t copy = 0; copy < copies; ++copy)
      for (std::uint32_t i = 0; i < sessions_; ++i) {
        if (rows_of_session_[i].empty()) continue;
        rows_left_.push_back(static_cast<std::uint32_t>(rows_of_session_[i].size()));
        session_order_.emplace_back(copy, i);
        place_.insert(std::uint64_t{copy} * sessions_ + i,
                      static_cast<std::uint32_t>(session_order_.size() - 1));
      }
    for (std::int64_t i = 0; i < concurrency; ++i) start_session(0);
  }

  void start_session(std::int64_t now) {
    if (next_start_ == session_order_.size()) return;
    const auto [copy, session] = session_order_[next_start_++];
    for (const std::uint32_t row : rows_of_session_[session]) {
      if (graph_.waits[row] > 0) continue;
      const std::int64_t since = table_.stamp_ns[row] - first_of_session_[session];
      waiting_.push({now + stamped_.scaled(since), next_sequence_++,
                     copy * static_cast<std::uint32_t>(table_.rows()) + row});
    }
  }

  void session_row_ended(std::uint32_t copy, std::uint32_t row, Instant when) {
    if (table_.session[row] == Table::no_session) return;
    const auto place = place_.find(std::uint64_t{copy} * sessions_ + table_.session[row]);
    if (--rows_left_[*place] == 0) start_session(when.ns());
  }

  Table table_;
  Graph graph_;
  std::uint32_t sessions_ = 0;
  bool queued_ = false, waits_ = false;
  Superposed stamped_;
  std::vector<std::uint64_t> salt_;             // by copy
  std::vector<std::int64_t> first_of_session_;  // stamps
  std::vector<std::uint32_t> left_;             // by instance: still waited for
  std::vector<std::int64_t> ready_ns_;          // by instance
  std::vector<Rows> rows_of_session_;           // where sessions are queued
  std::vector<std::pair<std::uint32_t, std::uint32_t>> session_order_;  // (copy, session)
  std::vector<std::uint32_t> rows_left_;  // by place in session_order_
  IdMap place_;
  std::size_t next_start_ = 0;
  std::priority_queue<Waiting, std::vector<Waiting>, std::greater<>> waiting_;
  IdMap in_flight_;
  std::uint64_t next_sequence_ = 0;
  std::uint32_t next_id_ = 0, longest_ = 1;
};

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
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      return table.stamp_ns[a] < table.stamp_ns[b];
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
  trace.source = std::make_unique<TableSource>(std::move(table), options);
  return trace;
}

}  // namespace racktwin::workload
