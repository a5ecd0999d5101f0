#include "cli/capture_feed.h"

#include <atomic>

#include "cli/report_output.h"

namespace sonde::cli {
namespace {

struct Watch {
  Progress progress;
  const std::atomic_ref<bool> has_enough;
};

}  // namespace

CaptureFeed::CaptureFeed(const Host &host, const std::string &path)
    : host_(host), capture_(open_capture(host, path)), session_(Session::open(host)) {}

void CaptureFeed::subscribe_all(const char *name, std::function<sonde_status(const Batch &)> on_batch) {
  const auto &service = host_.service<sonde_capture_service_t>();
  std::vector<sonde_interest_t> interests;
  for (uint32_t space = 1; space < SONDE_SPACE_COUNT; ++space) {
    const sonde_schema_t *schema = nullptr;
    if (service.schema(space, &schema) == SONDE_OK) interests.push_back(every(space));
  }
  subscription_ = session_.subscribe(name, interests, [this, on_batch = std::move(on_batch)](const Batch &batch) {
    const std::atomic_ref<bool> has_enough(has_enough_);
    if (has_enough.load(std::memory_order_relaxed)) return SONDE_E_STOP;
    if (batch.source() == 0) return SONDE_OK;  // what this process's own session says of itself
    sonde_status status = SONDE_OK;
    try {
      status = on_batch(batch);
    } catch (...) {
      failure_ = std::current_exception();
      status = SONDE_E_STOP;
    }
    if (status != SONDE_OK) has_enough.store(true, std::memory_order_relaxed);
    return status;
  });
}

void CaptureFeed::run() {
  session_.start();
  const auto &store = host_.service<sonde_store_service_t>();
  sonde_status status = SONDE_OK;
  {
    Watch watch{{}, std::atomic_ref<bool>(has_enough_)};
    status = store.replay(
        capture_.get(), session_.get(),
        [](void *user, uint64_t done, uint64_t total) {
          auto *const self = static_cast<Watch *>(user);
          if (self->has_enough.load(std::memory_order_relaxed)) return SONDE_E_STOP;
          return Progress::update(&self->progress, done, total);
        },
        &watch);
  }
  const std::string problem = status == SONDE_OK ? "" : host_.table()->last_error();
  session_.stop();
  if (failure_ != nullptr) std::rethrow_exception(failure_);
  if (status != SONDE_OK && status != SONDE_E_STOP) throw Failure(status, problem);
}

}  // namespace sonde::cli
