#include "store/install.h"

#include <sonde/store.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>

#include "core/error.h"
#include "core/services.h"
#include "store/capture.h"
#include "store/recorder.h"
#include "store/replay.h"
#include "store/standalone_writer.h"

namespace sonde::store {
namespace {

// Objects behind handles. A handle that is not here was closed or never given out.
template <typename Object, typename Handle>
class Handles {
 public:
  Handle *add(std::shared_ptr<Object> object) {
    auto *const handle = reinterpret_cast<Handle *>(object.get());
    const std::lock_guard lock(mutex_);
    objects_[handle] = std::move(object);
    return handle;
  }

  std::shared_ptr<Object> find(Handle *handle) {
    const std::lock_guard lock(mutex_);
    const auto found = objects_.find(handle);
    return found == objects_.end() ? nullptr : found->second;
  }

  void remove(Handle *handle) {
    const std::lock_guard lock(mutex_);
    objects_.erase(handle);
  }

 private:
  std::mutex mutex_;
  std::map<Handle *, std::shared_ptr<Object>> objects_;
};

Handles<Recorder, sonde_recording_t> &recordings() {
  static auto *const handles = new Handles<Recorder, sonde_recording_t>;
  return *handles;
}

Handles<Capture, sonde_capture_t> &captures() {
  static auto *const handles = new Handles<Capture, sonde_capture_t>;
  return *handles;
}

Handles<StandaloneWriter, sonde_file_writer_t> &file_writers() {
  static auto *const handles = new Handles<StandaloneWriter, sonde_file_writer_t>;
  return *handles;
}

// The caller's options, as far as it knows them.
Result<sonde_writer_options_t> writer_options(const sonde_writer_options_t *options) {
  sonde_writer_options_t own{};
  own.struct_size = sizeof own;
  if (options == nullptr) return own;
  if (options->struct_size < SONDE_NEED(sonde_writer_options_t, struct_size)) {
    return Error{SONDE_E_INVALID, "struct_size of the writer's options is 0"};
  }
  std::memcpy(&own, options, std::min<size_t>(options->struct_size, sizeof own));
  return own;
}

sonde_status no_capture() { return fail(SONDE_E_INVALID, "the capture is NULL or was closed"); }

sonde_status record(sonde_session_t *session, const char *path, const char *spaces,
                    const sonde_writer_options_t *options, sonde_recording_t **out) noexcept {
  return at_boundary([&] {
    if (path == nullptr || out == nullptr) return fail(SONDE_E_INVALID, "record: path or out is NULL");
    *out = nullptr;
    const Result<sonde_writer_options_t> own = writer_options(options);
    if (!own) return fail(own.error());
    Result<std::shared_ptr<Recorder>> recorder = Recorder::start(session, path, spaces, *own);
    if (!recorder) return fail(recorder.error());
    *out = recordings().add(std::move(*recorder));
    return SONDE_OK;
  });
}

sonde_status finish(sonde_recording_t *recording) noexcept {
  return at_boundary([&] {
    const std::shared_ptr<Recorder> recorder = recordings().find(recording);
    if (recorder == nullptr) return fail(SONDE_E_INVALID, "the recording is NULL or was finished");
    const Result<void> finished = recorder->finish();
    if (!finished && finished.error().code == SONDE_E_STATE) return fail(finished.error());
    recordings().remove(recording);
    return finished ? SONDE_OK : fail(finished.error());
  });
}

sonde_status open(const char *path, sonde_capture_t **out) noexcept {
  return at_boundary([&] {
    if (path == nullptr || out == nullptr) return fail(SONDE_E_INVALID, "open: path or out is NULL");
    *out = nullptr;
    Result<std::unique_ptr<Capture>> capture = Capture::open(path);
    if (!capture) return fail(capture.error());
    *out = captures().add(std::move(*capture));
    return SONDE_OK;
  });
}

sonde_status close(sonde_capture_t *handle) noexcept {
  return at_boundary([&] {
    if (captures().find(handle) == nullptr) return no_capture();
    captures().remove(handle);
    return SONDE_OK;
  });
}

sonde_status source_count(sonde_capture_t *handle, uint64_t *out) noexcept {
  return at_boundary([&] {
    const std::shared_ptr<Capture> capture = captures().find(handle);
    if (capture == nullptr) return no_capture();
    if (out == nullptr) return fail(SONDE_E_INVALID, "source_count: out is NULL");
    *out = capture->sources().size();
    return SONDE_OK;
  });
}

sonde_status source_at(sonde_capture_t *handle, uint64_t index, sonde_source_info_t *out) noexcept {
  return at_boundary([&] {
    const std::shared_ptr<Capture> capture = captures().find(handle);
    if (capture == nullptr) return no_capture();
    if (out == nullptr || out->struct_size < SONDE_NEED(sonde_source_info_t, struct_size)) {
      return fail(SONDE_E_INVALID, "source_at: out is NULL or its struct_size is 0");
    }
    const Result<sonde_source_info_t> info = capture->info(index);
    if (!info) return fail(info.error());
    const uint32_t size = std::min<uint32_t>(out->struct_size, sizeof *info);
    std::memcpy(out, &*info, size);
    out->struct_size = size;
    return SONDE_OK;
  });
}

sonde_status losses(sonde_capture_t *handle, sonde_loss_t *rows, uint64_t capacity, uint64_t *count) noexcept {
  return at_boundary([&] {
    const std::shared_ptr<Capture> capture = captures().find(handle);
    if (capture == nullptr) return no_capture();
    if (count == nullptr || (rows == nullptr && capacity != 0)) {
      return fail(SONDE_E_INVALID, "losses: count is NULL, or rows is NULL with a capacity");
    }
    const std::vector<sonde_loss_t> all = capture->losses();
    std::copy_n(all.begin(), std::min<uint64_t>(capacity, all.size()), rows);
    *count = all.size();
    return SONDE_OK;
  });
}

sonde_status replay_capture(sonde_capture_t *handle, sonde_session_t *session,
                            sonde_status (*progress)(void *, uint64_t, uint64_t), void *user) noexcept {
  return at_boundary([&] {
    const std::shared_ptr<Capture> capture = captures().find(handle);
    if (capture == nullptr) return no_capture();
    Progress report;
    if (progress != nullptr) {
      report = [=](uint64_t done, uint64_t total) { return progress(user, done, total); };
    }
    const Result<void> replayed = replay(*capture, session, report);
    return replayed ? SONDE_OK : fail(replayed.error());
  });
}

sonde_status no_writer() { return fail(SONDE_E_INVALID, "the file writer is NULL or was completed"); }

sonde_status create(const char *path, const sonde_source_info_t *source, const sonde_writer_options_t *options,
                    sonde_file_writer_t **out) noexcept {
  return at_boundary([&] {
    if (path == nullptr || source == nullptr || out == nullptr) {
      return fail(SONDE_E_INVALID, "create: path, source or out is NULL");
    }
    *out = nullptr;
    if (source->struct_size < SONDE_NEED(sonde_source_info_t, start_ns)) {
      return fail(SONDE_E_INVALID, "create: struct_size of the source does not reach start_ns");
    }
    const Result<sonde_writer_options_t> own = writer_options(options);
    if (!own) return fail(own.error());
    Result<std::unique_ptr<StandaloneWriter>> writer = StandaloneWriter::create(path, *source, *own);
    if (!writer) return fail(writer.error());
    *out = file_writers().add(std::move(*writer));
    return SONDE_OK;
  });
}

sonde_status append(sonde_file_writer_t *handle, const sonde_batch_t *batch) noexcept {
  return at_boundary([&] {
    const std::shared_ptr<StandaloneWriter> writer = file_writers().find(handle);
    if (writer == nullptr) return no_writer();
    if (batch == nullptr || batch->struct_size < SONDE_NEED(sonde_batch_t, lost_overwritten)) {
      return fail(SONDE_E_INVALID, "append: the batch is NULL or its struct_size does not reach lost_overwritten");
    }
    const Result<void> appended = writer->append(*batch);
    return appended ? SONDE_OK : fail(appended.error());
  });
}

sonde_status lose(sonde_file_writer_t *handle, const sonde_loss_t *row) noexcept {
  return at_boundary([&] {
    const std::shared_ptr<StandaloneWriter> writer = file_writers().find(handle);
    if (writer == nullptr) return no_writer();
    if (row == nullptr) return fail(SONDE_E_INVALID, "lose: row is NULL");
    writer->lose(*row);
    return SONDE_OK;
  });
}

sonde_status complete(sonde_file_writer_t *handle, int64_t stop_ns) noexcept {
  return at_boundary([&] {
    const std::shared_ptr<StandaloneWriter> writer = file_writers().find(handle);
    if (writer == nullptr) return no_writer();
    file_writers().remove(handle);
    const Result<void> completed = writer->complete(stop_ns);
    return completed ? SONDE_OK : fail(completed.error());
  });
}

constexpr sonde_store_service_t kService = {
    sizeof(sonde_store_service_t),
    0,
    record,
    finish,
    open,
    close,
    source_count,
    source_at,
    losses,
    replay_capture,
    create,
    append,
    lose,
    complete,
};

}  // namespace

void install() { add_service(SONDE_STORE_SERVICE, &kService); }

}  // namespace sonde::store
