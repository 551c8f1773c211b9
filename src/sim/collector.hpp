// Folds requests into metrics as they end, and gauges into a time series, in memory that does
// not grow with the number of requests (unless records are asked for).
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "serve/cluster.hpp"
#include "sim/result.hpp"
#include "sim/scenario.hpp"

namespace racktwin::sim {

class Collector final : public serve::Observer {
 public:
  using OnEnd = std::function<void(RequestId)>;
  // `ended` is told of every end, e.g. the source of a closed loop. Ends happen at the time of
  // the clock.
  Collector(const Scenario&, const des::Simulation& clock, OnEnd ended);

  void arrived(Instant when, Instant seen);  // by the client's clock; by the router's
  void ended(const serve::Active&, serve::End, std::string_view reason) override;

  // The run was stopped from outside: what is unfinished now broke no objective.
  void interrupt() { interrupted_ = true; }

  // Gauges at the end of an interval; the cluster has caught up.
  void sample(Instant when, const serve::Cluster&);

  // Metrics of what has ended; latencies between tokens come from the replicas.
  Metrics metrics(int gpus_used, const serve::Cluster&);
  // At most about `most` samples: neighbours are merged.
  Series series(const serve::Cluster&, std::size_t most) const;
  const std::vector<Record>& records() const { return records_; }
  const std::vector<Slice>& slices() const { return slices_; }
  std::uint64_t digest() const { return digest_; }
  const Counts& counts() const { return counts_; }

  struct PoolGauges {  // over samples
    double kv_sum = 0, kv_peak = 0, queue_sum = 0;
    std::int64_t queue_peak = 0, samples = 0;
  };
  const std::vector<PoolGauges>& gauges() const { return gauges_; }

 private:
  struct Moments {
    Histogram histogram;
    double squares = 0;
    void add(std::int64_t value) {
      histogram.add(value);
      squares += static_cast<double>(value) * static_cast<double>(value);
    }
  };
  static Distribution distribution(const Moments&);
  static Distribution distribution(const Histogram&);
  void judge(const serve::Active&, serve::End);
  void keep(const serve::Active&, serve::End, bool good);
  void keep_slices(const serve::Active&);
  Metrics::Steady steady(int gpus_used, const serve::Cluster&) const;
  bool open_loop() const;
  void change_concurrency(Instant when, int by);
  void exact(Metrics&) const;

  const Scenario& scenario_;
  const des::Simulation& clock_;
  OnEnd ended_;
  Instant concurrency_since_, first_arrival_, last_arrival_, last_end_;
  bool any_arrival_ = false;
  std::int64_t warmup_ns_ = 0;
  Counts counts_;
  std::int64_t concurrency_ = 0, concurrency_peak_ = 0;
  double concurrency_area_ = 0;  // requests times nanoseconds
  std::int64_t counted_ = 0, input_tokens_ = 0, output_tokens_ = 0, good_ = 0, good_tokens_ = 0;
  Moments ttft_, tpot_, e2e_, queue_, isl_, osl_;
  std::vector<SloOutcome> slos_;
  std::vector<Record> records_;
  std::vector<Slice> slices_;
  std::uint64_t digest_ = 0;

  Series series_;  // at the base interval
  std::int64_t arrivals_ = 0, completions_ = 0, input_in_interval_ = 0;
  std::int64_t good_in_interval_ = 0;
  std::vector<std::int64_t> completed_by_interval_, good_by_interval_;
  bool interrupted_ = false;
  std::vector<double> ttft_in_interval_, tpot_in_interval_;
  std::vector<PoolGauges> gauges_;
  std::vector<std::int64_t> prompt_before_, reused_before_;
};

}  // namespace racktwin::sim
