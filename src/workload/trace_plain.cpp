// Plain rows: Azure, BurstGPT without sessions, Vidur. Small files are held; large ones are
// measured in one pass and replayed in a second, in bounded memory.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/check.hpp"
#include "base/text.hpp"
#include "workload/timestamps.hpp"
#include "workload/trace_reader.hpp"

namespace racktwin::workload {
namespace {

constexpr std::size_t most_held_rows = std::size_t{128} << 20;  // where copies need them all
constexpr std::size_t most_columns = 64;

using Outcome = PlainParser::Outcome;

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '"')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '"')) text.remove_suffix(1);
  return text;
}

std::string shown(std::string_view text) {
  return text.size() <= 40 ? std::string(text) : std::string(text.substr(0, 37)) + "...";
}

// Splits at commas; the number of fields, or most_columns + 1 where there are more.
std::size_t split(std::string_view line, std::array<std::string_view, most_columns>& fields) {
  std::size_t count = 0, start = 0;
  for (;;) {
    const std::size_t comma = line.find(',', start), end = std::min(comma, line.size());
    if (count == most_columns) return most_columns + 1;
    fields[count++] = line.substr(start, end - start);
    if (comma == std::string_view::npos) return count;
    start = end + 1;
  }
}

// A count of tokens: digits, or a float as some tools write them.
bool read_tokens(std::string_view field, std::int64_t& value) {
  const auto [end, code] = std::from_chars(field.data(), field.data() + field.size(), value);
  if (code == std::errc{} && end == field.data() + field.size())
    return value >= 0 && value <= length_limit;
  const std::optional<double> number = parse_number(trimmed(field));
  if (!number || *number < 0 || *number > static_cast<double>(length_limit)) return false;
  value = std::llround(*number);
  return true;
}

// The columns that a format needs, found by name.
class ColumnParser : public PlainParser {
 public:
  Result<Done> bind(std::string_view header, const std::vector<std::string>& names) {
    names_ = names;
    const std::size_t count = split(header, fields_);
    for (const std::string& name : names) {
      std::size_t at = 0;
      while (at < std::min(count, most_columns) && trimmed(fields_[at]) != name) ++at;
      if (at >= std::min(count, most_columns))
        return Error{Error::Code::invalid_input,
                     fmt::format("the header names no column \"{}\" (it needs: {})", name,
                                 fmt::join(names, ", ")),
                     ""};
      columns_.push_back(at);
    }
    needed_ = *std::max_element(columns_.begin(), columns_.end()) + 1;
    return Done{};
  }

 protected:
  Outcome refuse(std::string message) {
    reason = std::move(message);
    return Outcome::refuse;
  }
  bool take(std::string_view line) {
    const std::size_t count = split(line, fields_);
    if (count >= needed_) return true;
    reason = fmt::format("has {} fields where the header names {} at least", count, needed_);
    return false;
  }
  std::string_view field(std::size_t i) const { return fields_[columns_[i]]; }
  // The lengths in columns i and i + 1; 0 tokens out is `nothing`.
  Outcome lengths(std::size_t i, PlainRow& row, std::string_view nothing) {
    for (const std::size_t k : {i, i + 1}) {
      std::int64_t& value = k == i ? row.isl : row.osl;
      if (!read_tokens(field(k), value))
        return refuse(fmt::format("{} \"{}\" is no count of tokens (0 to {})", names_[k],
                                  shown(field(k)), length_limit));
    }
    if (row.osl == 0) {
      reason = nothing;
      return Outcome::skip;
    }
    if (row.isl == 0) {
      reason = "without input tokens";
      return Outcome::skip;
    }
    return Outcome::row;
  }
  Outcome seconds(std::size_t i, std::int64_t& ns) {
    const std::string_view text = field(i);
    if (trimmed(text).empty()) return refuse(fmt::format("{} is missing", names_[i]));
    const std::optional<double> number = parse_number(text);
    if (!number || *number < 0 || *number > 9e9)
      return refuse(
          fmt::format("{} \"{}\" is no time in seconds (0 to 9e9)", names_[i], shown(text)));
    ns = std::llround(*number * 1e9);
    return Outcome::row;
  }
  std::vector<std::string> names_;

