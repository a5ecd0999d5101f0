// Between the C tables and the folder's own functions: handles, statuses, error texts.
#pragma once

#include <sonde/layout.h>
#include <sonde/status.h>

#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <utility>

#include "layout/layout.h"

namespace sonde::layout {

static_assert(sizeof(Dim) == sizeof(sonde_layout_dim_t) && offsetof(Dim, bits) == offsetof(sonde_layout_dim_t, bits) &&
              offsetof(Dim, shift) == offsetof(sonde_layout_dim_t, shift));

inline Arena &inside(sonde_layout_arena_t *arena) { return *reinterpret_cast<Arena *>(arena); }
inline const Layout *inside(const sonde_layout_t *layout) { return reinterpret_cast<const Layout *>(layout); }
inline const sonde_layout_t *outside(const Layout *layout) { return reinterpret_cast<const sonde_layout_t *>(layout); }

// Sets this thread's error text at the host; returns `code`.
sonde_status refuse(sonde_status code, const char *text) noexcept;
inline sonde_status refuse(sonde_status code, const std::string &text) noexcept { return refuse(code, text.c_str()); }

// The status of the arena's last fault, its text handed to the host.
sonde_status refuse(const Arena &arena) noexcept;

// Hands a result out; a null one is the arena's fault.
inline sonde_status give(sonde_layout_arena_t *arena, const Layout *result, const sonde_layout_t **out) {
  *out = outside(result);
  return result != nullptr ? SONDE_OK : refuse(inside(arena));
}

inline bool is_layout(const sonde_layout_t *layout) { return layout != nullptr && inside(layout)->is_valid(); }

sonde_status refuse_handles(const char *function) noexcept;

// Runs a body that returns a status; an exception (memory) becomes one. Nothing is paid where none is thrown.
template <typename Body>
inline sonde_status guarded(Body &&body) noexcept {
  try {
    return std::forward<Body>(body)();
  } catch (const std::bad_alloc &) {
    return refuse(SONDE_E_FULL, "out of memory");
  } catch (const std::exception &exception) {
    return refuse(SONDE_E_INTERNAL, exception.what());
  }
}

// An operation that makes a layout in `arena` from others.
template <typename Operation, typename... Layouts>
inline sonde_status make_in(const char *function, sonde_layout_arena_t *arena, const sonde_layout_t **out,
                            Operation &&operation, Layouts... layouts) noexcept {
  if (arena == nullptr || out == nullptr || !(is_layout(layouts) && ...)) [[unlikely]] {
    if (out != nullptr) *out = nullptr;
    return refuse_handles(function);
  }
  return guarded([&] {
    const Arena::Mark mark = inside(arena).mark();
    const Layout *const result = operation(inside(arena), *inside(layouts)...);
    if (result == nullptr) inside(arena).release(mark);  // what a failure had made so far
    return give(arena, result, out);
  });
}

// Copies text out: cut at `capacity` with a NUL, *needed its whole length.
sonde_status give_text(const std::string &text, char *out, uint64_t capacity, uint64_t *needed) noexcept;

}  // namespace sonde::layout
