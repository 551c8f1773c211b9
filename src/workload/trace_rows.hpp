// Readers of traces with one JSON object per line: each fills a table row by row.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "workload/trace_json.hpp"
#include "workload/trace_reader.hpp"

namespace racktwin::workload {

class JsonRows {
 public:
  virtual ~JsonRows() = default;
  virtual void row(JsonFields&, std::int64_t line) = 0;  // a problem goes into the fields
  virtual void end() {}
  Table table;
  std::string problem;  // found at the end, and where
  std::int64_t problem_line = 0;

 protected:
  // Absent (and not wrong, which is already said) is a problem.
  template <class T>
  static bool need(JsonFields& fields, std::string_view key, const std::optional<T>& value) {
    if (!value) fields.fail(fmt::format("lacks {}", key));
    return value.has_value() && fields.problem.empty();
  }
};

// Mooncake and what has grown from it: sessions with delays, waits, deltas, seconds.
std::unique_ptr<JsonRows> mooncake_rows(const std::string& format, const TraceOptions&);

// The model calls of one trace of OpenTelemetry spans, as one session.
void read_spans(JsonFields& document, Table&, std::uint32_t session);

// Why `ids` blocks cannot cover a prompt of `isl` tokens.
std::string misfit(std::size_t ids, std::int64_t block, std::int64_t isl);

}  // namespace racktwin::workload
