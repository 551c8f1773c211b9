// CSV with sessions: BurstGPT with session ids, and BLIS's TraceV2.
#include <algorithm>
#include <cmath>
#include <map>

#include "base/rng.hpp"
#include "base/text.hpp"
#include "workload/trace_rows.hpp"

namespace racktwin::workload {
namespace {

// One record: fields between commas, quoted where they hold commas. False: an open quote.
bool split_quoted(std::string_view line, std::vector<std::string>& fields) {
  fields.clear();
  fields.emplace_back();
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quoted && c == '"' && i + 1 < line.size() && line[i + 1] == '"')
      fields.back() += line[++i];
    else if (c == '"')
      quoted = !quoted;
    else if (c == ',' && !quoted)
      fields.emplace_back();
    else
      fields.back() += c;
  }
  return !quoted;
}

class Record {
 public:
  Record(const std::map<std::string, std::size_t>& columns, const std::vector<std::string>& fields)
      : columns_(columns), fields_(fields) {}
  bool has(const std::string& name) const { return !text(name).empty(); }
  const std::string& text(const std::string& name) const {
    static const std::string none;
    const auto at = columns_.find(name);
    return at == columns_.end() || at->second >= fields_.size() ? none : fields_[at->second];
  }
  // A finite number from `low` to `high`; a problem otherwise. Absent only where allowed.
  double number(const std::string& name, double low, double high,
                std::optional<double> absent = std::nullopt) {
    const std::string& field = text(name);
    if (field.empty() && absent) return *absent;
    const std::optional<double> value = parse_number(field);
    if (value && *value >= low && *value <= high) return *value;
    if (problem.empty())
      problem = field.empty() ? fmt::format("{} is missing", name)
                              : fmt::format("{} \"{}\" is no number from {} to {}", name,
                                            field.substr(0, 40), low, high);
    return 0;
  }
  std::int64_t tokens(const std::string& name) {
    return std::llround(number(name, 0, static_cast<double>(length_limit)));
  }
  std::string problem;

 private:
  const std::map<std::string, std::size_t>& columns_;
  const std::vector<std::string>& fields_;
};

struct Turn {
  std::uint32_t row = 0;
  std::int64_t end_ns = 0;  // as recorded
};

class CsvRows {
 public:
  virtual ~CsvRows() = default;
  virtual void row(Record&) = 0;
  virtual void header(const std::string&, const std::string&) {}
  Table table;

 protected:
  bool usable(std::int64_t isl, std::int64_t osl, std::string_view no_output) {
    if (isl > 0 && osl > 0) return true;
    ++table.skipped[osl == 0 ? std::string(no_output) : "without input tokens"];
    return false;
  }
  // The row added last follows the session's row before.
  void follow(const std::string& session, std::int64_t ns, std::int64_t lasted_ns) {
    const auto id = static_cast<std::uint32_t>(last_.size());
    const auto at = static_cast<std::uint32_t>(table.rows() - 1);
    const auto [entry, fresh] = last_.try_emplace(session, id, Turn{});
    table.set_session(entry->second.first);
    Turn& last = entry->second.second;
    if (!fresh && ns >= last.end_ns) {
      table.edges.emplace_back(last.row, at);
      table.set_delay(ns - last.end_ns);
    }
    last = {at, std::min(ns, INT64_MAX / 2) + std::min(lasted_ns, longest_ns)};
  }
  std::map<std::string, std::pair<std::uint32_t, Turn>> last_;
};

class BurstSessions final : public CsvRows {
 public:
  BurstSessions() {
    table.format = "burstgpt-3";
    table.time_unit = "s";
  }
  void row(Record& record) override {
    const double time = record.number("Timestamp", 0, 9e9);
    const std::int64_t isl = record.tokens("Request tokens"),
                       osl = record.tokens("Response tokens");
    const double elapsed = record.number("Elapsed time", 0, 9e9, 0.0);
    if (!record.problem.empty() || !usable(isl, osl, "failed (0 response tokens)")) return;
    const std::int64_t ns = std::llround(time * 1e9);
    table.add(ns, isl, osl);
    // API calls of a log have no session. The elapsed time is that of the whole answer.
    if (record.has("Session ID"))
      follow(record.text("Session ID"), ns, std::llround(elapsed * 1e9));
  }
};