 private:
  std::vector<std::size_t> columns_;
  std::size_t needed_ = 0;
  std::array<std::string_view, most_columns> fields_;
};

class AzureParser final : public ColumnParser {
 public:
  explicit AzureParser(std::string name) { format = std::move(name); }
  Outcome parse(std::string_view line, PlainRow& row) override {
    if (!take(line)) return Outcome::refuse;
    Timestamps::Value value;
    const std::string_view text = field(0);
    if (!timestamps_.read(text, value)) {
      if (trimmed(text).empty()) return refuse("TIMESTAMP is missing");
      return refuse(
          fmt::format("TIMESTAMP \"{}\" is no date and time, as 2023-11-16 "
                      "18:17:03.9799600 or 2024-05-12 00:00:00.001163+00:00",
                      shown(text)));
    }
    if (!zone_) {
      zone_ = value.zone;
      if (format != "azure-multimodal") format = value.zone ? "azure-2024" : "azure-2023";
      const bool coarse = value.digits <= 3;
      time_unit = value.digits > 6                         ? "timestamp (100 ns)"
                  : coarse && format == "azure-multimodal" ? "timestamp (ms)"
                                                           : "timestamp (us)";
    }
    if (*zone_ != value.zone)
      return refuse(fmt::format(
          "the times mix two clocks: \"{}\" {} a time zone, the rows before "
          "{}; one origin is needed",
          shown(text), value.zone ? "has" : "lacks", value.zone ? "lack one" : "have one"));
    row.ns = value.ns;
    return lengths(1, row, "without output tokens");
  }

 private:
  Timestamps timestamps_;
  std::optional<bool> zone_;
};

class BurstParser final : public ColumnParser {
 public:
  BurstParser() {
    format = "burstgpt";
    time_unit = "s";
  }
  Outcome parse(std::string_view line, PlainRow& row) override {
    if (!take(line)) return Outcome::refuse;
    if (const Outcome outcome = seconds(0, row.ns); outcome != Outcome::row) return outcome;
    return lengths(1, row, "failed (0 response tokens)");
  }
};

class VidurParser final : public ColumnParser {
 public:
  explicit VidurParser(bool timed) : timed_(timed) {
    format = "vidur";
    time_unit = timed ? "s" : "none";
  }
  Outcome parse(std::string_view line, PlainRow& row) override {
    if (!take(line)) return Outcome::refuse;
    row.ns = 0;
    if (timed_)
      if (const Outcome outcome = seconds(2, row.ns); outcome != Outcome::row) return outcome;
    return lengths(0, row, "without output tokens");
  }

 private:
  bool timed_;
};

// Which rows of a stream are requests, told the same way in both passes.
class Filter {
 public:
  explicit Filter(const TraceOptions& options) : options_(options), thin_(options.seed, "thin") {}
  bool full() const { return options_.limit && given_ >= *options_.limit; }
  bool in_trace(const PlainRow& row) {
    ++given_;
    return !options_.max_context || row.isl + row.osl <= *options_.max_context;
  }
  bool scales() const { return options_.scaling.keep < 1 || options_.scaling.compress != 1; }
  bool kept() { return options_.scaling.keep >= 1 || thin_.uniform() < options_.scaling.keep; }
  std::int64_t scaled(std::int64_t ns) const {
    const double compress = options_.scaling.compress;
    return compress == 1 ? ns : static_cast<std::int64_t>(static_cast<double>(ns) / compress + 0.5);
  }

 private:
  TraceOptions options_;
  Rng thin_;
  std::int64_t given_ = 0;
};

