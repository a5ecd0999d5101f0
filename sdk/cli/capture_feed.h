// Feeding a capture to a function of ours, without any analysis.
#pragma once

#include <sonde/sonde.hpp>

#include <functional>
#include <string>
#include <vector>

#include "cli/capture_summary.h"

namespace sonde::cli {

// A session that a capture is replayed into. Every space that is registered when subscribe_all is called is of
// interest, so open the capture first: it brings its schemas.
class CaptureFeed {
 public:
  CaptureFeed(const Host &host, const std::string &path);

  Session &session() { return session_; }
  sonde_capture_t *capture() const { return capture_.get(); }

  // `on_batch` runs on one thread; it returns SONDE_E_STOP when it has seen enough.
  void subscribe_all(const char *name, std::function<sonde_status(const Batch &)> on_batch);

  // Feeds the whole capture, or until the subscriber had enough. An exception of the subscriber ends it and is
  // thrown here.
  void run();

 private:
  Host host_;
  OwnedCapture capture_;
  Session session_;
  Subscription subscription_;
  std::exception_ptr failure_;
  bool has_enough_ = false;
};

}  // namespace sonde::cli