class BlisRows final : public CsvRows {
 public:
  BlisRows() {
    table.format = "blis-tracev2";
    table.time_unit = "us";
    table.block_tokens = 16;
  }
  void header(const std::string& key, const std::string& value) override {
    if (key == "session_context_growth") accumulate_ = value == "accumulate";
  }
  void row(Record& record) override {
    // Only the arrival is a time of the load; the others may be of another clock.
    const double time = record.number("arrival_time_us", 0, 9e15);
    std::int64_t isl = record.tokens("input_tokens");
    const std::int64_t osl = record.tokens("output_tokens");
    const double sent = record.number("send_time_us", 0, 9e15, 0.0);
    const double last = record.number("last_chunk_time_us", 0, 9e15, 0.0);
    const std::int64_t prefix = std::llround(record.number("prefix_length", 0, 2147483647, 0.0));
    if (!record.problem.empty()) return;
    if (record.has("status") && record.text("status") != "ok") {
      ++table.skipped[fmt::format("with status {}", record.text("status").substr(0, 20))];
      return;
    }
    if (!usable(isl, osl, "without output tokens")) return;
    const std::string& session = record.text("session_id");
    std::int64_t& said = said_[session];
    if (accumulate_ && !session.empty()) {
      isl = std::min<std::int64_t>(isl + said, length_limit);
      said = isl + osl;
    }
    const std::int64_t ns = std::llround(time * 1e3);
    table.add(ns, isl, osl);
    add_ids(record.text("prefix_group"), std::min(prefix, isl), session, isl);
    const bool timed = sent > 0 && last >= sent;
    if (!session.empty()) follow(session, ns, timed ? std::llround((last - sent) * 1e3) : 0);
  }

 private:
  // A group's prefix is common to its requests; a session that accumulates keeps its text.
  void add_ids(const std::string& group, std::int64_t prefix, const std::string& session,
               std::int64_t isl) {
    const bool grows = accumulate_ && !session.empty();
    if (group.empty() && !grows) return;
    const std::int64_t size = table.block_tokens;
    const std::uint64_t shared = hash_of(group);
    const std::uint64_t own = grows ? mix(1, hash_of(session)) : mix(2, table.rows());
    std::vector<std::uint64_t> ids;
    for (std::int64_t i = 0; i * size < isl; ++i) {
      const bool in_prefix = (i + 1) * size <= prefix, full = (i + 1) * size <= isl;
      std::uint64_t id = mix(in_prefix ? shared : own, static_cast<std::uint64_t>(i));
      if (!full) id = mix(id, static_cast<std::uint64_t>(isl % size));
      ids.push_back(id);
    }
    table.add_blocks(ids);
  }
  bool accumulate_ = false;
  std::map<std::string, std::int64_t> said_;
};

// The header of a TraceV2 lies in front of the rows, or in a file of the same name beside it.
void read_header_beside(const Input& input, CsvRows& rows) {
  if (!input.path) return;
  const std::string stem = input.path->substr(0, input.path->find_last_of('.'));
  for (const char* ending : {".yaml", ".yml"}) {
    const Input beside{stem + ending, stem + ending, {}};
    auto bytes = beside.open();
    if (!bytes.ok()) continue;
    Lines lines(std::move(bytes).value(), beside.name);
    std::string_view line;
    while (lines.next(line))
      if (const auto colon = line.find(": "); colon != std::string_view::npos)
        rows.header(std::string(line.substr(0, colon)), std::string(line.substr(colon + 2)));
    return;
  }
}

}  // namespace

Result<Table> read_csv_sessions(const Input& input, const std::string& format) {
  std::unique_ptr<CsvRows> rows;
  if (format == "burstgpt-3")
    rows = std::make_unique<BurstSessions>();
  else
    rows = std::make_unique<BlisRows>();
  if (format == "blis-tracev2") read_header_beside(input, *rows);
  RACKTWIN_TRY(std::unique_ptr<Bytes> bytes, input.open());
  Lines lines(std::move(bytes), input.name);
  std::map<std::string, std::size_t> columns;
  std::vector<std::string> fields;
  ClockCheck clocks;
  std::string_view line;
  while (lines.next(line)) {
    if (line.empty() || line.starts_with("---")) continue;
    const auto refuse = [&](std::string message) {
      return Error{Error::Code::invalid_input, std::move(message), input.at(lines.number())};
    };
    const auto colon = line.find(": ");
    if (columns.empty() && line.find(',') == std::string_view::npos) {
      if (colon != std::string_view::npos)
        rows->header(std::string(line.substr(0, colon)), std::string(line.substr(colon + 2)));
      continue;
    }
    if (!split_quoted(line, fields)) return refuse("opens a quote that it does not close");
    if (columns.empty()) {
      for (std::size_t i = 0; i < fields.size(); ++i) columns.emplace(fields[i], i);
      continue;
    }
    Record record(columns, fields);
    const std::size_t before = rows->table.rows();
    rows->row(record);
    if (!record.problem.empty()) return refuse(record.problem);
    if (rows->table.rows() == before) continue;
    if (auto mixed = clocks.note(rows->table.stamp_ns.back(), lines.number()))
      return refuse(*mixed);
  }
  if (lines.error()) return *lines.error();
  return std::move(rows->table);
}

}  // namespace racktwin::workload