// The rows of an input, one by one.
class PlainRows {
 public:
  PlainRows(std::unique_ptr<Bytes> bytes, const Input& input, std::string format)
      : lines_(std::move(bytes), input.name), input_(input), format_(std::move(format)) {}
  Result<Done> start() {
    std::string_view header;
    lines_.next(header);
    if (lines_.error()) return *lines_.error();
    auto parser = plain_parser(format_, header);
    if (!parser.ok()) return Error{parser.error().code, parser.error().message, input_.at(1)};
    parser_ = std::move(parser).value();
    return Done{};
  }
  // Outcome::refuse: `error` says why, or is empty at the end.
  Outcome next(PlainRow& row) {
    std::string_view line;
    do {
      if (!lines_.next(line)) {
        error = lines_.error();
        return Outcome::refuse;
      }
    } while (line.empty());
    const Outcome outcome = parser_->parse(line, row);
    if (outcome == Outcome::refuse)
      error = Error{Error::Code::invalid_input, parser_->reason, input_.at(lines_.number())};
    else if (auto mixed = clocks_.note(row.ns, lines_.number()))
      return error = Error{Error::Code::invalid_input, *mixed, input_.at(lines_.number())},
             Outcome::refuse;
    return outcome;
  }
  const PlainParser& parser() const { return *parser_; }
  std::int64_t line() const { return lines_.number(); }
  std::optional<Error> error;

 private:
  Lines lines_;
  Input input_;
  std::string format_;
  std::unique_ptr<PlainParser> parser_;
  ClockCheck clocks_;
};

class StreamSource final : public Source {
 public:
  StreamSource(PlainRows rows, const TraceOptions& options, std::int64_t requests,
               std::int64_t origin, std::int64_t longest)
      : rows_(std::move(rows)),
        filter_(options),
        left_(requests),
        origin_(origin),
        longest_(longest) {
    advance();
  }
  std::optional<Instant> peek() override {
    if (!ready_) return std::nullopt;
    return Instant::at_ns(filter_.scaled(row_.ns - origin_));
  }
  Request next() override {
    RACKTWIN_CHECK(ready_);
    Request request;
    request.id = RequestId{next_id_++};
    request.arrival = *peek();
    request.isl = row_.isl;
    request.osl = row_.osl;
    request.max_tokens = longest_;
    advance();
    return request;
  }
  void completed(RequestId, Instant) override {}

 private:
  void advance() {
    ready_ = left_ > 0;
    while (left_ > 0) {
      const Outcome outcome = rows_.next(row_);
      // The first pass read the same bytes to this request: the file has been changed since.
      RACKTWIN_CHECK(outcome != Outcome::refuse);
      if (outcome == Outcome::skip || !filter_.in_trace(row_) || !filter_.kept()) continue;
      --left_;
      return;
    }
  }
  PlainRows rows_;
  Filter filter_;
  std::int64_t left_, origin_, longest_;
  PlainRow row_;
  bool ready_ = false;
  std::uint32_t next_id_ = 0;
};

}  // namespace

Result<std::unique_ptr<PlainParser>> plain_parser(const std::string& format,
                                                  std::string_view header) {
  std::unique_ptr<ColumnParser> parser;
  std::vector<std::string> names;
  if (format.starts_with("azure")) {
    parser = std::make_unique<AzureParser>(format);
    names = {"TIMESTAMP", "ContextTokens", "GeneratedTokens"};
  } else if (format == "burstgpt") {
    parser = std::make_unique<BurstParser>();
    names = {"Timestamp", "Request tokens", "Response tokens"};
  } else {
    RACKTWIN_CHECK(format == "vidur");
    const bool timed = header.find("arrived_at") != std::string_view::npos;
    parser = std::make_unique<VidurParser>(timed);
    names = {"num_prefill_tokens", "num_decode_tokens"};
    if (timed) names.push_back("arrived_at");
  }
  RACKTWIN_TRY_DONE(parser->bind(header, names));
  return std::unique_ptr<PlainParser>(std::move(parser));
}

