// A ServeGen folder: per client the arrivals by window of 600 s and the lengths by 6 hours, as
// distributions to draw from.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>

#include "base/check.hpp"
#include "base/text.hpp"
#include "workload/trace_rows.hpp"

namespace racktwin::workload {
namespace {

constexpr std::int64_t measured_requests = 2000000;

// "{45: 0.0096, 46.0: 0.01}", a dictionary as Python prints it.
std::optional<Lengths> read_pdf(std::string_view text) {
  std::map<std::int64_t, double> weights;
  const char *at = text.data(), *end = at + text.size();
  const auto blank = [&] {
    while (at < end && (*at == ' ' || *at == ',' || *at == '\n')) ++at;
  };
  blank();
  if (at == end || *at++ != '{') return std::nullopt;
  for (blank(); at < end && *at != '}'; blank()) {
    double value = 0, weight = 0;
    const auto first = std::from_chars(at, end, value);
    at = first.ptr;
    blank();
    if (first.ec != std::errc{} || at == end || *at++ != ':') return std::nullopt;
    blank();
    const auto second = std::from_chars(at, end, weight);
    at = second.ptr;
    if (second.ec != std::errc{} || !(value >= 0 && value <= static_cast<double>(length_limit)) ||
        !(weight >= 0 && weight <= 1e12))
      return std::nullopt;
    weights[std::llround(value)] += weight;
  }
  if (at == end) return std::nullopt;
  Lengths lengths{.kind = Lengths::Kind::empirical, .min = 1, .max = length_limit};
  lengths.table.assign(weights.begin(), weights.end());
  return lengths;
}

struct Part {
  double start_s = 0;
  Lengths isl, osl;
};

Result<std::vector<Part>> read_lengths(const Input& input) {
  RACKTWIN_TRY(const std::string content, input.all());
  JsonText parser;
  JsonValue whole;
  const auto refuse = [&](std::string message) {
    return Error{Error::Code::invalid_input, std::move(message), input.name};
  };
  if (auto wrong = parser.parse(content, whole)) return refuse(*wrong);
  if (!whole.is_object()) return refuse("is no JSON object");
  std::vector<Part> parts;
  for (const auto& [key, value] : whole.members()) {
    JsonFields fields;
    const std::optional<double> start = parse_number(key);
    if (!start || *start < 0 || !fields.open(value))
      return refuse(
          fmt::format("has \"{}\" where the start of a part of the day, in seconds, and "
                      "its lengths are due",
                      key));
    const auto isl = fields.text("input_tokens"), osl = fields.text("output_tokens");
    if (!isl || !osl) return refuse(fmt::format("lacks input_tokens or output_tokens at {}", key));
    auto isl_pdf = read_pdf(*isl), osl_pdf = read_pdf(*osl);
    if (!isl_pdf || !osl_pdf)
      return refuse(
          fmt::format("has lengths at {} that are no dictionary {{tokens: weight}}", key));
    // "{}": nothing was sent in that part.
    if (!isl_pdf->table.empty() && !osl_pdf->table.empty())
      parts.push_back({*start, std::move(*isl_pdf), std::move(*osl_pdf)});
  }
  std::sort(parts.begin(), parts.end(),
            [](const Part& a, const Part& b) { return a.start_s < b.start_s; });
  return parts;
}

// window start, rate, cv, kind, and two parameters that follow from those.
Result<Client> read_arrivals(const Input& input) {
  RACKTWIN_TRY(std::unique_ptr<Bytes> bytes, input.open());
  Lines lines(std::move(bytes), input.name);
  Client client;
  std::string_view line;
  while (lines.next(line)) {
    if (line.empty()) continue;
    const auto refuse = [&](std::string message) {
      return Error{Error::Code::invalid_input, std::move(message), input.at(lines.number())};
    };
    std::vector<std::string_view> fields;
    for (std::size_t start = 0; fields.size() < 8;) {
      const std::size_t comma = line.find(',', start);
      fields.push_back(line.substr(start, comma - start));
      if (comma == std::string_view::npos) break;
      start = comma + 1;
    }
    if (fields.size() < 4) return refuse("has fewer than four fields: window, rate, cv, kind");
    const auto start = parse_number(fields[0]), rate = parse_number(fields[1]),
               cv = parse_number(fields[2]);
    const double expected =
        static_cast<double>(client.windows.size()) * client.window.in(unit::sec);
    if (!start || *start != expected)
      return refuse(
          fmt::format("begins at \"{}\"; the window at {} s is due", fields[0], expected));
    if (!rate || *rate < 0 || *rate > 1e9)
      return refuse(fmt::format("has the rate \"{}\", which is not between 0 and 1e9", fields[1]));
    if (!cv || *cv < 0 || *cv > 1000)
      return refuse(fmt::format("has the cv \"{}\", which is not between 0 and 1000", fields[2]));
    Client::Window window{*rate, Arrivals::Kind::poisson, *cv};
    if (fields[3] == "Gamma")
      window.kind = Arrivals::Kind::gamma;
    else if (fields[3] == "Weibull")
      window.kind = Arrivals::Kind::weibull;
    else if (!fields[3].empty())
      return refuse(fmt::format("has the kind \"{}\"; Gamma, Weibull or nothing are known",
                                fields[3].substr(0, 40)));
    if (fields[3].empty()) window.rate = 0;
    client.windows.push_back(window);
  }
  if (lines.error()) return *lines.error();
  if (client.windows.empty()) return Error{Error::Code::invalid_input, "has no window", input.name};
  return client;
}

// The lengths of every 6 hours; a part without any takes those of the nearest that has some.
void set_periods(Client& client, const std::vector<Part>& parts) {
  const double period = client.period.in(unit::sec);
  const double day = static_cast<double>(client.windows.size()) * client.window.in(unit::sec);
  const auto periods = static_cast<std::size_t>(std::max(1.0, std::ceil(day / period)));
  for (std::size_t i = 0; i < periods; ++i) {
    const double start = static_cast<double>(i) * period;
    const auto nearest = std::min_element(parts.begin(), parts.end(), [&](auto& a, auto& b) {
      return std::abs(a.start_s - start) < std::abs(b.start_s - start);
    });
    client.periods.emplace_back(nearest->isl, nearest->osl);
  }
}

// Leaves out what is too long and stops at the limit.
class Limited final : public Source {
 public:
  Limited(std::unique_ptr<Source> source, const TraceOptions& options)
      : source_(std::move(source)), options_(options) {
    advance();
  }
  std::optional<Instant> peek() override {
    if (!ready_) return std::nullopt;
    return ready_->arrival;
  }
  Request next() override {
    RACKTWIN_CHECK(ready_.has_value());
    Request request = std::move(*ready_);
    advance();
    return request;
  }
  void completed(RequestId, Instant) override {}
  std::int64_t too_long() const { return too_long_; }

