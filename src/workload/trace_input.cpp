// Bytes and lines of trace files: plain, gzip or zstd, from disk or memory.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/check.hpp"
#include "workload/trace_reader.hpp"

namespace racktwin::workload {
namespace {

constexpr std::size_t chunk = std::size_t{128} << 10;

Error io_error(const std::string& name, std::string_view what, int code) {
  const auto kind = code == ENOENT ? Error::Code::not_found : Error::Code::io;
  return {kind, fmt::format("cannot {}: {}", what, std::strerror(code)), name};
}

class FileBytes final : public Bytes {
 public:
  FileBytes(int fd, std::string name) : fd_(fd), name_(std::move(name)) {}
  ~FileBytes() override { ::close(fd_); }
  FileBytes(const FileBytes&) = delete;
  FileBytes& operator=(const FileBytes&) = delete;
  Result<std::size_t> read(char* into, std::size_t room) override {
    for (;;) {
      const ssize_t count = ::read(fd_, into, room);
      if (count >= 0) return static_cast<std::size_t>(count);
      if (errno != EINTR) return io_error(name_, "read the file", errno);
    }
  }

 private:
  int fd_;
  std::string name_;
};

class MemoryBytes final : public Bytes {
 public:
  explicit MemoryBytes(std::string_view text) : left_(text) {}
  Result<std::size_t> read(char* into, std::size_t room) override {
    const std::size_t count = std::min(room, left_.size());
    std::copy_n(left_.data(), count, into);
    left_.remove_prefix(count);
    return count;
  }

 private:
  std::string_view left_;
};

// Gives back the bytes that were looked at first.
class Prefixed final : public Bytes {
 public:
  Prefixed(std::string first, std::unique_ptr<Bytes> rest)
      : first_(std::move(first)), rest_(std::move(rest)) {}
  Result<std::size_t> read(char* into, std::size_t room) override {
    if (at_ == first_.size()) return rest_->read(into, room);
    const std::size_t count = std::min(room, first_.size() - at_);
    std::copy_n(first_.data() + at_, count, into);
    at_ += count;
    return count;
  }

 private:
  std::string first_;
  std::size_t at_ = 0;
  std::unique_ptr<Bytes> rest_;
};

class GzipBytes final : public Bytes {
 public:
  GzipBytes(std::unique_ptr<Bytes> packed, std::string name)
      : packed_(std::move(packed)), name_(std::move(name)), buffer_(chunk) {
    ready_ = ::inflateInit2(&stream_, 15 + 16) == Z_OK;
  }
  ~GzipBytes() override {
    if (ready_) ::inflateEnd(&stream_);
  }
  GzipBytes(const GzipBytes&) = delete;
  GzipBytes& operator=(const GzipBytes&) = delete;

  Result<std::size_t> read(char* into, std::size_t room) override {
    const auto limit = static_cast<uInt>(std::min(room, chunk));
    stream_.next_out = reinterpret_cast<Bytef*>(into);
    stream_.avail_out = limit;
    while (ready_ && stream_.avail_out == limit) {
      if (stream_.avail_in == 0) {
        RACKTWIN_TRY(const std::size_t count, packed_->read(buffer_.data(), buffer_.size()));
        if (count == 0) {
          if (between_) return std::size_t{0};
          return broken("ends in the middle of its gzip data");
        }
        stream_.next_in = reinterpret_cast<Bytef*>(buffer_.data());
        stream_.avail_in = static_cast<uInt>(count);
      }
      if (between_ && ::inflateReset(&stream_) != Z_OK) return broken("has broken gzip data");
      between_ = false;
      const int code = ::inflate(&stream_, Z_NO_FLUSH);
      if (code == Z_STREAM_END)
        between_ = true;  // another member may follow
      else if (code != Z_OK && code != Z_BUF_ERROR)
        return broken("has broken gzip data");
    }
    if (!ready_) return broken("cannot be decompressed: no memory");
    return static_cast<std::size_t>(limit - stream_.avail_out);
  }

 private:
  Error broken(std::string message) const {
    return {Error::Code::invalid_input, std::move(message), name_};
  }
  std::unique_ptr<Bytes> packed_;
  std::string name_;
  std::vector<char> buffer_;
  z_stream stream_{};
  bool ready_ = false, between_ = false;
};

class ZstdBytes final : public Bytes {
 public:
  ZstdBytes(std::unique_ptr<Bytes> packed, std::string name)
      : packed_(std::move(packed)),
        name_(std::move(name)),
        buffer_(chunk),
        stream_(ZSTD_createDStream(), ZSTD_freeDStream) {}

