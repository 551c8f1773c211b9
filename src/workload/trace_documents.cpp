// Traces with one JSON document per session: agentic coding sessions (WEKA's
// kv-cache-tester, whole or compact) and OpenTelemetry spans of agents.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "base/rng.hpp"
#include "workload/trace_rows.hpp"

namespace racktwin::workload {
namespace {

constexpr double slack_s = 1.5;  // recorded times are whole seconds
constexpr double longest_s = static_cast<double>(longest_ns) / 1e9;

std::int64_t ns_of(double seconds) {
  return std::llround(seconds * 1e9);
}

// One agentic session. A line of requests is serial: each waits for the answer before it and
// for the sub-agents started since, then for its think time. Sub-agents are lines of their own
// that start when the request before them was answered.
class WekaSession {
 public:
  WekaSession(Table& table, std::uint32_t session) : table_(table), session_(session) {}

  void read(JsonFields& fields) {
    const std::int64_t block = fields.whole("block_size", 1, 1 << 20).value_or(64);
    if (table_.block_tokens == 0) table_.block_tokens = static_cast<int>(block);
    if (block != table_.block_tokens)
      return fields.fail(
          fmt::format("has block_size {}, the sessions before {}", block, table_.block_tokens));
    const auto scope = fields.text("hash_id_scope");
    // Ids are local to a session unless it says otherwise.
    salt_ = scope && *scope == "global" ? 0 : mix(0x77656b61u, session_);
    const auto requests = fields.list("requests");
    if (!requests) return fields.fail("lacks requests");
    line(fields, *requests, 0, std::nullopt, 0);
  }

 private:
  struct End {
    std::uint32_t row = 0;
    double at_s = 0;  // as recorded
  };

  // Returns the end of the line's last request. `gate`: what its first request waits for.
  std::optional<End> line(JsonFields& fields, const std::vector<JsonValue>& entries,
                          double origin_s, std::optional<End> gate, int depth) {
    std::optional<End> last = gate;
    std::vector<End> agents;
    bool first = true;
    for (const JsonValue& value : entries) {
      JsonFields entry;
      if (!entry.open(value)) entry.fail("is no object");
      const auto t = entry.problem.empty() ? entry.number("t", 0, longest_s) : std::nullopt;
      if (!t) entry.fail("lacks t");
      ++number_;
      if (entry.problem.empty() && is_agent(entry)) {
        if (const auto end = agent(entry, origin_s + *t, last, depth)) agents.push_back(*end);
      } else if (entry.problem.empty()) {
        const auto done = request(entry, origin_s + *t, last, agents, first);
        if (done) {
          last = done;
          agents.clear();
          first = false;
        }
      }
      if (!entry.problem.empty()) {
        fields.fail(fmt::format("request {} of the session {}", number_, entry.problem));
        return std::nullopt;
      }
    }
    for (const End& end : agents)
      if (!last || end.at_s > last->at_s) last = end;
    return last;
  }

  static bool is_agent(JsonFields& entry) {
    if (entry.has("subagent")) return true;
    const auto type = entry.text("type");
    return type && *type == "subagent";
  }

  // In the tester's files the entry is stamped when the sub-agent ended and its requests
  // count from its start; in other builds they count from the session's.
  std::optional<End> agent(JsonFields& entry, double at_s, std::optional<End> last, int depth) {
    const auto requests = entry.list("requests");
    if (!requests || requests->size() == 0) return std::nullopt;
    if (depth >= 8) {
      entry.fail("nests sub-agents more than 8 deep");
      return std::nullopt;
    }
    auto lasted_ms = entry.number("duration_ms", 0, longest_s * 1e3);
    if (!lasted_ms) lasted_ms = entry.number("dur_ms", 0, longest_s * 1e3);
    double start_s = at_s - lasted_ms.value_or(0) / 1e3;
    if (last && start_s < last->at_s - slack_s) start_s = at_s;
    start_s = std::max(0.0, start_s);
    JsonFields inner;
    double first_t = 0;
    if (inner.open(requests->front())) first_t = inner.number("t", 0, longest_s).value_or(0);
    const bool session_based = first_t >= start_s - slack_s;
    return line(entry, *requests, session_based ? 0 : start_s, last, depth + 1);
  }

  std::optional<End> request(JsonFields& entry, double at_s, std::optional<End> last,
                             const std::vector<End>& agents, bool opens) {
    auto isl = entry.tokens("in"), osl = entry.tokens("out");
    if (!isl) isl = entry.tokens("inp");
    if (!isl || !osl) {
      entry.fail(!isl ? "lacks in" : "lacks out");
      return std::nullopt;
    }
    auto api = entry.number("api_time", 0, longest_s),
         think = entry.number("think_time", 0, longest_s);
    if (!api) api = entry.number("api", 0, longest_s);
    if (!think) think = entry.number("think", 0, longest_s);
    if (*osl == 0 || *isl == 0) {
      ++table_.skipped[*osl == 0 ? "without output tokens" : "without input tokens"];
      think_skipped_ = true;
      return std::nullopt;
    }
    const std::uint32_t row = table_.add(ns_of(at_s), *isl, *osl);
    table_.set_session(session_);
    add_ids(entry, *isl);
    // A think time counts from an answer of the same line.
    if (opens) think.reset();
    if (last || !agents.empty()) wait(row, at_s, think, last, agents);
    think_skipped_ = false;
    return End{row, at_s + api.value_or(0)};
  }

