// Traces of one JSON object per request (or per session), except the Mooncake family:
// Qwen-Bailian, ServeGen's offline batches, LLMServingSim, Dynamo's request log.
#include "workload/trace_rows.hpp"

#include <fmt/format.h>

#include <cmath>

#include "base/rng.hpp"

namespace racktwin::workload {
namespace {

constexpr std::string_view no_output = "without output tokens";

// Adds the row, or counts why not. A prompt of no tokens and an answer of none are no request.
bool add_row(Table& table, std::int64_t ns, std::int64_t isl, std::int64_t osl) {
  if (osl == 0 || isl == 0) {
    ++table.skipped[std::string(osl == 0 ? no_output : "without input tokens")];
    return false;
  }
  table.add(ns, isl, osl);
  return true;
}

bool fits(std::size_t ids, std::int64_t isl, std::int64_t block) {
  const auto n = static_cast<std::int64_t>(ids);
  return (n - 1) * block < isl && isl <= n * block;
}

// Qwen-Bailian: seconds, blocks of 16, chats that name their parent turn.
class BailianRows final : public JsonRows {
 public:
  explicit BailianRows(const std::string&) {
    table.format = "qwen-bailian";
    table.time_unit = "s";
    table.block_tokens = 16;
  }
  void row(JsonFields& fields, std::int64_t line) override {
    const auto time = fields.number("timestamp", 0, 9e9);
    const auto isl = fields.tokens("input_length"), osl = fields.tokens("output_length");
    const auto chat = fields.whole("chat_id", 0, INT64_MAX);
    const auto parent = fields.whole("parent_chat_id", -1, INT64_MAX);
    const std::vector<std::uint64_t> ids = fields.ids("hash_ids");
    if (!need(fields, "timestamp", time) || !need(fields, "input_length", isl) ||
        !need(fields, "output_length", osl) || !need(fields, "chat_id", chat))
      return;
    if (!ids.empty() && !fits(ids.size(), *isl, 16)) {
      if (misfit_line_ == 0) misfit_line_ = line;
      ++misfits_;
      return;
    }
    if (!add_row(table, std::llround(*time * 1e9), *isl, *osl)) return;
    table.set_session(0);
    table.set_not_before();
    table.add_blocks(ids);
    const auto at = static_cast<std::uint32_t>(table.rows() - 1);
    if (!row_of_chat_.emplace(*chat, at).second)
      fields.fail(fmt::format("has chat_id {} a second time", *chat));
    parent_.push_back(parent.value_or(-1));
  }
  void end() override {
    if (misfits_ > 0)
      table.skipped[fmt::format("with hash ids that do not match the length (the first: line {})",
                                misfit_line_)] = misfits_;
    // Roots by following parents; `unseen` for chats still on the way guards against circles.
    constexpr std::uint32_t unseen = Table::no_session - 1;
    std::fill(table.session.begin(), table.session.end(), unseen);
    std::uint32_t sessions = 0;
    for (std::uint32_t row = 0; row < table.rows(); ++row) {
      std::vector<std::uint32_t> chain;
      std::uint32_t at = row;
      while (table.session[at] == unseen) {
        table.session[at] = Table::no_session;
        chain.push_back(at);
        const auto up = row_of_chat_.find(parent_[at]);
        if (up == row_of_chat_.end()) break;
        table.edges.emplace_back(up->second, at);
        at = up->second;
      }
      std::uint32_t session = table.session[at];
      if (session == Table::no_session) session = sessions++;
      for (const std::uint32_t member : chain) table.session[member] = session;
    }
  }

