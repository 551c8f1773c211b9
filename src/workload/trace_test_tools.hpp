// What the tests of trace readers share.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "workload/trace.hpp"

namespace racktwin::workload {

struct Served {
  Request request;
  Instant end;
  double at() const { return static_cast<double>(request.arrival.ns()) / 1e9; }  // seconds
};

// Serves every request in `service`, in order of events, and checks the contract of Source.
inline std::vector<Served> serve_all(Source& source, Seconds service) {
  std::vector<Served> all;
  std::multimap<Instant, std::size_t> running;
  Instant last;
  for (;;) {
    const auto next = source.peek();
    if (!running.empty() && (!next || running.begin()->first < *next)) {
      const auto [when, index] = *running.begin();
      running.erase(running.begin());
      last = when;
      source.completed(all[index].request.id, when);
      continue;
    }
    if (!next) return all;
    Request request = source.next();
    EXPECT_EQ(request.arrival, *next);
    EXPECT_GE(request.arrival, last);
    EXPECT_EQ(request.id.index, all.size());
    EXPECT_GE(request.isl, 1);
    EXPECT_GE(request.osl, 1);
    EXPECT_GE(request.max_tokens, request.osl);
    last = request.arrival;
    const Instant end = request.arrival + service;
    running.emplace(end, all.size());
    all.push_back({std::move(request), end});
  }
}

inline Trace opened(std::string_view content, const TraceOptions& options = {}) {
  auto trace = open_trace_text(content, "t", options);
  EXPECT_TRUE(trace.ok()) << (trace.ok() ? "" : trace.error().text());
  return std::move(trace).value();
}

inline std::string refusal(std::string_view content, const TraceOptions& options = {}) {
  const auto trace = open_trace_text(content, "t", options);
  return trace.ok() ? "accepted as " + trace.value().info.format : trace.error().text();
}

inline std::vector<double> arrivals(const std::vector<Served>& all) {
  std::vector<double> at;
  for (const Served& served : all) at.push_back(served.at());
  return at;
}

}  // namespace racktwin::workload
