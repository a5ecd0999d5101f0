// A CUPTI for tests: the entry points that the port uses, with buffers that a test fills.
#include "fake_cupti.h"

#include <time.h>

#include <chrono>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>

#include "activity.h"
#include "cupti_types.h"

namespace {

using namespace sonde::cuda;

FakeCuptiState state;

std::mutex buffer_mutex;
BufferRequested requested = nullptr;
BufferCompleted completed = nullptr;
uint8_t *buffer = nullptr;
size_t buffer_bytes = 0;
size_t used = 0;
size_t dropped = 0;
TimestampCallback timestamp = nullptr;
Callback subscriber = nullptr;
int subscriber_handle = 0;
std::string callback_text;

uint64_t own_clock() {
  timespec now = {};
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}

// Takes the current buffer away under the lock; the callback runs without it, as in the real library.
struct Taken {
  uint8_t *data;
  size_t bytes;
  size_t used;
};

Taken take_current() {
  const Taken taken = {buffer, buffer_bytes, used};
  buffer = nullptr;
  used = 0;
  if (taken.data != nullptr) ++state.buffers_completed;
  return taken;
}

void deliver(const Taken &taken) {
  if (taken.data != nullptr && completed != nullptr) completed(nullptr, 0, taken.data, taken.bytes, taken.used);
}

void complete() {
  Taken taken;
  {
    std::lock_guard<std::mutex> hold(buffer_mutex);
    taken = take_current();
  }
  deliver(taken);
}

int emit(const void *record, size_t bytes) {
  Taken full = {};
  bool taken = false;
  {
    std::lock_guard<std::mutex> hold(buffer_mutex);
    if (buffer != nullptr && used + bytes > buffer_bytes) full = take_current();
    if (buffer == nullptr && requested != nullptr) {
      size_t limit = 0;
      requested(&buffer, &buffer_bytes, &limit);
      ++state.buffers_requested;
      if (buffer == nullptr) ++state.buffers_refused;
      if (buffer != nullptr && state.zeroed_attribute != 0) {
        for (size_t i = 0; i < buffer_bytes; ++i) {
          if (buffer[i] != 0) {
            ++state.buffers_dirty;
            break;
          }
        }
      }
    }
    if (buffer != nullptr && used + bytes <= buffer_bytes) {
      std::memcpy(buffer + used, record, bytes);
      used += bytes;
      taken = true;
    } else {
      ++dropped;
    }
  }
  deliver(full);
  return taken ? 1 : 0;
}

void resource(uint32_t point, const void *data) {
  if (subscriber != nullptr) subscriber(nullptr, kDomainResource, point, data);
}

int launch(const void *record, size_t bytes) {
  constexpr uint32_t kCuLaunchKernel = 307;
  ++state.launches;
  if (state.enabled_calls != 0 && subscriber != nullptr) {
    for (const uint32_t site : {kCallEnter, kCallEnter + 1}) {
      const CallData data = {site};
      subscriber(nullptr, kDomainDriver, kCuLaunchKernel, &data);
    }
  }
  const bool kernels = (state.enabled_kinds >> kind::kConcurrentKernel) & 1u;
  return kernels ? emit(record, bytes) : 0;
}

uint64_t now() { return timestamp != nullptr ? timestamp() : own_clock(); }

void drop(size_t records) {
  std::lock_guard<std::mutex> hold(buffer_mutex);
  dropped += records;
}

const FakeCuptiControl control = {&state, emit, complete, resource, launch, now, drop};

}  // namespace

#define FAKE extern "C" __attribute__((visibility("default")))

FAKE const FakeCuptiControl *fake_cupti_control() { return &control; }

FAKE int cuptiGetVersion(uint32_t *version) {
  *version = state.version;
  return 0;
}

FAKE int cuptiGetResultString(int result, const char **text) {
  *text = result == kCuptiMultipleSubscribers ? "FAKE_MULTIPLE_SUBSCRIBERS" : "FAKE_ERROR";
  return 0;
}

FAKE int cuptiActivityRegisterCallbacks(BufferRequested on_request, BufferCompleted on_complete) {
  ++state.registrations;
  if (state.register_callbacks_result != 0) return state.register_callbacks_result;
  std::lock_guard<std::mutex> hold(buffer_mutex);
  requested = on_request;
  completed = on_complete;
  return 0;
}