 private:
  std::map<std::int64_t, std::uint32_t> row_of_chat_;
  std::vector<std::int64_t> parent_;
  std::int64_t misfits_ = 0, misfit_line_ = 0;
};

// ServeGen's offline batches: no arrivals, blocks of 16; some files lack the output.
class OfflineRows final : public JsonRows {
 public:
  explicit OfflineRows(const std::string&) {
    table.format = "servegen-offline";
    table.time_unit = "none";
    table.block_tokens = 16;
  }
  void row(JsonFields& fields, std::int64_t line) override {
    const auto isl = fields.tokens("input_length"), osl = fields.tokens("output_length");
    const std::vector<std::uint64_t> ids = fields.ids("hash_ids");
    if (!need(fields, "input_length", isl)) return;
    if (!ids.empty() && !fits(ids.size(), *isl, 16)) {
      fields.fail(misfit(ids.size(), 16, *isl));
      return;
    }
    (void)line;
    if (!osl) {
      ++table.skipped["without an output length"];
      return;
    }
    if (add_row(table, 0, *isl, *osl) && !ids.empty()) table.add_blocks(ids);
  }
};

// LLMServingSim: nanoseconds; single requests and agentic sessions, also mixed in one file.
class ServingSimRows final : public JsonRows {
 public:
  explicit ServingSimRows(const std::string&) {
    table.format = "llmservingsim";
    table.time_unit = "ns";
    table.block_tokens = 16;
  }
  void row(JsonFields& fields, std::int64_t) override {
    const auto ns = fields.whole("arrival_time_ns", 0, INT64_MAX / 2);
    if (!need(fields, "arrival_time_ns", ns)) return;
    const auto calls = fields.list("sub_requests");
    if (!calls) {
      call(fields, *ns, std::nullopt, 0);
      return;
    }
    const std::uint32_t session = sessions_++;
    std::optional<std::uint32_t> before;
    std::int64_t tool_ns = 0, at = *ns;
    for (const JsonValue& value : *calls) {
      JsonFields inner;
      if (!inner.open(value)) {
        fields.fail("has a sub-request that is no object");
        return;
      }
      if (call(inner, at, before, tool_ns)) {
        before = static_cast<std::uint32_t>(table.rows() - 1);
        table.set_session(session);
        tool_ns = 0;
      }
      const std::int64_t more = inner.whole("tool_duration_ns", 0, INT64_MAX / 4).value_or(0);
      tool_ns = std::min(tool_ns, INT64_MAX / 4) + more;
      at = std::min(at, INT64_MAX / 2) + more;
      if (!inner.problem.empty()) {
        fields.fail(inner.problem);
        return;
      }
    }
  }

