// A capture that was opened: one file, or the files of a run directory.
#pragma once

#include <sonde/store.h>

#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/error.h"
#include "store/file_reader.h"
#include "store/tail.h"

namespace sonde::store {

class Capture {
 public:
  struct Source {
    std::string path;
    std::unique_ptr<FileReader> reader;  // none: the file was never made, or nothing in it can be read
    std::optional<LiveState> live;
    uint64_t file_bytes = 0;
    std::string failure;             // why there is no reader
    std::deque<std::string> damage;  // texts of sonde_source_info_t.damage that were given out; the last one holds
  };

  // Opens a file, or every *.sonde of a directory in the order of their names. A live file without its capture file
  // is a source too: its process ended before it wrote anything.
  // SONDE_E_NOT_FOUND, SONDE_E_CORRUPT when nothing can be read, SONDE_E_TOO_OLD, SONDE_E_IO.
  static Result<std::unique_ptr<Capture>> open(const std::string &path);

  std::vector<Source> &sources() { return sources_; }
  Result<sonde_source_info_t> info(uint64_t index);

  // Rows of source 1 + index, in the order of the public function. [any]
  std::vector<sonde_loss_t> losses_of(uint64_t index);
  std::vector<sonde_loss_t> losses();

  // Held while a reader is in use: readers have buffers of their own.
  std::mutex &mutex() { return mutex_; }

 private:
  std::vector<Source> sources_;
  std::mutex mutex_;
};

}  // namespace sonde::store
