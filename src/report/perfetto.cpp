#include <fmt/format.h>

#include <cmath>
#include <map>

#include "report/json_text.hpp"
#include "report/numbers.hpp"
#include "report/report.hpp"

namespace racktwin::report {
namespace {

// Format: "Trace Event Format" of the Chromium project, which ui.perfetto.dev opens. A group is
// a process, a track a thread; both are numbered from 1 in the order they appear.
class Tracks {
 public:
  explicit Tracks(std::string& out) : out_(out) {}

  struct Place {
    int process = 0, thread = 0;
  };
  Place place(const std::string& track) {
    const std::size_t slash = track.find('/');
    const std::string group = slash == std::string::npos ? "run" : track.substr(0, slash);
    const std::string thread = slash == std::string::npos ? track : track.substr(slash + 1);
    const int pid = process(group);
    const auto [found, fresh] = threads_.try_emplace({pid, thread}, 0);
    if (fresh) {
      found->second = ++last_thread_[pid];
      name("thread_name", pid, found->second, thread);
    }
    return {pid, found->second};
  }
  int process(const std::string& group) {
    const auto [found, fresh] =
        processes_.try_emplace(group, static_cast<int>(processes_.size()) + 1);
    if (fresh) name("process_name", found->second, 0, group);
    return found->second;
  }

 private:
  void name(const char* what, int process, int thread, const std::string& text) {
    out_ += fmt::format(R"({{"ph":"M","name":"{}","pid":{},"tid":{},"args":{{"name":{}}}}},)", what,
                        process, thread, json_text(text));
    out_ += '\n';
  }
  std::string& out_;
  std::map<std::string, int> processes_;
  std::map<std::pair<int, std::string>, int> threads_;
  std::map<int, int> last_thread_;
};

// Microseconds, the unit of the format, with the clock's nanoseconds kept.
std::string microseconds(std::int64_t ns) {
  return fmt::format("{}.{:03}", ns / 1000, ns % 1000);
}

void put_slice(std::string& out, Tracks& tracks, const sim::Slice& slice) {
  const Tracks::Place place = tracks.place(slice.track);
  out += fmt::format(R"({{"ph":"X","name":{},"pid":{},"tid":{},"ts":{},"dur":{})",
                     json_text(slice.name), place.process, place.thread,
                     microseconds(slice.start_ns), microseconds(slice.duration_ns));
  if (!slice.arguments.empty()) {
    out += R"(,"args":{)";
    for (const auto& [name, value] : slice.arguments) {
      if (&name != &slice.arguments.front().first) out += ',';
      out += json_text(name) + ':' + number(value, "null");
    }
    out += '}';
  }
  out += "},\n";
}

void put_counter(std::string& out, int process, const std::string& name,
                 const std::vector<double>& times, const std::vector<double>& values) {
  for (std::size_t i = 0; i < std::min(times.size(), values.size()); ++i) {
    if (!std::isfinite(values[i])) continue;
    out += fmt::format(R"({{"ph":"C","name":{},"pid":{},"ts":{:.3f},"args":{{"value":{}}}}},)",
                       json_text(name), process, times[i] * 1e6, number(values[i], "null"));
    out += '\n';
  }
}

}  // namespace

std::string perfetto_trace(const sim::RunResult& result) {
  std::string out =
      "{\"displayTimeUnit\":\"ms\",\"otherData\":{\"scenario\":" + json_text(result.scenario_name) +
      ",\"version\":" + json_text(result.version) + ",\"digest\":\"" + hexadecimal(result.digest) +
      "\"},\"traceEvents\":[\n";
  Tracks tracks(out);
  const sim::Series& series = result.series;
  const int cluster = tracks.process("cluster");
  put_counter(out, cluster, "concurrency", series.time_s, series.concurrency);
  put_counter(out, cluster, "output tokens/s", series.time_s, series.output_tokens_per_s);
  put_counter(out, cluster, "input tokens/s", series.time_s, series.input_tokens_per_s);
  for (std::size_t i = 0; i < std::min(series.pools.size(), result.pools.size()); ++i) {
    const sim::Series::PoolSeries& pool = series.pools[i];
    const int process = tracks.process(result.pools[i].name);
    put_counter(out, process, "running", series.time_s, pool.running);
    put_counter(out, process, "waiting", series.time_s, pool.waiting);
    put_counter(out, process, "KV used", series.time_s, pool.kv_used);
    put_counter(out, process, "busy", series.time_s, pool.busy);
  }
  for (const sim::Slice& slice : result.slices) put_slice(out, tracks, slice);
  out.erase(out.find_last_not_of("\n,") + 1);  // "cluster" is always there
  return out + "\n]}\n";
}

}  // namespace racktwin::report
