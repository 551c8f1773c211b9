// What the readers of recorded traces share: the table that they fill, and its way to
// statistics and to a Source.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/histogram.hpp"
#include "workload/samplers.hpp"
#include "workload/trace.hpp"
#include "workload/trace_input.hpp"

namespace racktwin::workload {

constexpr std::int64_t length_limit = INT32_MAX;
constexpr std::int64_t longest_ns = 315360000000000000;  // ten years: no trace, pause or answer

// Rows by column. The optional columns are empty, or as long as the others.
struct Table {
  std::string format, time_unit;
  int block_tokens = 0;
  bool closed_loop = false;            // some rows wait for others
  std::vector<std::int64_t> stamp_ns;  // as recorded, of any origin
  std::vector<std::uint32_t> isl, osl;
  std::vector<std::uint32_t> session;     // optional; no_session = none
  std::vector<std::uint32_t> max_tokens;  // optional; 0 = not recorded
  std::vector<std::int64_t> delay_ns;     // optional: after the last that a row waits for
  std::vector<std::uint8_t> not_before;   // optional: waits for its stamp too
  // Optional: the ids of a row, as the first `shared` of an earlier list and a tail of its own,
  // since the prompts of a session repeat one another.
  std::vector<std::uint32_t> prompt;  // into `prompts`; no_prompt = no ids
  struct Prompt {
    std::uint32_t base = UINT32_MAX, shared = 0;
    std::uint64_t begin = 0, end = 0;  // the tail, in `tails`
  };
  std::vector<Prompt> prompts;
  std::vector<std::uint64_t> tails;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> edges;  // the second waits for the first
  std::map<std::string, std::int64_t> skipped;

  static constexpr std::uint32_t no_session = UINT32_MAX, no_prompt = UINT32_MAX;
  std::size_t rows() const { return stamp_ns.size(); }
  std::uint32_t add(std::int64_t ns, std::int64_t row_isl, std::int64_t row_osl);
  // Of the row added last: the first `shared` ids of an earlier prompt, and these.
  void add_blocks(const std::vector<std::uint64_t>& ids, std::uint32_t base = no_prompt,
                  std::size_t shared = 0);
  void set_session(std::uint32_t id);  // likewise
  void set_delay(std::int64_t ns);
  void set_not_before();
  void set_max_tokens(std::int64_t tokens);
  std::size_t block_count(std::uint32_t of_prompt) const;
  std::vector<std::uint64_t> blocks_of(std::uint32_t of_prompt) const;
  void take_rows(const std::vector<std::uint32_t>& order);  // those, in that order; edges too
};

// Statistics of requests in order of arrival.
class Tally {
 public:
  void add(std::int64_t ns, std::int64_t isl, std::int64_t osl);
  // `known` ids that are surely in the cache, the last of them `before`, and then these.
  void add_blocks(std::size_t known, std::uint64_t before, const std::uint64_t* ids,
                  std::size_t count);
  void forget_blocks();                      // the cache only: another, independent copy follows
  bool chained() const { return chained_; }  // so far every id came after the same id
  TraceStats result() const;
  std::int64_t sessions = 0;

 private:
  struct Windows {  // counts of requests by window from the first arrival on
    std::int64_t width_ns = 0, index = 0, count = 0;
    double squares = 0;
    void add(std::int64_t since_first);
    double dispersion(std::int64_t requests, std::int64_t span) const;
  };
  class Lengths {  // exact to 2^20, then as Histogram
   public:
    void add(std::int64_t);
    TraceStats::Length result() const;

   private:
    std::vector<std::uint32_t> small_;
    Histogram large_;
    std::int64_t count_ = 0, max_ = 0;
    double sum_ = 0;
  };
  std::array<Windows, 3> windows_{{{1000000000}, {10000000000}, {60000000000}}};
  Lengths isl_, osl_;
  std::int64_t requests_ = 0, first_ = 0, last_ = 0;
  double gap_squares_ = 0;
  IdMap seen_;
  std::int64_t blocks_ = 0, hits_ = 0;
  bool chained_ = true;
};

// One row of a file without blocks, sessions or order of its own: what can be streamed.
struct PlainRow {
  std::int64_t ns = 0, isl = 0, osl = 0;
};
class PlainParser {
 public:
  enum class Outcome : std::uint8_t { row, skip, refuse };
  virtual ~PlainParser() = default;
  virtual Outcome parse(std::string_view line, PlainRow&) = 0;
  std::string format, time_unit;
  std::string reason;  // of the last skip or refusal
};

// Refuses a file whose times are partly since 1970 and partly since a start of its own.
class ClockCheck {
 public:
  std::optional<std::string> note(std::int64_t ns, std::int64_t line);

 private:
  std::optional<std::int64_t> epoch_line_, relative_line_;
};

// The readers by family. `head`: the first bytes of the file, `format`: as detected.
Result<std::unique_ptr<PlainParser>> plain_parser(const std::string& format,
                                                  std::string_view header);
Result<Trace> open_plain(const Input&, const std::string& format, const TraceOptions&);
Result<Table> read_json_rows(const Input&, const std::string& format, const TraceOptions&);
Result<Table> read_documents(const std::vector<Input>&, const std::string& format);
Result<Table> read_csv_sessions(const Input&, const std::string& format);
Result<Trace> open_servegen(const std::string& folder, const TraceOptions&);
Result<std::string> detect_format(const Input&);

// Why a trace lasts too long, as recorded or scaled.
std::optional<std::string> span_problem(std::int64_t span_ns, const Scaling&);

// Sorts, cuts, thins, measures and replays a table.
Result<Trace> finish(Table, const Input&, const TraceOptions&);

}  // namespace racktwin::workload
