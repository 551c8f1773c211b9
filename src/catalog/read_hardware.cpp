#include "base/text.hpp"
#include "catalog/read.hpp"

namespace racktwin::catalog {
namespace {

using yaml::Range;
using yaml::Section;

constexpr Range count{.low = 1, .high = 1e6};
constexpr Range tokens{.low = 1, .high = 1e9};

std::string name_of(Section top) {
  std::string name;
  top.require("name");
  top.field("name", name);
  return name;
}

}  // namespace

Result<Gpu> read_gpu(yaml::Document& document, std::vector<Figure>& figures) {
  Section top = document.top();
  FigureReader reader(top, figures);
  Gpu gpu{.name = name_of(top)};
  top.require("peak_dense");
  Section peaks = top.section("peak_dense");
  reader.prefix = "peak_dense.";
  for (const std::string& key : peaks.keys()) {
    const auto format = numerics::format_named(key);
    if (!format) {
      peaks.fail(key, unknown_name("format", key, numerics::format_names()));
      break;
    }
    reader.require(peaks, key, gpu.peak_dense[*format], yaml::positive);
  }
  reader.prefix.clear();
  reader.require(top, "hbm_capacity", gpu.hbm_capacity, yaml::positive);
  reader.require(top, "hbm_bandwidth", gpu.hbm_bandwidth, yaml::positive);
  reader.require(top, "nvlink_bandwidth", gpu.nvlink_bandwidth, yaml::positive);
  reader.require(top, "max_power", gpu.max_power, yaml::positive);
  if (!gpu.peak_dense.contains(numerics::Format::bf16))
    top.fail("peak_dense", "peak_dense needs at least bf16");
  RACKTWIN_TRY_DONE(document.finish());
  return gpu;
}

Result<System> read_system(yaml::Document& document, std::vector<Figure>& figures) {
  Section top = document.top();
  FigureReader reader(top, figures);
  System system{.name = name_of(top)};
  top.require("gpu");
  top.field("gpu", system.gpu);
  reader.require(top, "gpus_per_node", system.gpus_per_node, count);
  reader.require(top, "nvlink_domain", system.nvlink_domain, count);
  reader.require(top, "gpus_per_rack", system.gpus_per_rack, count);
  reader.require(top, "nic_bandwidth", system.nic_bandwidth, yaml::positive);
  reader.require(top, "nic_latency", system.nic_latency, yaml::positive);
  reader.require(top, "nvlink_latency", system.nvlink_latency, yaml::positive);
  reader.require(top, "host_memory", system.host_memory, yaml::not_negative);
  reader.require(top, "host_bandwidth", system.host_bandwidth, yaml::not_negative);
  reader.require(top, "nvme_capacity", system.nvme_capacity, yaml::not_negative);
  reader.require(top, "nvme_bandwidth", system.nvme_bandwidth, yaml::not_negative);
  if (system.gpus_per_rack % system.gpus_per_node != 0)
    top.fail("gpus_per_rack", "a rack must hold whole nodes");
  if (system.nvlink_domain % system.gpus_per_node != 0 &&
      system.gpus_per_node % system.nvlink_domain != 0)
    top.fail("nvlink_domain", "nodes and NVLink domains must nest");
  RACKTWIN_TRY_DONE(document.finish());
  return system;
}

Result<Cluster> read_cluster(yaml::Document& document, std::vector<Figure>& figures) {
  Section top = document.top();
  FigureReader reader(top, figures);
  Cluster cluster{.name = name_of(top)};
  top.require("system");
  top.field("system", cluster.system);
  reader.require(top, "racks", cluster.racks, count);
  RACKTWIN_TRY_DONE(document.finish());
  return cluster;
}

Result<Engine> read_engine(yaml::Document& document, std::vector<Figure>& figures) {
  Section top = document.top();
  FigureReader reader(top, figures);
  Engine engine{.name = name_of(top)};
  int batching = 0, basis = 0;
  top.require("batching");
  top.choice("batching", batching, {"vllm_v1", "trtllm", "sglang"});
  engine.batching = static_cast<Batching>(batching);
  top.require("memory_basis");
  top.choice("memory_basis", basis, {"of_total", "of_free"});
  engine.memory_basis = static_cast<MemoryBasis>(basis);
  top.require("chunked_prefill");
  top.field("chunked_prefill", engine.chunked_prefill);
  top.require("reserve_full_output");
  top.field("reserve_full_output", engine.reserve_full_output);
  top.require("overlap_scheduling");
  top.field("overlap_scheduling", engine.overlap_scheduling);
  reader.require(top, "block_tokens", engine.block_tokens, Range{.low = 1, .high = 65536});
  reader.require(top, "memory_fraction", engine.memory_fraction,
                 Range{.low = 0, .high = 1, .open_low = true});
  reader.require(top, "reserved", engine.reserved, yaml::not_negative);
  reader.require(top, "max_sequences", engine.max_sequences, count);
  reader.require(top, "max_batch_tokens", engine.max_batch_tokens, tokens);
  reader.require(top, "step_overhead", engine.step_overhead, yaml::not_negative);
  reader.require(top, "sequence_overhead", engine.sequence_overhead, yaml::not_negative);
  reader.require(top, "request_overhead", engine.request_overhead, yaml::not_negative);
  std::vector<double> sizes;
  reader.read(top, "graph_sizes", sizes, count);
  for (const double size : sizes) {
    if (size != static_cast<int>(size) ||
        (!engine.graph_sizes.empty() && size <= engine.graph_sizes.back())) {
      top.fail("graph_sizes", "graph_sizes must be whole numbers that ascend");
      break;
    }
    engine.graph_sizes.push_back(static_cast<int>(size));
  }
  RACKTWIN_TRY_DONE(document.finish());
  return engine;
}

}  // namespace racktwin::catalog
