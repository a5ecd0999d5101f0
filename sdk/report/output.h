// Where a report goes: pieces of text to a function of the caller, a buffer's worth at a time.
#pragma once

#include <sonde/base.h>
#include <sonde/status.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace sonde::report {

class Output {
 public:
  using Write = sonde_status (*)(void *user, const char *text, uint64_t bytes);

  Output(Write write, void *user) : write_(write), user_(user) { buffer_.reserve(kBufferBytes); }

  void put(std::string_view text) {
    if (buffer_.size() + text.size() > kBufferBytes) flush();
    if (text.size() > kBufferBytes) {
      send(text);
    } else {
      buffer_.append(text);
    }
  }
  void put(char character) { put(std::string_view(&character, 1)); }

  void flush() {
    send(buffer_);
    buffer_.clear();
  }

  // The first error of the writing function; after it nothing more is handed on.
  sonde_status status() const { return status_; }
  bool failed() const { return status_ != SONDE_OK; }

 private:
  static constexpr size_t kBufferBytes = 32 * 1024;

  void send(std::string_view text) {
    if (status_ == SONDE_OK && !text.empty()) status_ = write_(user_, text.data(), text.size());
  }

  Write write_;
  void *user_;
  std::string buffer_;
  sonde_status status_ = SONDE_OK;
};

}  // namespace sonde::report