namespace {

// The first pass: into columns while they are few, into statistics when they are not.
struct Scan {
  Table table;
  bool held = true, sorted = true;
  std::int64_t origin = 0, last = INT64_MIN, longest = 1, kept = 0;
  Tally tally, scaled;

  void measure(const PlainRow& row, Filter& filter) {
    if (!filter.in_trace(row)) {
      ++table.skipped["longer than the largest context"];
      return;
    }
    tally.add(row.ns - origin, row.isl, row.osl);
    longest = std::max(longest, row.osl);
    if (!filter.kept()) return;
    ++kept;
    if (filter.scales()) scaled.add(filter.scaled(row.ns - origin), row.isl, row.osl);
  }
  void stop_holding(Filter& filter) {
    held = false;
    origin = table.stamp_ns.front();
    for (std::size_t i = 0; i < table.rows() && !filter.full(); ++i)
      measure({table.stamp_ns[i], table.isl[i], table.osl[i]}, filter);
    Table rest;
    rest.skipped = std::move(table.skipped);
    table = std::move(rest);
  }
};

}  // namespace

Result<Trace> open_plain(const Input& input, const std::string& format,
                         const TraceOptions& options) {
  RACKTWIN_TRY(std::unique_ptr<Bytes> bytes, input.open());
  PlainRows rows(std::move(bytes), input, format);
  RACKTWIN_TRY_DONE(rows.start());
  Scan scan;
  Filter filter(options);
  std::int64_t used = 0;
  for (;;) {
    if (scan.sorted && options.limit && used >= *options.limit) break;
    PlainRow row;
    const Outcome outcome = rows.next(row);
    if (outcome == Outcome::refuse) break;
    if (outcome == Outcome::skip) {
      ++scan.table.skipped[rows.parser().reason];
      continue;
    }
    ++used;
    scan.sorted = scan.sorted && row.ns >= scan.last;
    scan.last = row.ns;
    if (!scan.held) {
      if (!scan.sorted)
        return Error{Error::Code::invalid_input,
                     fmt::format("is earlier than the row before it; a trace of more than {} "
                                 "rows must be sorted by time",
                                 options.held_rows),
                     input.at(rows.line())};
      scan.measure(row, filter);
      continue;
    }
    scan.table.add(row.ns, row.isl, row.osl);
    if (scan.table.rows() == most_held_rows)
      return Error{
          Error::Code::invalid_input,
          fmt::format("has more than {} rows: too many to hold for copies", most_held_rows),
          input.name};
    if (static_cast<std::int64_t>(scan.table.rows()) > options.held_rows && scan.sorted &&
        options.scaling.copies == 1)
      scan.stop_holding(filter);
  }
  if (rows.error) return *rows.error;
  scan.table.format = rows.parser().format;
  scan.table.time_unit = rows.parser().time_unit;
  if (scan.held) return finish(std::move(scan.table), input, options);
  if (const auto problem = span_problem(scan.last - scan.origin, options.scaling))
    return Error{Error::Code::invalid_input, *problem, input.name};
  Trace trace;
  trace.info.format = scan.table.format;
  trace.info.time_unit = scan.table.time_unit;
  trace.info.stats = scan.tally.result();
  trace.info.scaled = filter.scales() ? scan.scaled.result() : trace.info.stats;
  trace.info.skipped = scan.table.skipped;
  RACKTWIN_TRY(std::unique_ptr<Bytes> again, input.open());
  PlainRows second(std::move(again), input, format);
  RACKTWIN_TRY_DONE(second.start());
  trace.source = std::make_unique<StreamSource>(std::move(second), options, scan.kept, scan.origin,
                                                scan.longest);
  return trace;
}

}  // namespace racktwin::workload
