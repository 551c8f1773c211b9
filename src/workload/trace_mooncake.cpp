// The Mooncake family. One shape, many dialects: plain rows with milliseconds (Mooncake),
// seconds (vLLM's timed trace), turns with delays (AIPerf), requests that wait for others by
// name (agentic Mooncake), turns that tell only what is new (Dynamo's mooncake-delta), and ids
// that are texts (ART).
#include <algorithm>
#include <cmath>

#include "base/rng.hpp"
#include "workload/trace_rows.hpp"

namespace racktwin::workload {
namespace {

constexpr double longest_ms = static_cast<double>(longest_ns) / 1e6;

struct Raw {
  std::int64_t line = 0, isl = 0, osl = 0;
  std::optional<double> time;  // in the file's unit
  std::optional<double> delay_ms;
  std::uint32_t session = Table::no_session;
  std::uint64_t block_begin = 0, block_end = 0;
  std::vector<std::string> waits_for;
};

class MooncakeRows final : public JsonRows {
 public:
  MooncakeRows(std::string format, const TraceOptions& options)
      : format_(std::move(format)), options_(options) {}

  void row(JsonFields& fields, std::int64_t line) override {
    const std::string_view key = format_ == "art" ? "timestamp_ms" : "timestamp";
    Raw raw{.line = line};
    raw.time = fields.number(key, 0, 9e15);
    if (fields.has(key) && !raw.time && fields.problem.empty())
      fields.fail(fmt::format("has a {} that is no number", key));
    raw.delay_ms = fields.number("delay", 0, longest_ms);
    const auto tool_wait = fields.number("tool_wait_ms", 0, longest_ms);
    if (tool_wait) raw.delay_ms = raw.delay_ms.value_or(0) + *tool_wait;
    std::optional<std::int64_t> isl = fields.tokens("input_length");
    // Simplified: four bytes of text to a token where only the text is given. Wrong by the
    // tokenizer's own ratio, up to two times for other scripts than Latin.
    if (const auto text = fields.text("text_input"); text && !isl)
      isl = std::max<std::int64_t>(1, static_cast<std::int64_t>(text->size() + 3) / 4);
    const auto osl = fields.tokens("output_length");
    const auto session = fields.label("session_id"), id = fields.label("request_id");
    read_waits(fields, raw);
    const std::vector<std::uint64_t> ids = fields.ids("hash_ids");
    if (!need(fields, "input_length", isl)) return;
    if (raw.time && *raw.time > 9e12) fields.fail("has a timestamp beyond 9e12");
    fractional_ = fractional_ || (raw.time && *raw.time != std::floor(*raw.time));
    if (!osl || *osl == 0 || *isl == 0) {
      ++table.skipped[!osl        ? "without an output length"
                      : *osl == 0 ? "without output tokens"
                                  : "without input tokens"];
      return;
    }
    raw.isl = *isl;
    raw.osl = *osl;
    if (session)
      raw.session = session_of_.emplace(*session, static_cast<std::uint32_t>(session_of_.size()))
                        .first->second;
    if (id && !row_of_id_.emplace(*id, raws_.size()).second && !raw.waits_for.empty())
      fields.fail(fmt::format("has request_id {} a second time", *id));
    raw.block_begin = blocks_.size();
    blocks_.insert(blocks_.end(), ids.begin(), ids.end());
    raw.block_end = blocks_.size();
    raws_.push_back(std::move(raw));
  }

  void end() override {
    if (!settle_time() || !settle_blocks()) return;
    const bool delta = is_delta();
    if (delta) accumulate();
    table.format = delta ? "mooncake-delta" : format_;
    if (format_ == "mooncake" && !session_of_.empty() && !delta) table.format = "mooncake-sessions";
    build();
  }

 private:
  void read_waits(JsonFields& fields, Raw& raw) {
    const auto names = fields.list("wait_for");
    if (!names) return;
    for (const JsonValue& name : *names) {
      const auto text = name.text();
      raw.waits_for.push_back(text ? std::string(*text) : name.shown());
    }
  }

  bool refuse(std::int64_t line, std::string message) {
    problem = std::move(message);
    problem_line = line;
    return false;
  }

