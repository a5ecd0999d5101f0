#include "store/writer_checks.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "store/format.h"

namespace sonde::store {

Result<void> check_writer_options(const sonde_writer_options_t &options) {
  if (options.when_full > SONDE_FULL_DROP) {
    return Error{SONDE_E_INVALID,
                 fmt::format("when_full is {}, expected SONDE_FULL_SPILL or SONDE_FULL_DROP", options.when_full)};
  }
  if (options.chunk_bytes > kMaxChunkRecordBytes) {
    return Error{SONDE_E_RANGE,
                 fmt::format("chunk_bytes is {}, expected at most {}", options.chunk_bytes, kMaxChunkRecordBytes)};
  }
  if (options.level < 0 || options.level > 19) {
    return Error{SONDE_E_RANGE, fmt::format("level is {}, expected 0 to 19", options.level)};
  }
  return {};
}

Result<void> check_new_file(const std::string &path) {
  if (path.empty()) return Error{SONDE_E_INVALID, "the path of the capture file is empty"};
  struct stat status {};
  if (::lstat(path.c_str(), &status) == 0) {
    return Error{SONDE_E_EXISTS, "capture file '" + path + "' exists already"};
  }
  const size_t slash = path.rfind('/');
  const std::string directory = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
  if (::access(directory.c_str(), W_OK | X_OK) != 0) {
    return Error{SONDE_E_IO, "cannot make a file in '" + directory + "': " + std::strerror(errno)};
  }
  return {};
}

}  // namespace sonde::store