  void wait(std::uint32_t row, double at_s, std::optional<double> think, std::optional<End> last,
            const std::vector<End>& agents) {
    double gate_s = last ? last->at_s : 0;
    bool agent_gates = false;
    if (last) table_.edges.emplace_back(last->row, row);
    for (const End& end : agents) {
      if (end.at_s > at_s + slack_s) continue;  // it went on in the background
      table_.edges.emplace_back(end.row, row);
      gate_s = std::max(gate_s, end.at_s);
      agent_gates = true;
    }
    // A recorded think time counts from the answer before, whatever sub-agents did meanwhile.
    const bool as_recorded = think && !agent_gates && !think_skipped_ && last;
    table_.set_delay(ns_of(as_recorded ? *think : std::max(0.0, at_s - gate_s)));
  }

  void add_ids(JsonFields& entry, std::int64_t isl) {
    std::vector<std::uint64_t> ids = entry.ids("hash_ids");
    const auto known = entry.whole("blocks", 0, length_limit);
    const auto n = static_cast<std::int64_t>(
        ids.empty() && known ? *known : static_cast<std::int64_t>(ids.size()));
    if (n == 0) return;
    const std::int64_t size = table_.block_tokens;
    if (n != isl / size && n != (isl + size - 1) / size)
      return entry.fail(misfit(static_cast<std::size_t>(n), size, isl));
    if (ids.empty())
      return rebuild(static_cast<std::size_t>(n),
                     entry.whole("prefix_hit_blocks", 0, n).value_or(0));
    if (salt_ != 0)
      for (std::uint64_t& id : ids) id = mix(salt_, id);
    const auto [mine, old] =
        std::mismatch(ids.begin(), ids.end(), ids_before_.begin(), ids_before_.end());
    const auto shared = static_cast<std::size_t>(mine - ids.begin());
    table_.add_blocks({mine, ids.end()}, prompt_before_, shared);
    prompt_before_ = table_.prompt.back();
    ids_before_ = std::move(ids);
  }

  // The compact form tells how many blocks were in the session's cache: they are the first of
  // the latest request that has so many, and the others are new.
  void rebuild(std::size_t count, std::int64_t hit) {
    auto shared = static_cast<std::size_t>(hit);
    std::uint32_t base = Table::no_prompt;
    for (auto it = prompts_.rbegin(); it != prompts_.rend() && shared > 0; ++it)
      if (table_.block_count(*it) >= shared) {
        base = *it;
        break;
      }
    if (base == Table::no_prompt) shared = 0;
    std::vector<std::uint64_t> fresh(count - shared);
    for (std::uint64_t& id : fresh) id = mix(salt_, fresh_++);
    table_.add_blocks(fresh, base, shared);
    prompts_.push_back(table_.prompt.back());
  }

  Table& table_;
  std::uint32_t session_;
  std::uint64_t salt_ = 0, fresh_ = 0;
  std::int64_t number_ = 0;
  bool think_skipped_ = false;  // a think time after a left-out request counts from that
  std::uint32_t prompt_before_ = Table::no_prompt;
  std::vector<std::uint64_t> ids_before_;
  std::vector<std::uint32_t> prompts_;
};

Result<Done> read_document(JsonFields& fields, const std::string& format, Table& table,
                           std::uint32_t session) {
  if (format == "otel-agentic")
    read_spans(fields, table, session);
  else
    WekaSession(table, session).read(fields);
  if (fields.problem.empty()) return Done{};
  return Error{Error::Code::invalid_input, fields.problem, ""};
}

// A file is one document, a list of documents, or one per line.
Result<Done> read_one(const Input& input, const std::string& format, Table& table,
                      std::uint32_t& sessions) {
  const auto place = [&](Error error, std::string where) {
    error.where = std::move(where);
    return error;
  };
  JsonText parser;
  RACKTWIN_TRY(std::unique_ptr<Bytes> bytes, input.open());
  Lines lines(std::move(bytes), input.name);
  std::string_view line;
  bool by_line = true;
  while (lines.next(line)) {
    if (line.find_first_not_of(" \t") == std::string_view::npos) continue;
    JsonValue value;
    JsonFields fields;
    auto wrong = parser.parse(line, value);
    if (!wrong && !fields.open(value)) wrong = "is no JSON object";
    if (wrong && lines.number() == 1) {
      by_line = false;  // the document spans lines, or is a list
      break;
    }
    if (wrong) return Error{Error::Code::invalid_input, *wrong, input.at(lines.number())};
    auto done = read_document(fields, format, table, sessions++);
    if (!done.ok()) return place(done.error(), input.at(lines.number()));
  }
  if (by_line && lines.error()) return *lines.error();
  if (by_line) return Done{};
  RACKTWIN_TRY(const std::string content, input.all());
  JsonValue whole;
  if (auto wrong = parser.parse(content, whole))
    return Error{Error::Code::invalid_input, *wrong, input.name};
  for (const JsonValue& document : whole.list().value_or(std::vector<JsonValue>{whole})) {
    JsonFields fields;
    if (!fields.open(document))
      return Error{Error::Code::invalid_input, "is no list of JSON objects", input.name};
    auto done = read_document(fields, format, table, sessions++);
    if (!done.ok()) return place(done.error(), input.name);
  }
  return Done{};
}

}  // namespace

Result<Table> read_documents(const std::vector<Input>& inputs, const std::string& format) {
  Table table;
  table.format = format;
  table.time_unit = format == "otel-agentic" ? "timestamp (us)" : "s";
  std::uint32_t sessions = 0;
  for (const Input& input : inputs) RACKTWIN_TRY_DONE(read_one(input, format, table, sessions));
  return table;
}

}  // namespace racktwin::workload
