#include "workload/trace_replay.hpp"

#include <algorithm>
#include <numeric>

#include "base/check.hpp"

namespace racktwin::workload {

static constexpr std::int64_t end_of_clock = 4000000000000000000;  // 126 years

Graph::Graph(const Table& table)
    : begin(table.rows() + 1), after(table.edges.size()), waits(table.rows()) {
  for (const auto& [before, later] : table.edges) {
    ++begin[before + 1];
    ++waits[later];
  }
  std::partial_sum(begin.begin(), begin.end(), begin.begin());
  std::vector<std::uint32_t> place(begin.begin(), begin.end() - 1);
  for (const auto& [before, later] : table.edges) after[place[before]++] = later;
}

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

std::uint32_t sessions_of(const Table& table) {
  std::uint32_t most = 0;
  for (const std::uint32_t id : table.session)
    if (id != Table::no_session) most = std::max(most, id + 1);
  return most;
}

Superposed::Superposed(const Table& table, Rows rows, const Scaling& scaling, std::uint64_t seed)
    : stamp_ns_(&table.stamp_ns), rows_(std::move(rows)), compress_(scaling.compress) {
  // A period of n mean gaps, so that first and last do not meet and the rate stays.
  const std::int64_t span = table.stamp_ns.empty() ? 0 : table.stamp_ns.back();
  const auto n = static_cast<std::int64_t>(table.rows());
  period_ = std::max<std::int64_t>(1, n > 1 ? span + span / (n - 1) : span);
  Rng rng(seed, "phase");
  for (int copy = 0; copy < scaling.copies; ++copy)
    phase_.push_back(
        copy == 0 ? 0 : static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(period_))));
  for (std::uint32_t copy = 0; copy < phase_.size(); ++copy) {
    const auto first = std::partition_point(rows_.begin(), rows_.end(), [&](std::uint32_t row) {
      return (*stamp_ns_)[row] + phase_[copy] < period_;
    });
    cursors_.push_back(
        {first == rows_.end() ? 0 : static_cast<std::size_t>(first - rows_.begin()), rows_.size()});
    push(copy);
  }
}

void Superposed::pop() {
  const std::uint32_t copy = heap_.top().copy;
  heap_.pop();
  push(copy);
}

std::int64_t Superposed::time(std::uint32_t copy, std::uint32_t row, std::int64_t anchor) const {
  std::int64_t ns = (*stamp_ns_)[row] + phase_[copy];
  if (anchor + phase_[copy] >= period_) ns -= period_;
  return scaled(std::max<std::int64_t>(0, ns));
}

std::int64_t Superposed::scaled(std::int64_t ns) const {
  if (compress_ == 1) return std::min(ns, end_of_clock);
  const double scaled = static_cast<double>(ns) / compress_ + 0.5;
  return scaled < static_cast<double>(end_of_clock) ? static_cast<std::int64_t>(scaled)
                                                    : end_of_clock;
}

void Superposed::push(std::uint32_t copy) {
  Cursor& cursor = cursors_[copy];
  if (cursor.left == 0) return;
  const std::uint32_t row = rows_[cursor.at];
  heap_.push({time(copy, row, (*stamp_ns_)[row]), copy, row});
  --cursor.left;
  if (++cursor.at == rows_.size()) cursor.at = 0;
}

namespace {

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
    // However long the pauses, the clock does not overflow: at its end they are nothing.
    const std::int64_t ready = ready_ns_[instance];
    std::int64_t ns = std::min(ready, end_of_clock) + stamped_.scaled(delay);
    ns = std::max(ready, std::min(ns, end_of_clock));
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

}  // namespace

std::unique_ptr<Source> replay(Table table, const TraceOptions& options) {
  return std::make_unique<TableSource>(std::move(table), options);
}

}  // namespace racktwin::workload
