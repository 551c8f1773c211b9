#include "base/file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

namespace racktwin {
namespace {

Error io_error(const std::string& path, std::string_view what, int code) {
  const auto kind = code == ENOENT ? Error::Code::not_found : Error::Code::io;
  return {kind, fmt::format("cannot {}: {}", what, std::strerror(code)), path};
}

struct Descriptor {
  int fd = -1;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

Result<Done> write_all(int fd, const std::string& path, std::string_view content) {
  for (std::size_t done = 0; done < content.size();) {
    const ssize_t count = ::write(fd, content.data() + done, content.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return io_error(path, "write the file", errno);
    done += static_cast<std::size_t>(count);
  }
  return Done{};
}

// To a device or pipe, in place.
Result<Done> write_through(const std::string& path, std::string_view content) {
  Descriptor file{::open(path.c_str(), O_WRONLY | O_CLOEXEC)};
  if (file.fd < 0) return io_error(path, "write the file", errno);
  return write_all(file.fd, path, content);
}

}  // namespace

Result<std::string> read_file(const std::string& path, std::size_t limit) {
  Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (file.fd < 0) return io_error(path, "open the file", errno);
  struct stat status{};
  if (::fstat(file.fd, &status) != 0) return io_error(path, "look at the file", errno);
  if (S_ISDIR(status.st_mode))
    return Error{Error::Code::invalid_input, "is a directory; a file is needed", path};
  std::string content;
  std::string chunk(1 << 16, '\0');
  for (;;) {
    const ssize_t count = ::read(file.fd, chunk.data(), chunk.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return io_error(path, "read the file", errno);
    if (count == 0) return content;
    content.append(chunk.data(), static_cast<std::size_t>(count));
    if (content.size() > limit)
      return Error{Error::Code::invalid_input,
                   fmt::format("is larger than the {} bytes allowed here", limit), path};
  }
}

Result<Done> write_file(const std::string& given, std::string_view content) {
  // What is there already stays what it is: a link keeps its target's place, and a device or
  // pipe is written to, not replaced.
  std::error_code code;
  std::string path = given;
  if (std::filesystem::is_symlink(path, code)) {
    const auto behind = std::filesystem::weakly_canonical(path, code);
    if (!code) path = behind.string();
  }
  if (std::filesystem::exists(path, code) && std::filesystem::is_other(path, code))
    return write_through(path, content);
  const std::filesystem::path target(path);
  if (target.has_parent_path()) std::filesystem::create_directories(target.parent_path(), code);
  if (code) return io_error(path, "create the folder", code.value());
  const std::string temporary = path + ".partial";
  const auto refuse = [&](std::string_view what) -> Error {
    const int reason = errno;
    ::unlink(temporary.c_str());
    return io_error(path, what, reason);
  };
  {
    Descriptor file{::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)};
    if (file.fd < 0) return io_error(path, "write the file", errno);
    if (!write_all(file.fd, path, content).ok()) return refuse("write the file");
    if (::fsync(file.fd) != 0 && errno != EINVAL) return refuse("write the file");
  }
  if (::rename(temporary.c_str(), path.c_str()) != 0) return refuse("rename into place");
  return Done{};
}

}  // namespace racktwin
