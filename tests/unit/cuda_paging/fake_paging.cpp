#include "fake_paging.h"

#include <cinttypes>
#include <cstdio>

#include "cupti_types.h"

namespace {

sonde::test::FakePaging &fake() {
  static auto *const instance = new sonde::test::FakePaging;
  return *instance;
}

// Streams and events are small numbers; the program's streams are those that the test gives.
unsigned long number(const void *handle) { return static_cast<unsigned long>(reinterpret_cast<uintptr_t>(handle)); }

std::string text(const char *form, unsigned long a, unsigned long b, unsigned long c = 0, unsigned long d = 0) {
  char out[160];
  std::snprintf(out, sizeof(out), form, a, b, c, d);
  return out;
}

}  // namespace

extern "C" {

sonde::test::FakePaging *fake_paging() { return &fake(); }

// ---- the driver ----------------------------------------------------------------------------------------------------

int32_t cuCtxGetCurrent(void **context) {
  *context = reinterpret_cast<void *>(7);
  return 0;
}
int32_t cuCtxSetCurrent(void *) { return 0; }
int32_t cuCtxGetDevice(int32_t *device) {
  *device = 0;
  return 0;
}
// From 101 on: the first is what memory comes in by, the second what it goes out by.
int32_t cuStreamCreate(void **stream, uint32_t) {
  *stream = reinterpret_cast<void *>(101 + fake().streams++);
  return 0;
}
int32_t cuEventCreate(void **event, uint32_t) {
  *event = reinterpret_cast<void *>(1001 + fake().events++);
  return 0;
}
int32_t cuEventRecord(void *event, void *stream) {
  fake().add(text("record %lu on %lu", number(event), number(stream)));
  return 0;
}
int32_t cuStreamWaitEvent(void *stream, void *event, uint32_t) {
  fake().add(text("%lu waits for %lu", number(stream), number(event)));
  return 0;
}
int32_t cuStreamIsCapturing(void *stream, uint32_t *status) {
  *status = fake().capturing_stream != 0 && fake().capturing_stream == number(stream) ? 1 : 0;
  return 0;
}
int32_t cuGetErrorName(int32_t, const char **name) {
  *name = "CUDA_ERROR_OF_THE_TEST";
  return 0;
}
int32_t cuMemPrefetchAsync(uint64_t address, size_t bytes, int32_t device, void *stream) {
  {
    std::unique_lock<std::mutex> lock(fake().mutex);
    fake().changed.wait(lock, [] { return !fake().holds_prefetch; });
    if (fake().prefetch_result != 0) return fake().prefetch_result;
  }
  fake().add(text(device < 0 ? "out %lx %lu on %lu" : "in %lx %lu on %lu", address, bytes, number(stream)));
  return 0;
}
int32_t cuMemAdvise(uint64_t address, size_t bytes, uint32_t advice, int32_t device) {
  if (fake().advise_result != 0) return fake().advise_result;
  fake().add(
      text("advise %lx %lu advice %lu device %lu", address, bytes, advice, static_cast<unsigned long>(device + 1)));
  return 0;
}

// ---- CUPTI ---------------------------------------------------------------------------------------------------------

int32_t cuptiGetVersion(uint32_t *version) {
  *version = sonde::cuda::kCupti13_0;
  return 0;
}
int32_t cuptiGetResultString(int32_t, const char **out) {
  *out = "a result of the test";
  return 0;
}
int32_t cuptiActivityRegisterCallbacks(void *, void *) { return 0; }
int32_t cuptiActivityEnable(uint32_t) { return 0; }
int32_t cuptiActivityDisable(uint32_t) { return 0; }
int32_t cuptiActivityFlushAll(uint32_t) { return 0; }
int32_t cuptiActivityGetNextRecord(uint8_t *, size_t, void **) { return sonde::cuda::kCuptiMaxLimitReached; }
int32_t cuptiSubscribe(void **subscriber, sonde::test::FakePaging::Callback callback, void *user) {
  if (fake().subscribe_result != 0) return fake().subscribe_result;
  *subscriber = reinterpret_cast<void *>(5);
  fake().callback = callback;
  fake().user = user;
  return 0;
}
int32_t cuptiUnsubscribe(void *) {
  fake().callback = nullptr;
  return 0;
}
int32_t cuptiEnableCallback(uint32_t enable, void *, uint32_t domain, uint32_t point) {
  if (domain == sonde::cuda::kDomainDriver && enable != 0) fake().enabled.insert(point);
  return 0;
}
}
