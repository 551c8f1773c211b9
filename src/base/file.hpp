// Files as a whole, in and out: read at once, written under a temporary name and renamed,
// so that a reader never meets half a file and a failure leaves the old one.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"

namespace racktwin {

// Refused: missing, a directory, unreadable, larger than `limit` bytes.
Result<std::string> read_file(const std::string& path, std::size_t limit = std::size_t{1} << 30);

// Creates the parent folders. On refusal (not writable, disk full) nothing is left behind.
Result<Done> write_file(const std::string& path, std::string_view content);

}  // namespace racktwin
