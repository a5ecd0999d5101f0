// Errors inside the SDK are values; at the binary interface they become a status and this thread's error text.
#pragma once

#include <sonde/status.h>

#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace sonde {

struct Error {
  sonde_status code = SONDE_E_INTERNAL;
  std::string text;
};

// A value or an Error.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : content_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : content_(std::in_place_index<1>, std::move(error)) {}

  explicit operator bool() const { return content_.index() == 0; }
  T &operator*() { return std::get<0>(content_); }
  const T &operator*() const { return std::get<0>(content_); }
  T *operator->() { return &std::get<0>(content_); }
  const T *operator->() const { return &std::get<0>(content_); }
  const Error &error() const { return std::get<1>(content_); }

 private:
  std::variant<T, Error> content_;
};

// Success or an Error.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)), failed_(true) {}

  explicit operator bool() const { return !failed_; }
  const Error &error() const { return error_; }

 private:
  Error error_;
  bool failed_ = false;
};

// Sets this thread's error text and returns `code`, for `return fail(...)` in functions of the interface. Cuts texts
// at 16 KiB. [any]
sonde_status fail(sonde_status code, std::string_view text) noexcept;
inline sonde_status fail(const Error &error) noexcept { return fail(error.code, error.text); }

// This thread's last error text, NUL-terminated. [any]
const char *last_error() noexcept;

// Runs the body of a function of the interface; an exception becomes a status. The body returns sonde_status.
template <typename Body>
sonde_status at_boundary(Body &&body) noexcept {
  try {
    return std::forward<Body>(body)();
  } catch (const std::bad_alloc &) {
    return fail(SONDE_E_FULL, "out of memory");
  } catch (const std::exception &exception) {
    return fail(SONDE_E_INTERNAL, exception.what());
  } catch (...) {
    return fail(SONDE_E_INTERNAL, "unknown exception");
  }
}

}  // namespace sonde