 private:
  void advance() {
    ready_.reset();
    while (source_->peek() && (!options_.limit || drawn_ < *options_.limit)) {
      Request request = source_->next();
      ++drawn_;
      if (options_.max_context && request.isl + request.osl > *options_.max_context) {
        ++too_long_;
        continue;
      }
      request.id = RequestId{next_id_++};
      ready_ = std::move(request);
      return;
    }
  }
  std::unique_ptr<Source> source_;
  TraceOptions options_;
  std::optional<Request> ready_;
  std::int64_t drawn_ = 0, too_long_ = 0;
  std::uint32_t next_id_ = 0;
};

struct Measured {
  TraceStats stats;
  std::int64_t too_long = 0;
};

Measured measure(const OpenLoop& load, Seconds horizon, const TraceOptions& options) {
  Limited source(generate(load, horizon, options.seed), options);
  Tally tally;
  for (std::int64_t n = 0; n < measured_requests && source.peek(); ++n) {
    const Request request = source.next();
    tally.add(request.arrival.ns(), request.isl, request.osl);
  }
  return {tally.result(), source.too_long()};
}

}  // namespace

Result<Trace> open_servegen(const std::string& folder, const TraceOptions& options) {
  OpenLoop load;
  std::vector<std::pair<std::int64_t, std::string>> files;  // by the client's number
  std::error_code code;
  for (auto it = std::filesystem::directory_iterator(folder, code);
       !code && it != std::filesystem::directory_iterator(); it.increment(code)) {
    const std::string path = it->path().string(), file = it->path().filename().string();
    std::string_view name = file;
    if (!name.starts_with("chunk-") || !name.ends_with("-trace.csv")) continue;
    name.remove_prefix(6);
    name.remove_suffix(10);
    files.emplace_back(parse_integer(name).value_or(0), path);
  }
  std::sort(files.begin(), files.end());
  double total = 0;
  std::size_t windows = 0;
  for (const auto& [number, path] : files) {
    RACKTWIN_TRY(Client client, read_arrivals({path, path, {}}));
    if (windows == 0) windows = client.windows.size();
    if (client.windows.size() != windows)
      return Error{
          Error::Code::invalid_input,
          fmt::format("has {} windows, the clients before {}", client.windows.size(), windows),
          path};
    for (const Client::Window& window : client.windows) client.share += window.rate;
    client.share = (client.share - 1) / static_cast<double>(windows);
    if (client.share == 0) continue;  // never sends
    client.name = fmt::format("client-{}", number);
    const std::string lengths = path.substr(0, path.size() - 9) + "dataset.json";
    if (!std::filesystem::exists(lengths, code))
      return Error{Error::Code::not_found,
                   "the lengths of this client are missing: ServeGen keeps them beside its "
                   "arrivals, in chunk-*-dataset.json",
                   lengths};
    RACKTWIN_TRY(const std::vector<Part> parts, read_lengths({lengths, lengths, {}}));
    if (parts.empty())
      return Error{Error::Code::invalid_input, "has no lengths for a client that sends", lengths};
    set_periods(client, parts);
    total += client.share;
    load.clients.push_back(std::move(client));
  }
  if (load.clients.empty())
    return Error{Error::Code::invalid_input, "has no client that sends anything", folder};
  load.rate = total * unit::per_second;
  if (const auto sound = check(Load{load}); !sound.ok())
    return Error{sound.error().code, sound.error().text(), folder};
  const Seconds span = static_cast<double>(windows) * load.clients.front().window;

  Trace trace;
  trace.info.format = "servegen";
  trace.info.time_unit = "s";
  const Measured recorded = measure(load, span, options);
  trace.info.stats = trace.info.scaled = recorded.stats;
  if (recorded.too_long > 0)
    trace.info.skipped["longer than the largest context"] = recorded.too_long;
  const Scaling& scaling = options.scaling;
  const std::size_t clients = load.clients.size();
  for (int copy = 1; copy < scaling.copies; ++copy)
    for (std::size_t i = 0; i < clients; ++i) load.clients.push_back(load.clients[i]);
  load.rate = load.rate * scaling.copies * scaling.keep * scaling.compress;
  for (Client& client : load.clients) {
    client.window = client.window / scaling.compress;
    client.period = client.period / scaling.compress;
  }
  const Seconds scaled_span = span / scaling.compress;
  if (scaling.copies > 1 || scaling.keep < 1 || scaling.compress != 1)
    trace.info.scaled = measure(load, scaled_span, options).stats;
  trace.source = std::make_unique<Limited>(generate(load, scaled_span, options.seed), options);
  return trace;
}

}  // namespace racktwin::workload
