#include "numerics/format.hpp"

#include <array>

namespace racktwin::numerics {
namespace {

constexpr std::array<FormatInfo, formats> table = {{
    {Format::fp32, "fp32", 32, 0, 0, Format::fp32},
    {Format::bf16, "bf16", 16, 0, 0, Format::bf16},
    {Format::fp16, "fp16", 16, 0, 0, Format::bf16},
    {Format::fp8, "fp8", 8, 0, 0, Format::fp8},
    {Format::int8, "int8", 8, 0, 0, Format::int8},
    {Format::mxfp8, "mxfp8", 8, 32, 8, Format::fp8},
    {Format::nvfp4, "nvfp4", 4, 16, 8, Format::nvfp4},
    {Format::mxfp4, "mxfp4", 4, 32, 8, Format::nvfp4},
    // Weight-only: dequantised to 16 bits before the multiplication (AWQ, GPTQ), group 128.
    {Format::int4, "int4", 4, 128, 16, Format::bf16},
}};

}  // namespace

const FormatInfo& info(Format format) {
  return table[static_cast<std::size_t>(format)];
}
std::span<const FormatInfo> all_formats() {
  return table;
}

std::optional<Format> format_named(std::string_view name) {
  for (const FormatInfo& row : table)
    if (row.name == name) return row.format;
  return std::nullopt;
}

std::vector<std::string> format_names() {
  std::vector<std::string> names;
  for (const FormatInfo& row : table) names.emplace_back(row.name);
  return names;
}

Bytes bytes_per_element(Format format) {
  const FormatInfo& row = info(format);
  const double scale = row.block == 0 ? 0 : static_cast<double>(row.scale_bits) / row.block;
  return (row.element_bits + scale) / 8 * unit::byte;
}

}  // namespace racktwin::numerics