FAKE int cuptiActivityEnable(uint32_t kind) {
  ++state.enables;
  if (state.refused_kind != 0 && kind == state.refused_kind) return state.refused_kind_result;
  state.enabled_kinds |= uint64_t{1} << kind;
  return 0;
}

FAKE int cuptiActivityEnableAndDump(uint32_t kind) {
  ++state.dumps;
  return cuptiActivityEnable(kind);
}

FAKE int cuptiActivityDisable(uint32_t kind) {
  ++state.disables;
  state.enabled_kinds &= ~(uint64_t{1} << kind);
  return 0;
}

FAKE int cuptiActivityFlushAll(uint32_t flags) {
  ++state.flushes;
  if (flags != 0) ++state.forced_flushes;
  if (state.hang_flush_ms != 0) std::this_thread::sleep_for(std::chrono::milliseconds(state.hang_flush_ms));
  complete();
  return 0;
}

FAKE int cuptiActivityGetNextRecord(uint8_t *data, size_t valid_bytes, ActivityHeader **record) {
  return sonde::test::next_record(state.version, data, valid_bytes, record);
}

FAKE int cuptiActivityGetNumDroppedRecords(void *, uint32_t, size_t *out) {
  std::lock_guard<std::mutex> hold(buffer_mutex);
  *out = dropped;
  dropped = 0;
  return 0;
}

FAKE int cuptiActivityRegisterTimestampCallback(TimestampCallback callback) {
  ++state.timestamp_registrations;
  if (state.register_timestamp_result != 0) return state.register_timestamp_result;
  timestamp = callback;
  return 0;
}

FAKE int cuptiActivitySetAttribute(uint32_t attribute, size_t *, void *value) {
  if (attribute == kAttributeZeroedBuffers) state.zeroed_attribute = *static_cast<uint8_t *>(value);
  return 0;
}

FAKE int cuptiActivityEnableRuntimeApi(uint32_t, uint8_t enable) {
  state.runtime_calls += enable != 0 ? 1 : UINT32_MAX;
  return 0;
}

FAKE int cuptiActivityEnableDriverApi(uint32_t, uint8_t enable) {
  state.driver_calls += enable != 0 ? 1 : UINT32_MAX;
  return 0;
}

FAKE int cuptiActivityConfigureUnifiedMemoryCounter(UnifiedMemoryCounterConfig *, uint32_t count) {
  if (state.configure_result != 0) return state.configure_result;
  state.configured_counters = count;
  return 0;
}

FAKE int cuptiSetThreadIdType(uint32_t type) {
  state.thread_id_type = type;
  return 0;
}

FAKE int cuptiGetTimestamp(uint64_t *stamp) {
  *stamp = now();
  return 0;
}

FAKE int cuptiGetCallbackName(uint32_t, uint32_t, const char **name) {
  *name = "cudaLaunchKernel_v7000";
  return 0;
}

FAKE int cuptiSubscribe(Subscriber *out, Callback callback, void *) {
  ++state.subscriptions;
  if (state.subscribe_result != 0) return state.subscribe_result;
  subscriber = callback;
  *out = &subscriber_handle;
  return 0;
}

FAKE int cuptiUnsubscribe(Subscriber) {
  ++state.unsubscriptions;
  state.enabled_calls = 0;
  subscriber = nullptr;
  return 0;
}

FAKE int cuptiEnableCallback(uint32_t enable, Subscriber, uint32_t domain, uint32_t) {
  static int calls = 0;
  if (state.enable_callback_result != 0 && ++calls >= state.enable_callback_fails_at) {
    return state.enable_callback_result;
  }
  if (domain == kDomainDriver) {
    state.enabled_calls += enable != 0 ? 1 : UINT32_MAX;
    return 0;
  }
  state.enabled_points += enable != 0 ? 1 : UINT32_MAX;
  return 0;
}

// Ids of handles are the handles' own values.
FAKE int cuptiGetContextId(void *context, uint32_t *id) {
  *id = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(context));
  return 0;
}
FAKE int cuptiGetStreamIdEx(void *, void *stream, uint8_t, uint32_t *id) {
  *id = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(stream));
  return 0;
}
FAKE int cuptiGetGraphId(void *graph, uint32_t *id) {
  *id = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(graph));
  return 0;
}
FAKE int cuptiGetGraphExecId(void *graph_exec, uint32_t *id) {
  *id = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(graph_exec));
  return 0;
}
