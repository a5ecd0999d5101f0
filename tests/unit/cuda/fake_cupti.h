// How a test drives the CUPTI of the tests' own (fake_cupti.cpp), a library that the port opens like the real one.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

struct FakeCuptiState {
  std::atomic<uint32_t> version{130001};
  // Results that calls are to give; 0: success.
  std::atomic<int32_t> register_callbacks_result{};
  std::atomic<int32_t> register_timestamp_result{};
  std::atomic<int32_t> subscribe_result{};
  std::atomic<int32_t> enable_callback_result{};  // from the call numbered enable_callback_fails_at on
  std::atomic<int32_t> enable_callback_fails_at{};
  std::atomic<int32_t> refused_kind_result{};
  std::atomic<uint32_t> refused_kind{};  // that activity_enable refuses
  std::atomic<int32_t> configure_result{};
  std::atomic<uint64_t> hang_flush_ms{};
  // What calls were made.
  std::atomic<uint64_t> enabled_kinds{};
  std::atomic<uint32_t> enables{};
  std::atomic<uint32_t> disables{};
  std::atomic<uint32_t> dumps{};
  std::atomic<uint32_t> registrations{};
  std::atomic<uint32_t> timestamp_registrations{};
  std::atomic<uint32_t> subscriptions{};
  std::atomic<uint32_t> unsubscriptions{};
  std::atomic<uint32_t> enabled_points{};
  std::atomic<uint32_t> flushes{};
  std::atomic<uint32_t> forced_flushes{};
  std::atomic<uint32_t> runtime_calls{};
  std::atomic<uint32_t> driver_calls{};
  std::atomic<uint32_t> zeroed_attribute{};
  std::atomic<uint32_t> thread_id_type{};
  std::atomic<uint32_t> buffers_requested{};
  std::atomic<uint32_t> buffers_completed{};
  std::atomic<uint32_t> buffers_refused{};
  std::atomic<uint32_t> buffers_dirty{};  // handed in although not zero, with the attribute set
  std::atomic<uint32_t> configured_counters{};
  std::atomic<uint32_t> enabled_calls{};  // callbacks of driver calls that are on
  std::atomic<uint64_t> launches{};       // of `launch`
};

struct FakeCuptiControl {
  FakeCuptiState *state;
  // Appends a record as a CUPTI thread would; 0 when it was dropped for want of a buffer.
  int (*emit)(const void *record, size_t bytes);
  // Completes the current buffer, as when it is full.
  void (*complete)();
  // Calls the subscriber.
  void (*resource)(uint32_t point, const void *data);
  // A launch of the program: calls the subscriber back where launches are subscribed to, and appends `record` (a kernel)
  // where kernels are on; 1 when it was appended.
  int (*launch)(const void *record, size_t bytes);
  // The clock that the port registered, or the library's own.
  uint64_t (*now)();
  // Records that the next queries report as dropped.
  void (*drop)(size_t records);
};

extern "C" const FakeCuptiControl *fake_cupti_control();
