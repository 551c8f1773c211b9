#include <fmt/format.h>
#include <zstd.h>

#include <iterator>

#include "base/check.hpp"
#include "base/file.hpp"
#include "report/numbers.hpp"
#include "report/report.hpp"

namespace racktwin::report {
namespace {

using Output = std::back_insert_iterator<std::string>;

// The clock's nanoseconds as milliseconds, every digit kept; empty where it never happened.
void put_ms(Output out, std::int64_t ns) {
  if (ns >= 0) fmt::format_to(out, "{}.{:06}", ns / 1'000'000, ns % 1'000'000);
}

void put_ms(Output out, const std::optional<Seconds>& time) {
  if (time) fmt::format_to(out, "{:.6f}", time->in(unit::ms));
}

void put_replica(Output out, std::int32_t replica) {
  if (replica >= 0) fmt::format_to(out, "{}", replica);
}

// Quoted where a comma, quote or line break would end the cell.
std::string cell(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

}  // namespace

std::string requests_csv(const sim::RunResult& result) {
  constexpr std::array<const char*, 3> ends = {"completed", "shed", "unfinished"};
  std::string text =
      "request_id,end,slo,good,input_tokens,output_tokens,reused_tokens,arrival_ms,scheduled_ms,"
      "prefilled_ms,first_token_ms,last_token_ms,ttft_ms,tpot_ms,e2el_ms,prefill_replica,"
      "decode_replica,preemptions\n";
  const Output out = std::back_inserter(text);
  for (const sim::Record& record : result.records) {
    RACKTWIN_CHECK(record.end < ends.size());
    const auto& slos = result.metrics.slos;
    fmt::format_to(out, "{},{},{},{},{},{},{},", record.id, ends[record.end],
                   record.slo_class < slos.size() ? cell(slos[record.slo_class].name) : "",
                   record.good ? 1 : 0, record.isl, record.osl, record.reused_tokens);
    for (const std::int64_t ns : {record.arrival_ns, record.scheduled_ns, record.prefilled_ns,
                                  record.first_token_ns, record.last_token_ns}) {
      put_ms(out, ns);
      text += ',';
    }
    for (const auto& latency : {record.ttft(), record.tpot(), record.e2e()}) {
      put_ms(out, latency);
      text += ',';
    }
    put_replica(out, record.prefill_replica);
    text += ',';
    put_replica(out, record.decode_replica);
    fmt::format_to(out, ",{}\n", record.preemptions);
  }
  return text;
}

std::string timeseries_csv(const sim::RunResult& result) {
  const sim::Series& series = result.series;
  struct Column {
    std::string name;
    const std::vector<double>* values;
  };
  std::vector<Column> columns = {{"time_s", &series.time_s},
                                 {"arrivals", &series.arrivals},
                                 {"completions", &series.completions},
                                 {"output_tokens_per_s", &series.output_tokens_per_s},
                                 {"input_tokens_per_s", &series.input_tokens_per_s},
                                 {"concurrency", &series.concurrency},
                                 {"ttft_p50_ms", &series.ttft_p50_ms},
                                 {"ttft_p99_ms", &series.ttft_p99_ms},
                                 {"tpot_p50_ms", &series.tpot_p50_ms}};
  RACKTWIN_CHECK(series.pools.size() <= result.pools.size());
  for (std::size_t i = 0; i < series.pools.size(); ++i) {
    const std::string prefix = result.pools[i].name + ".";
    const sim::Series::PoolSeries& pool = series.pools[i];
    columns.push_back({prefix + "running", &pool.running});
    columns.push_back({prefix + "waiting", &pool.waiting});
    columns.push_back({prefix + "kv_used", &pool.kv_used});
    columns.push_back({prefix + "reuse", &pool.reuse});
    columns.push_back({prefix + "busy", &pool.busy});
  }
  std::string text;
  for (const Column& column : columns) text += (text.empty() ? "" : ",") + cell(column.name);
  text += '\n';
  for (std::size_t row = 0; row < series.time_s.size(); ++row) {
    for (const Column& column : columns) {
      if (&column != &columns.front()) text += ',';
      if (row < column.values->size()) text += number((*column.values)[row], "");
    }
    text += '\n';
  }
  return text;
}

std::string compressed(std::string_view text) {
  constexpr int level = 9;
  std::string frame(ZSTD_compressBound(text.size()), '\0');
  ZSTD_CCtx* context = ZSTD_createCCtx();
  RACKTWIN_CHECK(context != nullptr);
  ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, level);
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
  const std::size_t size =
      ZSTD_compress2(context, frame.data(), frame.size(), text.data(), text.size());
  ZSTD_freeCCtx(context);
  RACKTWIN_CHECK(!ZSTD_isError(size));
  frame.resize(size);
  return frame;
}

Result<std::vector<std::string>> write_reports(const sim::RunResult& result,
                                               const std::string& directory) {
  std::vector<std::string> written;
  const auto write = [&](const char* name, const std::string& content) -> Result<Done> {
    const std::string path = directory + "/" + name;
    RACKTWIN_TRY_DONE(write_file(path, content));
    written.push_back(path);
    return Done{};
  };
  RACKTWIN_TRY_DONE(write("report.html", report_html(result)));
  RACKTWIN_TRY_DONE(write("summary.json", summary_json(result)));
  RACKTWIN_TRY_DONE(write("timeseries.csv", timeseries_csv(result)));
  RACKTWIN_TRY_DONE(write("trace.json", perfetto_trace(result)));
  if (!result.records.empty())
    RACKTWIN_TRY_DONE(write("requests.csv.zst", compressed(requests_csv(result))));
  return written;
}

}  // namespace racktwin::report