  // Milliseconds, unless plain rows have fractions: then seconds, as vLLM's timed traces.
  bool settle_time() {
    const bool sessions = !session_of_.empty();
    if (format_ == "mooncake" && options_.format.empty() && !sessions && fractional_)
      format_ = "timed-trace";
    ns_per_unit_ = format_ == "timed-trace" ? 1e9 : 1e6;
    const Raw* stamped = nullptr;
    std::vector<bool> begun(session_of_.size());
    const Raw* bare = nullptr;  // the first that should have a time and has none
    ClockCheck clocks;
    for (const Raw& raw : raws_) {
      if (raw.time && *raw.time * ns_per_unit_ > 9e18)
        return refuse(raw.line, fmt::format("has timestamp {}, beyond 285 years", *raw.time));
      if (raw.time)
        if (auto mixed = clocks.note(std::llround(*raw.time * ns_per_unit_), raw.line))
          return refuse(raw.line, *mixed);
      const bool in_session = raw.session != Table::no_session;
      const bool later_turn = (in_session && begun[raw.session]) || !raw.waits_for.empty();
      if (in_session) begun[raw.session] = true;
      if (raw.time && !stamped) stamped = &raw;
      if (!raw.time && !later_turn && !bare) bare = &raw;
    }
    if (stamped && bare)
      return refuse(bare->line, fmt::format("lacks a timestamp, which line {} has; all requests "
                                            "(of a session, the first) have one, or none",
                                            stamped->line));
    table.time_unit = !stamped ? "none" : format_ == "timed-trace" ? "s" : "ms";
    return true;
  }

  std::optional<const Raw*> first_misfit(std::int64_t block) const {
    for (const Raw& raw : raws_) {
      const auto n = static_cast<std::int64_t>(raw.block_end - raw.block_begin);
      if (n > 0 && !((n - 1) * block < raw.isl && raw.isl <= n * block)) return &raw;
    }
    return std::nullopt;
  }

  // The size that the format has; another only where at least three rows of three blocks or
  // more agree on it and no row denies it.
  bool settle_blocks() {
    std::int64_t block = format_ == "timed-trace" ? 16 : format_ == "art" ? 256 : 512;
    if (options_.block_tokens > 0) block = options_.block_tokens;
    const auto bad = first_misfit(block);
    if (bad && options_.block_tokens == 0) {
      std::int64_t telling = 0;
      for (const Raw& raw : raws_) telling += raw.block_end - raw.block_begin >= 3;
      for (const std::int64_t other : {16, 32, 64, 128, 256, 512, 1024})
        if (telling >= 3 && !first_misfit(other)) {
          table.block_tokens = static_cast<int>(other);
          return true;
        }
    }
    if (bad)
      return refuse((*bad)->line,
                    misfit((*bad)->block_end - (*bad)->block_begin, block, (*bad)->isl));
    table.block_tokens = static_cast<int>(block);
    return true;
  }

  // Do turns tell the whole prompt or only what is new? A whole prompt begins with the first
  // block of the turn before; without ids, it is not shorter than that.
  bool is_delta() const {
    if (!options_.format.empty()) return options_.format == "mooncake-delta";
    std::vector<const Raw*> last(session_of_.size());
    std::int64_t with_ids = 0, extends = 0, pairs = 0, shorter = 0;
    for (const Raw& raw : raws_) {
      if (raw.session == Table::no_session) continue;
      const Raw* before = std::exchange(last[raw.session], &raw);
      if (!before) continue;
      ++pairs;
      shorter += raw.isl < before->isl;
      if (raw.block_begin == raw.block_end || before->block_begin == before->block_end) continue;
      ++with_ids;
      extends += blocks_[raw.block_begin] == blocks_[before->block_begin];
    }
    if (with_ids > 0) return extends == 0 && shorter * 2 >= pairs;
    return pairs > 0 && shorter * 5 > pairs * 4;
  }

