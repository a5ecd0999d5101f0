// A capture file written without a session: by who converts or joins captures.
//
// Not thread-safe.
#pragma once

#include <sonde/delivery.h>
#include <sonde/store.h>

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/error.h"
#include "store/chunk_writer.h"

namespace sonde::store {

class StandaloneWriter {
 public:
  // SONDE_E_EXISTS, SONDE_E_IO when the directory takes no file, SONDE_E_INVALID, SONDE_E_RANGE.
  static Result<std::unique_ptr<StandaloneWriter>> create(const std::string &path, const sonde_source_info_t &source,
                                                          const sonde_writer_options_t &options);

  // Checks every record's sizes first. SONDE_E_INVALID, SONDE_E_IO, SONDE_E_FULL.
  Result<void> append(const sonde_batch_t &batch);

  void lose(const sonde_loss_t &row);

  Result<void> complete(int64_t stop_ns);

 private:
  struct Stream {
    uint64_t position = 0;
    std::optional<uint64_t> last_sequence;
  };

  StandaloneWriter() = default;
  Result<void> take_failure();

  std::unique_ptr<ChunkWriter> writer_;
  std::unordered_map<uint64_t, Stream> streams_;
  std::vector<sonde_loss_t> ledger_;  // sorted by stream and cause
  std::optional<Error> failure_;      // of the last write, until it is reported
};

}  // namespace sonde::store
