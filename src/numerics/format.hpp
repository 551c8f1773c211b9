// Number formats of weights, activations and KV caches, as table rows: what they cost in
// bits. The codecs themselves come with the numerics work; nothing here rounds a number.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"

namespace racktwin::numerics {

enum class Format : std::uint8_t { fp32, bf16, fp16, fp8, int8, mxfp8, nvfp4, mxfp4, int4 };
inline constexpr int formats = 9;

struct FormatInfo {
  Format format;
  std::string_view name;
  int element_bits;
  int block;       // elements that share one scale; 0 = scales per tensor or channel, not counted
  int scale_bits;  // of that scale
  // Which tensor-core peak a multiplication in this format reaches, e.g. mxfp4 -> nvfp4's.
  Format math;
};

// OCP Microscaling Formats v1.0 (MXFP8, MXFP4: 32 elements, E8M0 scale); NVIDIA NVFP4
// (16 elements, E4M3 scale).
const FormatInfo& info(Format);
std::span<const FormatInfo> all_formats();
std::optional<Format> format_named(std::string_view name);
std::vector<std::string> format_names();

// Storage of one element with its share of the block scale: nvfp4 4.5 bits, mxfp4 4.25.
Bytes bytes_per_element(Format);

}  // namespace racktwin::numerics
