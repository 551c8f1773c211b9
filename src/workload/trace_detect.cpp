// Which format a file has, told by what is in it; and what to say where none is known.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.hpp"
#include "workload/trace_reader.hpp"

namespace racktwin::workload {
namespace {

constexpr std::size_t head_size = std::size_t{64} << 10;

Error unknown(const Input& input, std::string_view found) {
  return {Error::Code::invalid_input,
          fmt::format("{}; known trace formats: {}", found, fmt::join(trace_formats(), ", ")),
          input.name};
}

bool any_of(std::string_view text, std::initializer_list<std::string_view> starts) {
  return std::any_of(starts.begin(), starts.end(),
                     [&](std::string_view start) { return text.starts_with(start); });
}

// Data that is no text, by its first bytes.
std::optional<std::string_view> binary(std::string_view head) {
  using namespace std::string_view_literals;
  if (head.starts_with("PAR1")) return "a Parquet file: convert it to JSON lines first";
  if (head.starts_with("PK\x03\x04")) return "a zip archive: unpack it first";
  if (head.starts_with("SQLite format 3")) return "an SQLite database";
  if (head.starts_with("\x89HDF")) return "an HDF5 file";
  if (head.starts_with("\x7f"
                       "ELF"))
    return "a program";
  if (head.starts_with("BZh") || head.starts_with("\xfd"
                                                  "7zXZ"))
    return "compressed in a way not read here: gzip and zstd are";
  if (any_of(head, {"\xff\xfe"sv, "\xfe\xff"sv})) return "UTF-16 text: save it as UTF-8";
  const auto odd = std::count_if(head.begin(), head.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 32 && byte != '\n' && byte != '\r' && byte != '\t' && byte != '\f';
  });
  if (odd * 100 > static_cast<std::int64_t>(head.size())) return "binary data";
  if (head.find('\0') != std::string_view::npos) return "binary data";
  return std::nullopt;
}

// The keys of the first object, as far as the head shows them. `inner`: keys one level down.
void keys_of(std::string_view head, std::set<std::string>& keys, std::set<std::string>& inner) {
  int depth = 0, base = 0;
  for (std::size_t i = 0; i < head.size(); ++i) {
    const char c = head[i];
    if (c == '{' || c == '[') {
      ++depth;
      if (c == '{' && base == 0) base = depth;
    } else if (c == '}' || c == ']') {
      if (--depth < base && base > 0) return;
    } else if (c == '"') {
      const std::size_t start = ++i;
      while (i < head.size() && head[i] != '"') i += head[i] == '\\' ? 2 : 1;
      if (i >= head.size()) return;
      std::size_t after = i + 1;
      while (after < head.size() && (head[after] == ' ' || head[after] == '\n')) ++after;
      if (after >= head.size() || head[after] != ':') continue;
      const std::string key(head.substr(start, i - start));
      if (depth == base) keys.insert(key);
      if (depth > base) inner.insert(key);
    }
  }
}

Result<std::string> json_format(const Input& input, std::string_view head) {
  std::set<std::string> keys, inner;
  keys_of(head, keys, inner);
  const auto has = [&](const char* key) { return keys.contains(key); };
  if (has("requests") && (has("block_size") || has("hash_id_scope") || inner.contains("hash_ids") ||
                          inner.contains("prefix_hit_blocks")))
    return std::string("weka");
  if (has("spans")) return std::string("otel-agentic");
  if (has("chat_id") && has("input_length")) return std::string("qwen-bailian");
  if (has("arrival_time_ns") && (has("input_toks") || has("sub_requests")))
    return std::string("llmservingsim");
  if (has("schema") && head.find("dynamo.request.trace") != std::string_view::npos)
    return std::string("dynamo-request");
  if (has("timestamp_ms") && has("input_length")) return std::string("art");
  const bool timed = has("timestamp") || has("delay") || has("session_id");
  if (has("request_id") && has("type") && has("input_length") && !timed)
    return std::string("servegen-offline");
  if (has("input_length") || has("text_input")) return std::string("mooncake");
  if (keys.empty()) return unknown(input, "found JSON without named fields");
  std::string list;
  for (const std::string& key : keys)
    if (list.size() < 120) list += (list.empty() ? "" : ", ") + key;
  if (inner.contains("input_tokens") && inner.contains("output_tokens") && keys.contains("0"))
    return unknown(input,
                   "found the lengths of one ServeGen client; give the folder that holds "
                   "it and the chunk-*-trace.csv files");
  if (has("conversations"))
    return unknown(input,
                   "found conversations as texts (ShareGPT), which have neither arrivals "
                   "nor token counts");
  return unknown(input, fmt::format("found JSON with the fields {}", list));
}

std::vector<std::string> header_of(std::string_view line) {
  std::vector<std::string> names;
  std::size_t start = 0;
  for (std::size_t i = 0; i <= line.size() && names.size() < 64; ++i) {
    if (i < line.size() && line[i] != ',') continue;
    std::string_view name = line.substr(start, i - start);
    while (!name.empty() && (name.front() == ' ' || name.front() == '"')) name.remove_prefix(1);
    while (!name.empty() && (name.back() == ' ' || name.back() == '"')) name.remove_suffix(1);
    names.emplace_back(name);
    start = i + 1;
  }
  return names;
}

Result<std::string> text_format(const Input& input, std::string_view head) {
  std::string_view line = head.substr(0, head.find('\n'));
  if (line.starts_with("version https://git-lfs"))
    return Error{Error::Code::invalid_input,
                 "found a Git LFS pointer, not the data: fetch it with git lfs pull", input.name};
  if (line.starts_with("trace_version:") || line.starts_with("---\ntrace_version:")) {
    const auto rows = head.find("\nrequest_id,");
    if (rows != std::string_view::npos) return std::string("blis-tracev2");
    return unknown(input, "found the header of a BLIS TraceV2; give the CSV file with its rows");
  }
  if (line.ends_with('\r')) line.remove_suffix(1);
  const std::vector<std::string> names = header_of(line);
  const auto has = [&](const char* name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  if (has("TIMESTAMP") && has("ContextTokens") && has("GeneratedTokens"))
    return std::string(has("NumImages") ? "azure-multimodal" : "azure");
  if (has("Timestamp") && has("Request tokens") && has("Response tokens"))
    return std::string(has("Session ID") ? "burstgpt-3" : "burstgpt");
  if (has("num_prefill_tokens") && has("num_decode_tokens")) return std::string("vidur");
  if (has("arrival_time_us") && has("input_tokens")) return std::string("blis-tracev2");
  if (names.size() == 6 && parse_number(names[0]) && parse_number(names[1]) &&
      (names[3] == "Gamma" || names[3] == "Weibull" || names[3].empty()))
    return unknown(input,
                   "found the arrivals of one ServeGen client; give the folder that holds "
                   "it and the chunk-*-dataset.json files");
  std::string shown(line.substr(0, 80));
  if (line.size() > 80) shown += "...";
  const bool table = names.size() > 1 && names[0].size() <= 40 && names[1].size() <= 40;
  if (table) return unknown(input, fmt::format("found columns \"{}\"", shown));
  return unknown(input, fmt::format("found text that begins \"{}\"", shown));
}

}  // namespace

std::vector<std::string> trace_formats() {
  return {"azure-2023",        "azure-2024",     "azure-multimodal", "mooncake",
          "mooncake-sessions", "mooncake-delta", "timed-trace",      "art",
          "qwen-bailian",      "weka",           "otel-agentic",     "burstgpt",
          "burstgpt-3",        "servegen",       "servegen-offline", "vidur",
          "llmservingsim",     "blis-tracev2",   "dynamo-request"};
}

Result<std::string> detect_format(const Input& input) {
  RACKTWIN_TRY(const std::unique_ptr<Bytes> bytes, input.open());
  std::string head(head_size, '\0');
  std::size_t have = 0;
  while (have < head.size()) {
    RACKTWIN_TRY(const std::size_t count, bytes->read(head.data() + have, head.size() - have));
    if (count == 0) break;
    have += count;
  }
  head.resize(have);
  std::string_view view = head;
  if (view.starts_with("\xef\xbb\xbf")) view.remove_prefix(3);
  if (view.find_first_not_of(" \t\r\n") == std::string_view::npos)
    return unknown(input, "found an empty file");
  if (const auto what = binary(view)) return unknown(input, fmt::format("found {}", *what));
  view.remove_prefix(view.find_first_not_of(" \t\r\n"));
  return view.front() == '{' || view.front() == '[' ? json_format(input, view)
                                                    : text_format(input, view);
}

}  // namespace racktwin::workload
