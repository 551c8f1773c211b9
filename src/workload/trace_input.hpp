// Bytes and lines of trace files of any size: plain, gzip or zstd, from disk or memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace racktwin::workload {

constexpr std::size_t line_limit = std::size_t{64} << 20;       // bytes of one line
constexpr std::size_t document_limit = std::size_t{512} << 20;  // of a file that is one value
constexpr std::size_t read_slack = 64;  // readable bytes after every line (simdjson)

class Bytes {  // a file, or memory, decompressed where its first bytes say gzip or zstd
 public:
  virtual ~Bytes() = default;
  virtual Result<std::size_t> read(char* into, std::size_t room) = 0;  // 0: the end
};

struct Input {
  std::string name;  // for messages
  std::optional<std::string> path;
  std::string_view text;  // where there is no path
  Result<std::unique_ptr<Bytes>> open() const;
  Result<std::string> all() const;  // up to document_limit, with read_slack in reserve
  std::string at(std::int64_t line) const { return name + ":" + std::to_string(line); }
};

class Lines {  // without their ends; a line beyond line_limit is an error
 public:
  explicit Lines(std::unique_ptr<Bytes>, std::string name);
  bool next(std::string_view& line);  // false: the end, or an error
  std::int64_t number() const { return number_; }
  const std::optional<Error>& error() const { return error_; }

 private:
  bool fill();
  std::unique_ptr<Bytes> bytes_;
  std::string name_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0, end_ = 0, searched_ = 0;
  std::int64_t number_ = 0;
  bool over_ = false;
  std::optional<Error> error_;
};

}  // namespace racktwin::workload
