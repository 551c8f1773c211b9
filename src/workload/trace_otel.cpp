// OpenTelemetry spans of agents (Exgentic, inference-perf): a call waits for the calls whose
// answers it quotes, and for the span it names as its parent.
#include <algorithm>
#include <cmath>
#include <map>

#include "base/rng.hpp"
#include "workload/timestamps.hpp"
#include "workload/trace_rows.hpp"

namespace racktwin::workload {
namespace {

constexpr std::int64_t bytes_per_token = 4, block = 16;

struct Call {
  std::int64_t number = 0, start_ns = 0, end_ns = 0, isl = 0, osl = 0, max_tokens = 0;
  std::string id, parent, prompt;
  std::uint64_t answer = 0;           // hash of its text; 0 = none
  std::vector<std::uint64_t> quoted;  // hashes of the answers in its prompt
};

// A message's content: a text, or parts with texts.
std::string content_of(const JsonValue& message) {
  std::string all;
  for (const std::string_view key : {"content", "parts"}) {
    const std::optional<JsonValue> value = message.get(key);
    if (!value) continue;
    all += value->text().value_or("");
    for (const JsonValue& part : value->list().value_or(std::vector<JsonValue>{}))
      for (const std::string_view name : {"text", "content"})
        if (part.is_object())
          if (const auto inner = part.get(name)) all += inner->text().value_or("");
  }
  return all;
}

// The messages of an attribute: a list, or a text that is a list in JSON.
template <class Each>
void each_message(JsonFields& attributes, std::string_view key, Each each) {
  const std::optional<JsonValue> value = attributes.object.get(key);
  if (!value) return;
  JsonText parser;
  JsonValue inner = *value;
  const auto text = value->text();
  const bool wrong = text && parser.parse_copy(*text, inner);
  const auto list = wrong ? std::nullopt : inner.list();
  if (!list) return attributes.fail(fmt::format("has {} that is no list of messages", key));
  for (const JsonValue& message : *list)
    if (message.is_object()) each(message);
}

std::optional<std::int64_t> tokens_of(JsonFields& attributes, std::string_view name,
                                      std::string_view older) {
  const auto tokens = attributes.tokens(name);
  return tokens ? tokens : attributes.tokens(older);
}

std::int64_t estimated(std::size_t bytes) {
  return std::min<std::int64_t>(
      length_limit, (static_cast<std::int64_t>(bytes) + bytes_per_token - 1) / bytes_per_token);
}

// Absent: no model call, which is counted.
std::optional<Call> read_call(JsonFields& span, Table& table) {
  const auto section = span.section("attributes");
  JsonFields attributes;
  if (section) attributes.object = *section;
  const auto operation = section ? attributes.text("gen_ai.operation.name") : std::nullopt;
  const bool model = operation && (*operation == "chat" || *operation == "text_completion" ||
                                   *operation == "generate_content");
  if (!model && span.problem.empty()) {
    ++table.skipped["spans that are no model calls"];
    return std::nullopt;
  }
  Call call;
  const auto start = span.text("start_time"), end = span.text("end_time");
  const auto start_ns = start ? parse_timestamp(*start) : std::nullopt;
  const auto end_ns = end ? parse_timestamp(*end) : std::nullopt;
  if (!start_ns || !end_ns || *end_ns < *start_ns) {
    span.fail("has no start_time and end_time that are dates and times in this order");
    return std::nullopt;
  }
  call.start_ns = *start_ns;
  call.end_ns = *end_ns;
  call.id = span.label("span_id").value_or("");
  call.parent = span.label("parent_span_id").value_or("");
  std::string answer;
  each_message(attributes, "gen_ai.input.messages", [&](const JsonValue& message) {
    const auto role = message.get("role");
    const std::string_view who = role ? role->text().value_or("") : "";
    const std::string content = content_of(message);
    call.prompt.append(who).append("\n").append(content).append("\n");
    if (who == "assistant" && !content.empty()) call.quoted.push_back(hash_of(content));
  });
  each_message(attributes, "gen_ai.output.messages",
               [&](const JsonValue& message) { answer += content_of(message); });
  if (answer.empty()) answer = attributes.text("gen_ai.output.text").value_or("");
  if (!answer.empty()) call.answer = hash_of(answer);
  // Simplified: four bytes of text to a token where the span does not count them. Wrong by the
  // tokenizer's own ratio.
  call.isl = tokens_of(attributes, "gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens")
                 .value_or(estimated(call.prompt.size()));
  call.osl = tokens_of(attributes, "gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens")
                 .value_or(estimated(answer.size()));
  call.max_tokens = attributes.tokens("gen_ai.request.max_tokens").value_or(0);
  if (!attributes.problem.empty()) span.fail(attributes.problem);
  return call;
}

// Simplified: blocks are cut every 16 x 4 bytes of text, so they stand for 16 tokens only on
// average. Equal ids still mean equal prefixes; reuse is off where texts tokenise unevenly.
std::vector<std::uint64_t> blocks_of(const Call& call) {
  constexpr std::size_t step = static_cast<std::size_t>(block * bytes_per_token);
  const auto most = static_cast<std::size_t>((call.isl + block - 1) / block);
  std::vector<std::uint64_t> ids;
  std::uint64_t hash = 0;
  for (std::size_t at = 0; at < call.prompt.size() && ids.size() < most; at += step) {
    hash = mix(hash, hash_of(std::string_view(call.prompt).substr(at, step)));
    ids.push_back(hash);
  }
  return ids;
}

}  // namespace

void read_spans(JsonFields& document, Table& table, std::uint32_t session) {
  const auto spans = document.list("spans");
  if (!spans) return document.fail("lacks spans");
  std::vector<Call> calls;
  std::int64_t number = 0;
  for (const JsonValue& value : *spans) {
    ++number;
    JsonFields span;
    if (!span.open(value)) span.fail("is no object");
    auto call = span.problem.empty() ? read_call(span, table) : std::nullopt;
    if (!span.problem.empty())
      return document.fail(fmt::format("span {} {}", number, span.problem));
    if (!call) continue;
    call->number = number;
    if (call->osl == 0 || call->isl == 0)
      ++table.skipped[call->osl == 0 ? "without output tokens" : "without input tokens"];
    else
      calls.push_back(std::move(*call));
  }
  std::sort(calls.begin(), calls.end(), [](const Call& a, const Call& b) {
    return a.start_ns != b.start_ns ? a.start_ns < b.start_ns : a.number < b.number;
  });
  table.block_tokens = static_cast<int>(block);
  std::map<std::uint64_t, std::size_t> by_answer;
  std::map<std::string, std::size_t> by_id;
  std::vector<std::uint32_t> rows;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const Call& call = calls[i];
    rows.push_back(table.add(call.start_ns, call.isl, call.osl));
    table.set_session(session);
    if (call.max_tokens > 0) table.set_max_tokens(call.max_tokens);
    table.add_blocks(blocks_of(call));
    std::vector<std::size_t> waits;
    for (const std::uint64_t quote : call.quoted)
      if (const auto hit = by_answer.find(quote); hit != by_answer.end())
        waits.push_back(hit->second);
    if (const auto hit = by_id.find(call.parent); hit != by_id.end() && !call.parent.empty())
      waits.push_back(hit->second);
    std::sort(waits.begin(), waits.end());
    waits.erase(std::unique(waits.begin(), waits.end()), waits.end());
    std::int64_t ready = INT64_MIN;
    for (const std::size_t before : waits) {
      if (calls[before].end_ns > call.start_ns) continue;  // it did not wait for that one
      table.edges.emplace_back(rows[before], rows[i]);
      ready = std::max(ready, calls[before].end_ns);
    }
    if (ready != INT64_MIN) table.set_delay(call.start_ns - ready);
    if (call.answer != 0) by_answer[call.answer] = i;
    if (!call.id.empty()) by_id[call.id] = i;
  }
}

}  // namespace racktwin::workload