  // Prompts become the whole: what was asked and answered before, and the new tokens. Whole
  // blocks of the first prompt keep their ids, the later ones belong to the session alone.
  void accumulate() {
    std::vector<std::int64_t> said(session_of_.size()), first_full(session_of_.size());
    std::vector<std::uint64_t> first_begin(session_of_.size());
    std::vector<std::uint64_t> blocks;
    for (Raw& raw : raws_) {
      if (raw.session == Table::no_session) continue;
      const bool first = said[raw.session] == 0;
      if (first) {
        first_begin[raw.session] = raw.block_begin;
        const bool known = raw.block_end > raw.block_begin;
        first_full[raw.session] = known ? raw.isl / table.block_tokens : 0;
      }
      raw.isl = std::min<std::int64_t>(raw.isl + said[raw.session], length_limit);
      said[raw.session] = raw.isl + raw.osl;
    }
    for (Raw& raw : raws_) {
      const std::uint64_t begin = raw.block_begin, end = raw.block_end;
      raw.block_begin = blocks.size();
      if (raw.session == Table::no_session) {
        blocks.insert(blocks.end(), blocks_.begin() + static_cast<std::ptrdiff_t>(begin),
                      blocks_.begin() + static_cast<std::ptrdiff_t>(end));
      } else {
        const std::uint64_t salt = mix(0x64656c7461u, raw.session);
        const std::int64_t size = table.block_tokens, full = raw.isl / size;
        for (std::int64_t i = 0; i < full; ++i)
          blocks.push_back(i < first_full[raw.session]
                               ? blocks_[first_begin[raw.session] + static_cast<std::size_t>(i)]
                               : mix(salt, static_cast<std::uint64_t>(i)));
        if (raw.isl % size != 0)
          blocks.push_back(mix(mix(salt, static_cast<std::uint64_t>(full)),
                               static_cast<std::uint64_t>(raw.isl % size)));
      }
      raw.block_end = blocks.size();
    }
    blocks_ = std::move(blocks);
  }

  bool add_waits(const Raw& raw, std::uint32_t row) {
    for (const std::string& name : raw.waits_for) {
      const auto found = row_of_id_.find(name);
      if (found == row_of_id_.end())
        return refuse(raw.line,
                      fmt::format("waits for request \"{}\", which is not in the trace", name));
      table.edges.emplace_back(static_cast<std::uint32_t>(found->second), row);
    }
    return true;
  }

  void build() {
    std::vector<std::optional<std::uint32_t>> last(session_of_.size());
    for (const Raw& raw : raws_) {
      const std::int64_t delay_ns = std::llround(raw.delay_ms.value_or(0) * 1e6);
      std::int64_t ns = raw.time ? std::llround(*raw.time * ns_per_unit_) : delay_ns;
      const bool in_session = raw.session != Table::no_session;
      const std::optional<std::uint32_t> before = in_session ? last[raw.session] : std::nullopt;
      // A turn that only has a delay is stamped as if answers took no time.
      if (!raw.time && before) ns = std::min(table.stamp_ns[*before], 8 * longest_ns) + delay_ns;
      const std::uint32_t row = table.add(ns, raw.isl, raw.osl);
      if (raw.block_end > raw.block_begin)
        table.add_blocks({blocks_.begin() + static_cast<std::ptrdiff_t>(raw.block_begin),
                          blocks_.begin() + static_cast<std::ptrdiff_t>(raw.block_end)});
      if (in_session) {
        table.set_session(raw.session);
        last[raw.session] = row;
      }
      if (!raw.waits_for.empty()) {
        if (!add_waits(raw, row)) return;
      } else if (before) {
        table.edges.emplace_back(*before, row);
      } else {
        continue;
      }
      if (raw.delay_ms) table.set_delay(delay_ns);
      if (raw.time) table.set_not_before();
    }
  }

  std::string format_;
  TraceOptions options_;
  std::vector<Raw> raws_;
  std::vector<std::uint64_t> blocks_;
  std::map<std::string, std::uint32_t> session_of_;
  std::map<std::string, std::size_t> row_of_id_;
  bool fractional_ = false;
  double ns_per_unit_ = 1e6;
};

}  // namespace

std::unique_ptr<JsonRows> mooncake_rows(const std::string& format, const TraceOptions& options) {
  return std::make_unique<MooncakeRows>(format, options);
}

}  // namespace racktwin::workload
