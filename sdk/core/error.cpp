#include "core/error.h"

#include <algorithm>
#include <cstring>
#include <memory>

namespace sonde {
namespace {

constexpr size_t kMaxErrorBytes = 16 * 1024;

// Allocated at a thread's first error only, so that threads which never fail pay nothing.
thread_local std::unique_ptr<std::string> text;

}  // namespace

sonde_status fail(sonde_status code, std::string_view message) noexcept {
  try {
    if (text == nullptr) text = std::make_unique<std::string>();
    text->assign(message.substr(0, kMaxErrorBytes));
  } catch (...) {
    // No memory for the text: the code alone has to do.
  }
  return code;
}

const char *last_error() noexcept { return text == nullptr ? "" : text->c_str(); }

}  // namespace sonde
