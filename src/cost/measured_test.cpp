// The assumed utilisations of data/calibration/datasheet.yaml against single kernels that were
// measured. Figures: ai-dynamo/aiconfigurator 095f58a, systems/data (latencies of TensorRT-LLM
// kernels under CUDA graphs); all-to-alls: TRT-LLM on GB200 NVL72, two-sided, from there too.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "cost/fixtures.hpp"
#include "cost/price.hpp"

namespace racktwin::cost {
namespace {

using namespace fixtures;
using namespace unit;

double seconds(const Pricer& pricer, const Row& row, const Load& load) {
  const Price price = pricer.price(row, evaluate(row, load));
  return (price.busy + price.floor).in(sec);
}

// A linear layer with m rows; quantised formats with the quantisation of the input, as measured.
double gemm(const StepModelSpec& spec, Format format, double m, double n, double k) {
  const Pricer pricer(spec);
  Row row;
  row.shape.format = format;
  row.shape.weights = n * k * format_bytes(format) * byte;
  row.flops.token = 2 * n * k;
  row.activations.token = k * format_bytes(format) + n * 2;
  double sum = seconds(pricer, row, {.tokens = m});
  if (format == Format::bf16) return sum;
  Row quantise;
  quantise.shape.kind = OperatorKind::elementwise;
  quantise.activations.token = k * (2 + format_bytes(format));
  return sum + seconds(pricer, quantise, {.tokens = m});
}

// Rows of one MoE layer of DeepSeek-R1 without shared expert and communication.
double moe(const StepModelSpec& spec, double all_tokens) {
  const Pricer pricer(spec);
  double sum = 0;
  for (const Row& row : walk(spec.model, spec.parallelism, 1, 0)) {
    const bool routed = row.driver == Driver::experts || row.shape.name == "route";
    if (!routed) continue;
    const double own = all_tokens / spec.parallelism.dp;
    sum += seconds(pricer, row, {.tokens = own, .all_tokens = all_tokens});
  }
  return sum;
}

double attention(const StepModelSpec& spec, OperatorKind kind, const RankWork& work) {
  const Pricer pricer(spec);
  for (const Row& row : walk(spec.model, spec.parallelism, 1, 0))
    if (row.shape.kind == kind) return seconds(pricer, row, load_of(work));
  return 0;
}

double exchange(const StepModelSpec& spec, std::string_view name, double tokens) {
  const Pricer pricer(spec);
  for (const Row& row : walk(spec.model, spec.parallelism, 1, 0)) {
    if (row.shape.name != name) continue;
    return seconds(pricer, row,
                   {.all_tokens = tokens * spec.parallelism.dp, .busiest_tokens = tokens});
  }
  return 0;
}

double all_reduce(const StepModelSpec& spec, int ranks, Bytes bytes) {
  Row row;
  row.shape.kind = OperatorKind::collective;
  row.shape.ranks = ranks;
  row.traffic = bytes.in(byte);
  return seconds(Pricer(spec), row, {.tokens = 1});
}

struct Point {
  const char* what;
  double measured_us;
  std::function<double()> predict;
};

TEST(Measured, no_assumed_utilisation_is_off_by_more_than_a_factor_of_two) {
  const StepModelSpec llama_gb300 = on_gb300(llama_8b()), llama_h200 = on_h200(llama_8b());
  const StepModelSpec r1 = on_gb300(deepseek_r1(), {.dp = 8, .ep = 8});
  const StepModelSpec r1_32 = on_gb300(deepseek_r1(), {.dp = 32, .ep = 32});
  const StepModelSpec r1_64 = on_gb300(deepseek_r1(), {.dp = 64, .ep = 64});
  const StepModelSpec r1_h200 = on_h200(deepseek_r1(Format::fp8), {.dp = 8, .ep = 8});
  constexpr auto dec = OperatorKind::attention_decode, pre = OperatorKind::attention_prefill;
  const std::vector<Point> points = {
      {"GB300 bf16 8192x8192 m 16", 23.5, [&] { return gemm(r1, Format::bf16, 16, 8192, 8192); }},
      {"GB300 bf16 8192x8192 m 512", 42.3, [&] { return gemm(r1, Format::bf16, 512, 8192, 8192); }},
      {"GB300 bf16 8192x8192 m 4096", 293.1,
       [&] { return gemm(r1, Format::bf16, 4096, 8192, 8192); }},
      {"GB300 fp8 block 16384x7168 m 64", 26.1,
       [&] { return gemm(r1, Format::fp8, 64, 16384, 7168); }},
      {"GB300 fp8 block 16384x7168 m 4096", 283.2,
       [&] { return gemm(r1, Format::fp8, 4096, 16384, 7168); }},
      {"GB300 nvfp4 16384x7168 m 64", 22.9,
       [&] { return gemm(r1, Format::nvfp4, 64, 16384, 7168); }},
      {"GB300 nvfp4 16384x7168 m 4096", 204.2,
       [&] { return gemm(r1, Format::nvfp4, 4096, 16384, 7168); }},
      {"H200 bf16 8192x8192 m 16", 35.7,
       [&] { return gemm(llama_h200, Format::bf16, 16, 8192, 8192); }},
      {"H200 bf16 8192x8192 m 4096", 760.9,
       [&] { return gemm(llama_h200, Format::bf16, 4096, 8192, 8192); }},
      {"H200 fp8 16384x7168 m 4096", 730,
       [&] { return gemm(llama_h200, Format::fp8, 4096, 16384, 7168); }},
      {"GB300 NVFP4 MoE EP8, 256 tokens", 166, [&] { return moe(r1, 256); }},
      {"GB300 NVFP4 MoE EP8, 4096 tokens", 278, [&] { return moe(r1, 4096); }},
      {"GB300 NVFP4 MoE EP8, 16384 tokens", 658, [&] { return moe(r1, 16384); }},
      {"GB300 NVFP4 MoE EP32, 256 tokens", 72, [&] { return moe(r1_32, 256); }},
      {"GB300 NVFP4 MoE EP32, 8192 tokens", 181, [&] { return moe(r1_32, 8192); }},
      {"H200 FP8 MoE EP8, 256 tokens", 376, [&] { return moe(r1_h200, 256); }},
      {"H200 FP8 MoE EP8, 4096 tokens", 726, [&] { return moe(r1_h200, 4096); }},
      {"H200 FP8 MoE EP8, 16384 tokens", 2499, [&] { return moe(r1_h200, 16384); }},
      {"GB300 GQA 32/8 decode 1 x 1k", 13.1,
       [&] { return attention(llama_gb300, dec, decode(1, 1024)); }},
      {"GB300 GQA 32/8 decode 64 x 4k", 160.6,
       [&] { return attention(llama_gb300, dec, decode(64, 4096)); }},
      {"H200 GQA 32/8 decode 64 x 4k", 262.6,
       [&] { return attention(llama_h200, dec, decode(64, 4096)); }},
      {"GB300 MLA decode fp8 64 x 4k", 45.9, [&] { return attention(r1, dec, decode(64, 4096)); }},
      {"GB300 MLA decode fp8 64 x 16k", 124, [&] { return attention(r1, dec, decode(64, 16384)); }},
      {"GB300 MLA decode fp8 256 x 4k", 150.4,
       [&] { return attention(r1, dec, decode(256, 4096)); }},
      {"H200 MLA decode fp8 256 x 4k", 462,
       [&] { return attention(r1_h200, dec, decode(256, 4096)); }},
      {"GB300 GQA 32/8 prefill 1 x 4k", 157.1,
       [&] { return attention(llama_gb300, pre, prompt(4096)); }},
      {"GB300 GQA 32/8 prefill 1 x 16k", 1441.5,
       [&] { return attention(llama_gb300, pre, prompt(16384)); }},
      {"H200 GQA 32/8 prefill 1 x 8k", 1074.1,
       [&] { return attention(llama_h200, pre, prompt(8192)); }},
      {"GB300 MLA prefill 1 x 4k", 543.7, [&] { return attention(r1, pre, prompt(4096)); }},
      {"GB300 all-reduce 4, 2 MiB", 14.4, [&] { return all_reduce(r1, 4, 2 * MiB); }},
      {"GB300 all-reduce 4, 32 MiB", 121.5, [&] { return all_reduce(r1, 4, 32 * MiB); }},
      {"GB200 NVFP4 dispatch EP8, 128", 22.8, [&] { return exchange(r1, "dispatch", 128); }},
      {"GB200 NVFP4 dispatch EP64, 4096", 304, [&] { return exchange(r1_64, "dispatch", 4096); }},
      {"GB200 combine EP8, 128", 37.4, [&] { return exchange(r1, "combine", 128); }},
      {"GB200 combine EP64, 4096", 1009, [&] { return exchange(r1_64, "combine", 4096); }},
  };
  double logs = 0;
  for (const Point& point : points) {
    const double ratio = point.predict() * 1e6 / point.measured_us;
    EXPECT_GT(ratio, 0.5) << point.what;
    EXPECT_LT(ratio, 2.0) << point.what;
    logs += std::abs(std::log(ratio));
  }
  // Typically within a third.
  EXPECT_LT(std::exp(logs / static_cast<double>(points.size())), 1.33);
}

}  // namespace
}  // namespace racktwin::cost