  Result<std::size_t> read(char* into, std::size_t room) override {
    ZSTD_outBuffer out{into, room, 0};
    while (out.pos == 0) {
      if (in_.pos == in_.size) {
        RACKTWIN_TRY(const std::size_t count, packed_->read(buffer_.data(), buffer_.size()));
        if (count == 0) {
          if (whole_) return std::size_t{0};
          return Error{Error::Code::invalid_input, "ends in the middle of its zstd data", name_};
        }
        in_ = {buffer_.data(), count, 0};
      }
      const std::size_t code = ZSTD_decompressStream(stream_.get(), &out, &in_);
      if (ZSTD_isError(code))
        return Error{Error::Code::invalid_input,
                     fmt::format("has broken zstd data: {}", ZSTD_getErrorName(code)), name_};
      whole_ = code == 0;
    }
    return out.pos;
  }

 private:
  std::unique_ptr<Bytes> packed_;
  std::string name_;
  std::vector<char> buffer_;
  std::unique_ptr<ZSTD_DStream, decltype(&ZSTD_freeDStream)> stream_;
  ZSTD_inBuffer in_{nullptr, 0, 0};
  bool whole_ = false;
};

}  // namespace

Result<std::unique_ptr<Bytes>> Input::open() const {
  std::unique_ptr<Bytes> bytes;
  if (path) {
    const int fd = ::open(path->c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return io_error(name, "open the file", errno);
    bytes = std::make_unique<FileBytes>(fd, name);
  } else {
    bytes = std::make_unique<MemoryBytes>(text);
  }
  std::string first(4, '\0');
  std::size_t have = 0;
  while (have < first.size()) {
    RACKTWIN_TRY(const std::size_t count, bytes->read(first.data() + have, first.size() - have));
    if (count == 0) break;
    have += count;
  }
  first.resize(have);
  const bool gzip = first.starts_with("\x1f\x8b"), zstd = first == "\x28\xb5\x2f\xfd";
  bytes = std::make_unique<Prefixed>(std::move(first), std::move(bytes));
  if (gzip) bytes = std::make_unique<GzipBytes>(std::move(bytes), name);
  if (zstd) bytes = std::make_unique<ZstdBytes>(std::move(bytes), name);
  return bytes;
}

Result<std::string> Input::all() const {
  RACKTWIN_TRY(const std::unique_ptr<Bytes> bytes, open());
  std::string content;
  for (;;) {
    const std::size_t have = content.size();
    content.resize(have + chunk);
    RACKTWIN_TRY(const std::size_t count, bytes->read(content.data() + have, chunk));
    content.resize(have + count);
    if (count == 0) break;
    if (content.size() > document_limit)
      return Error{Error::Code::invalid_input,
                   fmt::format("is one JSON value of more than {} MiB; that is the most read",
                               document_limit >> 20),
                   name};
  }
  content.reserve(content.size() + read_slack);
  return content;
}

Lines::Lines(std::unique_ptr<Bytes> bytes, std::string name)
    : bytes_(std::move(bytes)), name_(std::move(name)), buffer_(chunk + read_slack) {}

// Makes room at the end of the buffer and reads more. False: nothing more, or an error.
bool Lines::fill() {
  if (over_ || error_) return false;
  const std::size_t room = buffer_.size() - read_slack;
  if (begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    searched_ -= begin_;
    begin_ = 0;
  } else if (end_ == room) {
    if (room >= line_limit) {
      error_ = Error{
          Error::Code::invalid_input,
          fmt::format("the line is longer than {} MiB; that is the most read", line_limit >> 20),
          fmt::format("{}:{}", name_, number_ + 1)};
      return false;
    }
    buffer_.resize(2 * room + read_slack);
  }
  auto count = bytes_->read(buffer_.data() + end_, buffer_.size() - read_slack - end_);
  if (!count.ok()) {
    error_ = count.error();
    return false;
  }
  over_ = count.value() == 0;
  end_ += count.value();
  return !over_;
}

bool Lines::next(std::string_view& line) {
  for (;;) {
    const char* start = buffer_.data() + searched_;
    const auto* hit = static_cast<const char*>(std::memchr(start, '\n', end_ - searched_));
    if (hit == nullptr) {
      searched_ = end_;
      if (fill()) continue;
      if (error_ || begin_ == end_) return false;
      line = {buffer_.data() + begin_, end_ - begin_};  // the last, without its end
      begin_ = searched_ = end_;
    } else {
      line = {buffer_.data() + begin_, static_cast<std::size_t>(hit - buffer_.data()) - begin_};
      begin_ = searched_ = static_cast<std::size_t>(hit - buffer_.data()) + 1;
    }
    if (++number_ == 1 && line.starts_with("\xef\xbb\xbf")) line.remove_prefix(3);
    if (line.ends_with('\r')) line.remove_suffix(1);
    return true;
  }
}

}  // namespace racktwin::workload
