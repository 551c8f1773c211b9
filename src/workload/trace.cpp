#include "workload/trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/text.hpp"
#include "workload/trace_reader.hpp"

namespace racktwin::workload {
namespace {

Error refuse(std::string where, std::string message) {
  return {Error::Code::invalid_input, std::move(message), std::move(where)};
}

Result<Done> check(const TraceOptions& options) {
  const Scaling& scaling = options.scaling;
  if (scaling.copies < 1 || scaling.copies > 1000000)
    return refuse("copies", fmt::format("{} is not between 1 and 1000000", scaling.copies));
  if (!std::isfinite(scaling.compress) || scaling.compress < 1e-6 || scaling.compress > 1e9)
    return refuse("compress", fmt::format("{} is not between 1e-6 and 1e9", scaling.compress));
  if (!std::isfinite(scaling.keep) || scaling.keep <= 0 || scaling.keep > 1)
    return refuse("keep", fmt::format("{} is no chance above 0, up to 1", scaling.keep));
  if (options.limit && *options.limit < 1)
    return refuse("limit", fmt::format("{} requests are not >= 1", *options.limit));
  if (options.max_context && *options.max_context < 2)
    return refuse("max_context", fmt::format("{} tokens are not >= 2", *options.max_context));
  if (options.concurrency && *options.concurrency < 1)
    return refuse("concurrency", fmt::format("{} sessions are not >= 1", *options.concurrency));
  if (options.held_rows < 1)
    return refuse("held_rows", fmt::format("{} rows are not >= 1", options.held_rows));
  if (options.block_tokens < 0 || options.block_tokens > (1 << 20))
    return refuse("block_tokens",
                  fmt::format("{} is not between 0 and 1048576", options.block_tokens));
  const std::vector<std::string> known = trace_formats();
  if (!options.format.empty() &&
      std::find(known.begin(), known.end(), options.format) == known.end())
    return refuse("format", unknown_name("trace format", options.format, known));
  return Done{};
}

bool is_document(const std::string& format) {
  return format == "weka" || format == "otel-agentic";
}

Result<Trace> open_as(const std::vector<Input>& inputs, const std::string& format,
                      const TraceOptions& options) {
  const Input& input = inputs.front();
  if (format.starts_with("azure") || format == "burstgpt" || format == "vidur")
    return open_plain(input, format, options);
  Table table;
  if (is_document(format)) {
    RACKTWIN_TRY(table, read_documents(inputs, format));
  } else if (format == "burstgpt-3" || format == "blis-tracev2") {
    RACKTWIN_TRY(table, read_csv_sessions(input, format));
  } else {
    RACKTWIN_TRY(table, read_json_rows(input, format, options));
  }
  const std::uint64_t instances =
      static_cast<std::uint64_t>(table.rows()) * static_cast<std::uint64_t>(options.scaling.copies);
  if (instances >= UINT32_MAX)
    return refuse(input.name, fmt::format("makes {} requests in {} copies; 4e9 at most", instances,
                                          options.scaling.copies));
  return finish(std::move(table), input, options);
}

// A folder: ServeGen's clients, or one JSON document per session.
Result<Trace> open_folder(const std::string& path, const TraceOptions& options) {
  std::vector<std::string> files;
  std::error_code code;
  bool servegen = false;
  for (auto it = std::filesystem::directory_iterator(path, code);
       !code && it != std::filesystem::directory_iterator(); it.increment(code)) {
    const std::string name = it->path().filename().string();
    servegen = servegen || (name.starts_with("chunk-") && name.ends_with("-trace.csv"));
    for (const char* ending : {".json", ".jsonl", ".json.gz", ".json.zst", ".jsonl.gz"})
      if (name.ends_with(ending)) {
        files.push_back(it->path().string());
        break;
      }
  }
  if (code)
    return Error{Error::Code::io, fmt::format("cannot list the folder: {}", code.message()), path};
  if (servegen) return open_servegen(path, options);
  if (files.empty())
    return refuse(path,
                  "is a folder without a trace: ServeGen's chunk-*-trace.csv, or *.json of "
                  "sessions, are read");
  std::sort(files.begin(), files.end());
  std::vector<Input> inputs;
  std::string format = options.format;
  for (const std::string& file : files) {
    inputs.push_back({file, file, {}});
    if (!options.format.empty()) continue;
    RACKTWIN_TRY(const std::string found, detect_format(inputs.back()));
    if (!is_document(found))
      return refuse(file, fmt::format("is a trace of format {}, of which one file is read, not a "
                                      "folder",
                                      found));
    if (!format.empty() && found != format)
      return refuse(file,
                    fmt::format("is of format {}, the files before it are {}", found, format));
    format = found;
  }
  return open_as(inputs, format, options);
}

Result<Trace> open_input(const Input& input, const TraceOptions& options) {
  std::string format = options.format;
  if (format.empty()) {
    RACKTWIN_TRY(format, detect_format(input));
  }
  return open_as({input}, format, options);
}

}  // namespace

Result<Trace> open_trace(const std::string& path, const TraceOptions& options) {
  RACKTWIN_TRY_DONE(check(options));
  std::error_code code;
  if (std::filesystem::is_directory(path, code)) return open_folder(path, options);
  return open_input({path, path, {}}, options);
}

Result<Trace> open_trace_text(std::string_view content, const std::string& name,
                              const TraceOptions& options) {
  RACKTWIN_TRY_DONE(check(options));
  return open_input({name, std::nullopt, content}, options);
}

Result<TraceInfo> inspect_trace(const std::string& path, const TraceOptions& options) {
  RACKTWIN_TRY(Trace trace, open_trace(path, options));
  return std::move(trace.info);
}

}  // namespace racktwin::workload
