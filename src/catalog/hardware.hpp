// What can be bought and what it can do: plain data, read from data/. Every peak is dense,
// per device, one direction; how much of a peak is reached is calibration and lives in
// cost/. The source of every figure is kept by the Catalog.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "base/units.hpp"
#include "numerics/format.hpp"

namespace racktwin::catalog {

struct Gpu {
  std::string name;                                       // "GB300"
  std::map<numerics::Format, FlopsPerSecond> peak_dense;  // absent = not supported
  Bytes hbm_capacity;                                     // addressable, as the driver reports it
  BytesPerSecond hbm_bandwidth;
  BytesPerSecond nvlink_bandwidth;  // into the NVLink domain
  Watts max_power;
};

// A machine or rack of one kind of GPU: the unit of scale-up.
struct System {
  std::string name;  // "GB300-NVL72", "H100-8"
  std::string gpu;
  int gpus_per_node = 8;         // one operating system: a tray of an NVL72, an HGX box
  int nvlink_domain = 8;         // GPUs that reach one another over NVLink
  int gpus_per_rack = 32;        // unit of placement and power
  BytesPerSecond nic_bandwidth;  // scale-out, per GPU
  Seconds nic_latency;           // one way, through the fabric, small message
  Seconds nvlink_latency;
  // KV tiers below HBM, per GPU: host memory over C2C or PCIe, local NVMe, remote store.
  Bytes host_memory;
  BytesPerSecond host_bandwidth;
  Bytes nvme_capacity;
  BytesPerSecond nvme_bandwidth;
};

// The cluster as bought: racks of one system, and how they are wired together.
struct Cluster {
  std::string name;  // "gb300-64-racks"
  std::string system;
  int racks = 1;
};

}  // namespace racktwin::catalog