 private:
  bool call(JsonFields& fields, std::int64_t ns, std::optional<std::uint32_t> before,
            std::int64_t delay_ns) {
    const auto isl = fields.tokens("input_toks"), osl = fields.tokens("output_toks");
    if (!need(fields, "input_toks", isl) || !need(fields, "output_toks", osl)) return false;
    const std::vector<std::uint64_t> tokens = fields.ids("input_tok_ids");
    if (!fields.problem.empty() || !add_row(table, ns, *isl, *osl)) return false;
    if (before) {
      table.edges.emplace_back(*before, static_cast<std::uint32_t>(table.rows() - 1));
      table.set_delay(delay_ns);
    }
    if (static_cast<std::int64_t>(tokens.size()) == *isl) table.add_blocks(chained(tokens));
    return true;
  }
  static std::vector<std::uint64_t> chained(const std::vector<std::uint64_t>& tokens) {
    std::vector<std::uint64_t> blocks;
    std::uint64_t hash = 0;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      hash = mix(hash, tokens[i]);
      if (i % 16 == 15 || i + 1 == tokens.size()) blocks.push_back(hash);
    }
    return blocks;
  }
  std::uint32_t sessions_ = 0;
};

// Dynamo's event log, dynamo.request.trace.v1: the ends of requests with what replay needs.
class DynamoRows final : public JsonRows {
 public:
  explicit DynamoRows(const std::string&) {
    table.format = "dynamo-request";
    table.time_unit = "ms";
  }
  void row(JsonFields& fields, std::int64_t) override {
    const auto type = fields.text("event_type");
    if (!type || *type != "request_end") {
      ++table.skipped["events other than request_end"];
      return;
    }
    JsonFields request, replay;
    const auto section = fields.section("request");
    if (!need(fields, "request", section)) return;
    request.object = *section;
    const auto osl = request.tokens("output_tokens");
    const auto time = request.number("request_received_ms", 0, 9e12);
    const auto inner = request.section("replay");
    if (need(request, "output_tokens", osl) && need(request, "request_received_ms", time) &&
        need(request, "replay", inner))
      replay.object = *inner;
    if (!request.problem.empty()) return fields.fail(request.problem);
    const auto isl = replay.tokens("input_length");
    const auto block = replay.whole("trace_block_size", 1, 1 << 20);
    const std::vector<std::uint64_t> ids = replay.ids("input_sequence_hashes");
    if (!need(replay, "input_length", isl)) return fields.fail(replay.problem);
    if (!replay.problem.empty()) return fields.fail(replay.problem);
    if (block && table.block_tokens == 0) table.block_tokens = static_cast<int>(*block);
    if (block.value_or(table.block_tokens) != table.block_tokens)
      return fields.fail(
          fmt::format("has trace_block_size {}, the rows before {}", *block, table.block_tokens));
    if (!ids.empty() && !fits(ids.size(), *isl, std::max(1, table.block_tokens)))
      return fields.fail(misfit(ids.size(), table.block_tokens, *isl));
    if (add_row(table, std::llround(*time * 1e6), *isl, *osl) && !ids.empty())
      table.add_blocks(ids);
  }
};

Result<Table> read_rows(const Input& input, JsonRows& rows) {
  RACKTWIN_TRY(std::unique_ptr<Bytes> bytes, input.open());
  Lines lines(std::move(bytes), input.name);
  JsonText parser;
  std::string_view line;
  ClockCheck clocks;
  while (lines.next(line)) {
    if (line.find_first_not_of(" \t") == std::string_view::npos) continue;
    const auto refuse = [&](std::string message) {
      return Error{Error::Code::invalid_input, std::move(message), input.at(lines.number())};
    };
    JsonValue value;
    JsonFields fields;
    if (auto wrong = parser.parse(line, value)) return refuse(*wrong);
    if (!fields.open(value)) return refuse("is no JSON object");
    const std::size_t before = rows.table.rows();
    rows.row(fields, lines.number());
    if (!fields.problem.empty()) return refuse(fields.problem);
    if (rows.table.rows() == before) continue;
    if (auto mixed = clocks.note(rows.table.stamp_ns.back(), lines.number())) return refuse(*mixed);
  }
  if (lines.error()) return *lines.error();
  rows.end();
  if (!rows.problem.empty())
    return Error{Error::Code::invalid_input, rows.problem,
                 rows.problem_line > 0 ? input.at(rows.problem_line) : input.name};
  return std::move(rows.table);
}

}  // namespace

std::string misfit(std::size_t ids, std::int64_t block, std::int64_t isl) {
  const auto n = static_cast<std::int64_t>(ids);
  return fmt::format(
      "has {} hash ids of {} tokens, which stand for {} to {} tokens, and "
      "input_length {}",
      n, block, n == 0 ? 0 : (n - 1) * block + 1, n * block, isl);
}

Result<Table> read_json_rows(const Input& input, const std::string& format,
                             const TraceOptions& options) {
  std::unique_ptr<JsonRows> rows;
  if (format == "qwen-bailian")
    rows = std::make_unique<BailianRows>(format);
  else if (format == "servegen-offline")
    rows = std::make_unique<OfflineRows>(format);
  else if (format == "llmservingsim")
    rows = std::make_unique<ServingSimRows>(format);
  else if (format == "dynamo-request")
    rows = std::make_unique<DynamoRows>(format);
  else
    rows = mooncake_rows(format, options);
  return read_rows(input, *rows);
}

}  // namespace racktwin::workload
