// How a test drives the CUPTI of the tests' own (fake_cupti.cpp), a library that the port opens like the real one.
#pragma once

#include <cstddef>
#include <cstdint>

struct FakeCuptiState {
  uint32_t struct_size;
  uint32_t version;
  // Results that calls are to give; 0: success.
  int32_t register_callbacks_result;
  int32_t register_timestamp_result;
  int32_t subscribe_result;
  int32_t enable_callback_result;  // from the call numbered enable_callback_fails_at on
  int32_t enable_callback_fails_at;
  int32_t refused_kind_result;
  uint32_t refused_kind;  // that activity_enable refuses
  int32_t configure_result;
  uint64_t hang_flush_ms;
  // What calls were made.
  uint64_t enabled_kinds;
  uint32_t enables;
  uint32_t disables;
  uint32_t dumps;
  uint32_t registrations;
  uint32_t timestamp_registrations;
  uint32_t subscriptions;
  uint32_t unsubscriptions;
  uint32_t enabled_points;
  uint32_t flushes;
  uint32_t forced_flushes;
  uint32_t runtime_calls;
  uint32_t driver_calls;
  uint32_t zeroed_attribute;
  uint32_t thread_id_type;
  uint32_t buffers_requested;
  uint32_t buffers_completed;
  uint32_t buffers_refused;
  uint32_t buffers_dirty;  // handed in although not zero, with the attribute set
  uint32_t configured_counters;
};

struct FakeCuptiControl {
  FakeCuptiState *state;
  // Appends a record as a CUPTI thread would; 0 when it was dropped for want of a buffer.
  int (*emit)(const void *record, size_t bytes);
  // Completes the current buffer, as when it is full.
  void (*complete)();
  // Calls the subscriber.
  void (*resource)(uint32_t point, const void *data);
  // The clock that the port registered, or the library's own.
  uint64_t (*now)();
  // Records that the next queries report as dropped.
  void (*drop)(size_t records);
};

extern "C" const FakeCuptiControl *fake_cupti_control();
