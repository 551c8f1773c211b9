// Replay of a table: who waits for whom, and copies of the trace laid over one another.
#pragma once

#include <cstdint>
#include <memory>
#include <queue>
#include <vector>

#include "workload/trace_reader.hpp"

namespace racktwin::workload {

using Rows = std::vector<std::uint32_t>;

// Every row's successors: after[begin[row]] up to after[begin[row + 1]].
struct Graph {
  std::vector<std::uint32_t> begin, after, waits;
  explicit Graph(const Table&);
};

// Rows so that each comes after all that it waits for; shorter than the table on a circle.
Rows topological(const Graph&);

std::uint32_t sessions_of(const Table&);  // one more than the largest session

// Copies of a list of rows, each turned round the span by its phase, in order of time.
class Superposed {
 public:
  struct Next {
    std::int64_t ns = 0;
    std::uint32_t copy = 0, row = 0;
  };
  // The table stays where it is.
  Superposed(const Table&, Rows, const Scaling&, std::uint64_t seed);
  bool empty() const { return heap_.empty(); }
  const Next& top() const { return heap_.top(); }
  void pop();
  // When a row of a copy is stamped, if rows stamped like `anchor` are turned round with it.
  std::int64_t time(std::uint32_t copy, std::uint32_t row, std::int64_t anchor) const;
  std::int64_t scaled(std::int64_t ns) const;

 private:
  struct Cursor {
    std::size_t at = 0, left = 0;
  };
  struct Later {
    bool operator()(const Next& a, const Next& b) const {
      return a.ns != b.ns ? a.ns > b.ns : a.copy > b.copy;
    }
  };
  void push(std::uint32_t copy);
  const std::vector<std::int64_t>* stamp_ns_;
  Rows rows_;
  double compress_;
  std::int64_t period_ = 1;
  std::vector<std::int64_t> phase_;
  std::vector<Cursor> cursors_;
  std::priority_queue<Next, std::vector<Next>, Later> heap_;
};

std::unique_ptr<Source> replay(Table, const TraceOptions&);

}  // namespace racktwin::workload
