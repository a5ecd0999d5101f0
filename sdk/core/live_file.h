// The writing side of the .live file (live.h).
#pragma once

#include <sys/types.h>

#include <memory>
#include <mutex>
#include <string>

#include "core/error.h"
#include "core/live.h"

namespace sonde::core {

class LiveFile {
 public:
  static constexpr uint32_t kRows = 4094;  // with the header, 256 KiB less one row

  // Makes and maps the file; the mapping is not inherited by forked children.
  static Result<std::shared_ptr<LiveFile>> create(const std::string &path);
  ~LiveFile();
  LiveFile(const LiveFile &) = delete;
  LiveFile &operator=(const LiveFile &) = delete;

  // A row for a stream, or NULL when all are used. [any]
  LiveStream *add_row(uint64_t stream);
  LiveHeader *header() { return header_; }

 private:
  LiveFile() = default;

  std::mutex mutex_;
  pid_t process_ = 0;
  LiveHeader *header_ = nullptr;
  LiveStream *rows_ = nullptr;
};

}  // namespace sonde::core
