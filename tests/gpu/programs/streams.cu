// Two host threads, four streams, stream-ordered and other memory, a captured graph, and ranges.
//
// Each worker thread owns two streams joined by events. A round allocates from the device's default
// pool and from a pool of the program's own, copies in from pinned memory, sets, computes, copies
// on the device and back, and frees in stream order; its result is checked on the host. Afterwards
// the main thread captures a step over two streams into a graph and replays it. All numbers are
// small integers in float, so every sum is exact.
//
// Prints one JSON line with what it did (see expected.h); exit code 1 if a result was wrong, 3 if
// a call failed.
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtCudaRt.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

#include "expected.h"

using expected::ledger;

namespace {

constexpr int kWorkers = 2;
constexpr int kStreamsOfWorker = 2;
constexpr int kRounds = 8;
constexpr int kReplays = 20;
constexpr uint32_t kElements = 1u << 16;
constexpr uint64_t kBytes = kElements * sizeof(float);
constexpr uint32_t kManagedElements = 1u << 22;  // 16 MiB
constexpr uint32_t kThreads = 256;
constexpr long long kSpinCycles = 60000;  // some 30 to 40 us: long enough for streams to overlap

std::atomic<int> wrong_results{0};

constexpr uint32_t blocks_for(uint32_t elements) { return (elements + kThreads - 1) / kThreads; }

}  // namespace

extern "C" __global__ void fill_kernel(float *values, float value, uint32_t count) {
  const uint32_t index = blockIdx.x * blockDim.x + threadIdx.x;
  if (index < count) values[index] = value;
}

extern "C" __global__ void saxpy_kernel(const float *x, float *y, float factor, uint32_t count) {
  const uint32_t index = blockIdx.x * blockDim.x + threadIdx.x;
  if (index < count) y[index] += factor * x[index];
}

extern "C" __global__ void sum_kernel(const float *values, unsigned long long *sum, uint32_t count) {
  const uint32_t index = blockIdx.x * blockDim.x + threadIdx.x;
  if (index < count) atomicAdd(sum, static_cast<unsigned long long>(values[index]));
}

extern "C" __global__ void spin_kernel(long long cycles) {
  const long long begin = clock64();
  while (clock64() - begin < cycles) {
  }
}

// A template, so that a mangled name is in the capture too.
template <class Value>
__global__ void scale_kernel(Value *values, Value factor, uint32_t count) {
  const uint32_t index = blockIdx.x * blockDim.x + threadIdx.x;
  if (index < count) values[index] *= factor;
}

namespace {

// ---- operations that count themselves

void copy(void *to, const void *from, uint64_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  ledger.copy(kind == cudaMemcpyHostToDevice ? "HtoD" : kind == cudaMemcpyDeviceToHost ? "DtoH" : "DtoD", bytes);
  SONDE_TEST_CALL(cudaMemcpyAsync, to, from, bytes, kind, stream);
}

void blocking_copy(void *to, const void *from, uint64_t bytes, cudaMemcpyKind kind) {
  ledger.copy(kind == cudaMemcpyHostToDevice ? "HtoD" : kind == cudaMemcpyDeviceToHost ? "DtoH" : "DtoD", bytes);
  SONDE_TEST_CALL(cudaMemcpy, to, from, bytes, kind);
}

void set(void *to, int value, uint64_t bytes, cudaStream_t stream) {
  ledger.set(bytes);
  SONDE_TEST_CALL(cudaMemsetAsync, to, value, bytes, stream);
}

template <class Value>
Value *allocate_device(uint64_t count) {
  Value *memory = nullptr;
  ledger.allocate("device", count * sizeof(Value));
  SONDE_TEST_CALL(cudaMalloc, reinterpret_cast<void **>(&memory), count * sizeof(Value));
  return memory;
}

void free_device(void *memory) {
  ledger.free("device");
  SONDE_TEST_CALL(cudaFree, memory);
}

template <class Value>
Value *allocate_pinned(uint64_t count) {
  Value *memory = nullptr;
  ledger.allocate("pinned", count * sizeof(Value));
  SONDE_TEST_CALL(cudaHostAlloc, reinterpret_cast<void **>(&memory), count * sizeof(Value), cudaHostAllocDefault);
  return memory;
}

void free_pinned(void *memory) {
  ledger.free("pinned");
  SONDE_TEST_CALL(cudaFreeHost, memory);
}

// From `pool`, or from the device's default pool when it is null.
float *allocate_in_order(uint64_t count, cudaMemPool_t pool, cudaStream_t stream) {
  void *memory = nullptr;
  ledger.allocate("stream_ordered", count * sizeof(float));
  if (pool == nullptr) {
    SONDE_TEST_CALL(cudaMallocAsync, &memory, count * sizeof(float), stream);
  } else {
    SONDE_TEST_CALL(cudaMallocFromPoolAsync, &memory, count * sizeof(float), pool, stream);
  }
  return static_cast<float *>(memory);
}

void free_in_order(void *memory, cudaStream_t stream) {
  ledger.free("stream_ordered");
  SONDE_TEST_CALL(cudaFreeAsync, memory, stream);
}

void expect_equal(const char *what, unsigned long long value, unsigned long long reference) {
  if (value == reference) return;
  std::fprintf(stderr, "%s: %llu instead of %llu\n", what, value, reference);
  ++wrong_results;
}

// ---- ranges of every flavour

constexpr const char *kDefaultDomain = "default";
constexpr const char *kDomain = "streams.program";

struct Ranges {
  nvtxDomainHandle_t domain = nullptr;
  nvtxStringHandle_t replay_name = nullptr;
  nvtxRangeId_t whole_run = 0;  // begun on the main thread, ended on a worker
};

Ranges ranges;

nvtxEventAttributes_t attributes_of(const char *text) {
  nvtxEventAttributes_t attributes = {};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
  attributes.message.ascii = text;
  return attributes;
}

void open_ranges() {
  ranges.domain = nvtxDomainCreateA(kDomain);
  ranges.replay_name = nvtxDomainRegisterStringA(ranges.domain, "replay");
  nvtxNameCategoryA(1, "setup");
  nvtxDomainNameCategoryA(ranges.domain, 2, "graph");
  nvtxNameOsThreadA(static_cast<uint32_t>(syscall(SYS_gettid)), "main thread");
  ranges.whole_run = nvtxRangeStartA("whole run");
  ledger.range(kDefaultDomain, "start");
}

void push(const char *text) {
  nvtxRangePushA(text);
  ledger.range(kDefaultDomain, "push");
}

void pop() {
  nvtxRangePop();
  ledger.range(kDefaultDomain, "pop");
}

// ---- the worker threads

struct Worker {
  int index = 0;
  cudaStream_t streams[kStreamsOfWorker] = {};
  cudaEvent_t computed = nullptr;
  cudaEvent_t finished = nullptr;
  cudaMemPool_t pool = nullptr;
  float *input = nullptr;                // pinned
  unsigned long long *result = nullptr;  // pinned
  unsigned long long *sum = nullptr;     // device
};

void run_round(Worker &worker, int round) {
  const cudaStream_t first = worker.streams[0];
  const cudaStream_t second = worker.streams[1];
  const uint32_t blocks = blocks_for(kElements);
  const float value = static_cast<float>(1 + worker.index + round);
  for (uint32_t index = 0; index < kElements; ++index) worker.input[index] = value;

  SONDE_TEST_LAUNCH("spin_kernel", spin_kernel, 1, 32, first, kSpinCycles);
  SONDE_TEST_LAUNCH("spin_kernel", spin_kernel, 1, 32, second, kSpinCycles);

  float *x = allocate_in_order(kElements, nullptr, first);
  float *y = allocate_in_order(kElements, worker.pool, first);
  set(y, 0, kBytes, first);
  copy(x, worker.input, kBytes, cudaMemcpyHostToDevice, first);
  SONDE_TEST_LAUNCH("saxpy_kernel", saxpy_kernel, blocks, kThreads, first, x, y, 2.0f, kElements);
  SONDE_TEST_CALL(cudaEventRecord, worker.computed, first);

  SONDE_TEST_CALL(cudaStreamWaitEvent, second, worker.computed, 0);
  float *z = allocate_in_order(kElements, nullptr, second);
  copy(z, y, kBytes, cudaMemcpyDeviceToDevice, second);
  SONDE_TEST_LAUNCH("scale_kernel", scale_kernel<float>, blocks, kThreads, second, z, 3.0f, kElements);
  set(worker.sum, 0, sizeof(*worker.sum), second);
  SONDE_TEST_LAUNCH("sum_kernel", sum_kernel, blocks, kThreads, second, z, worker.sum, kElements);
  copy(worker.result, worker.sum, sizeof(*worker.sum), cudaMemcpyDeviceToHost, second);
  free_in_order(z, second);
  SONDE_TEST_CALL(cudaEventRecord, worker.finished, second);

  SONDE_TEST_CALL(cudaStreamWaitEvent, first, worker.finished, 0);
  free_in_order(x, first);
  free_in_order(y, first);
  SONDE_TEST_CALL(cudaStreamSynchronize, first);
  // 3 * (0 + 2 * value) for each element.
  expect_equal("sum of a round", *worker.result, 6ull * static_cast<unsigned long long>(value) * kElements);
}

void run_worker(Worker &worker) {
  const std::string name = "worker " + std::to_string(worker.index);
  nvtxNameOsThreadA(static_cast<uint32_t>(syscall(SYS_gettid)), name.c_str());
  for (int round = 0; round < kRounds; ++round) {
    push((name + " round " + std::to_string(round)).c_str());
    nvtxEventAttributes_t attributes = attributes_of("compute");
    attributes.payloadType = NVTX_PAYLOAD_TYPE_INT64;
    attributes.payload.llValue = round;
    attributes.colorType = NVTX_COLOR_ARGB;
    attributes.color = 0xff3366ccu;
    nvtxDomainRangePushEx(ranges.domain, &attributes);
    ledger.range(kDomain, "push");
    run_round(worker, round);
    nvtxDomainRangePop(ranges.domain);
    ledger.range(kDomain, "pop");
    pop();
  }
  if (worker.index == 0) {
    nvtxRangeEnd(ranges.whole_run);
    ledger.range(kDefaultDomain, "end");
  }
}

void make_worker(Worker &worker, int index) {
  worker.index = index;
  for (int number = 0; number < kStreamsOfWorker; ++number) {
    SONDE_TEST_CALL(cudaStreamCreateWithFlags, &worker.streams[number], cudaStreamNonBlocking);
    const std::string name = "worker " + std::to_string(index) + " stream " + std::to_string(number);
    nvtxNameCudaStreamA(worker.streams[number], name.c_str());
  }
  SONDE_TEST_CALL(cudaEventCreateWithFlags, &worker.computed, cudaEventDisableTiming);
  SONDE_TEST_CALL(cudaEventCreateWithFlags, &worker.finished, cudaEventDisableTiming);
  cudaMemPoolProps properties = {};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location.type = cudaMemLocationTypeDevice;
  properties.location.id = 0;
  SONDE_TEST_CALL(cudaMemPoolCreate, &worker.pool, &properties);
  worker.input = allocate_pinned<float>(kElements);
  worker.result = allocate_pinned<unsigned long long>(1);
  worker.sum = allocate_device<unsigned long long>(1);
}

void end_worker(Worker &worker) {
  free_device(worker.sum);
  free_pinned(worker.result);
  free_pinned(worker.input);
  SONDE_TEST_CALL(cudaMemPoolDestroy, worker.pool);
  SONDE_TEST_CALL(cudaEventDestroy, worker.finished);
  SONDE_TEST_CALL(cudaEventDestroy, worker.computed);
  for (cudaStream_t stream : worker.streams) SONDE_TEST_CALL(cudaStreamDestroy, stream);
}

// ---- what the main thread does on the default stream

void run_blocking_part() {
  push("blocking copies");
  std::vector<float> host(kElements, 5.0f);
  float *x = allocate_device<float>(kElements);
  float *y = allocate_device<float>(kElements);
  blocking_copy(x, host.data(), kBytes, cudaMemcpyHostToDevice);
  ledger.set(kBytes);
  SONDE_TEST_CALL(cudaMemset, y, 0, kBytes);
  SONDE_TEST_LAUNCH("saxpy_kernel", saxpy_kernel, blocks_for(kElements), kThreads, nullptr, x, y, 4.0f, kElements);
  blocking_copy(x, y, kBytes, cudaMemcpyDeviceToDevice);
  blocking_copy(host.data(), x, kBytes, cudaMemcpyDeviceToHost);
  expect_equal("last blocking copy", static_cast<unsigned long long>(host[kElements - 1]), 20);
  free_device(y);
  free_device(x);
  pop();
}

void prefetch_to_device(void *memory, uint64_t bytes) {
#if CUDART_VERSION >= 13000
  cudaMemLocation location = {};
  location.type = cudaMemLocationTypeDevice;
  location.id = 0;
  SONDE_TEST_CALL(cudaMemPrefetchAsync, memory, bytes, location, 0, nullptr);
#else
  SONDE_TEST_CALL(cudaMemPrefetchAsync, memory, bytes, 0, nullptr);
#endif
}

void run_managed_part() {
  nvtxRangePushW(L"managed memory");
  ledger.range(kDefaultDomain, "push");
  const uint64_t bytes = kManagedElements * sizeof(float);
  float *values = nullptr;
  ledger.allocate("managed", bytes);
  SONDE_TEST_CALL(cudaMallocManaged, reinterpret_cast<void **>(&values), bytes, cudaMemAttachGlobal);
  for (uint32_t index = 0; index < kManagedElements; ++index) values[index] = 7.0f;
  prefetch_to_device(values, bytes / 2);  // the other half moves by page faults
  SONDE_TEST_LAUNCH("scale_kernel", scale_kernel<float>, blocks_for(kManagedElements), kThreads, nullptr, values, 2.0f,
                    kManagedElements);
  SONDE_TEST_CALL(cudaDeviceSynchronize);
  expect_equal("managed value", static_cast<unsigned long long>(values[kManagedElements - 1]), 14);
  ledger.free("managed");
  SONDE_TEST_CALL(cudaFree, values);
  pop();
}

// ---- the graph

void run_graph(Worker (&workers)[kWorkers]) {
  const cudaStream_t main_stream = workers[0].streams[0];
  const cudaStream_t side_stream = workers[1].streams[0];
  const uint32_t blocks = blocks_for(kElements);
  Worker &worker = workers[0];
  float *x = allocate_device<float>(kElements);
  float *y = allocate_device<float>(kElements);
  float *z = allocate_device<float>(kElements);
  for (uint32_t index = 0; index < kElements; ++index) worker.input[index] = 3.0f;

  nvtxEventAttributes_t attributes = attributes_of("capture");
  attributes.category = 2;
  nvtxDomainRangePushEx(ranges.domain, &attributes);
  ledger.range(kDomain, "push");
  cudaGraph_t graph = nullptr;
  expected::Ledger::repeat = kReplays;
  SONDE_TEST_CALL(cudaStreamBeginCapture, main_stream, cudaStreamCaptureModeThreadLocal);
  copy(x, worker.input, kBytes, cudaMemcpyHostToDevice, main_stream);
  set(y, 0, kBytes, main_stream);
  SONDE_TEST_CALL(cudaEventRecord, worker.computed, main_stream);
  SONDE_TEST_CALL(cudaStreamWaitEvent, side_stream, worker.computed, 0);
  SONDE_TEST_LAUNCH("fill_kernel", fill_kernel, blocks, kThreads, side_stream, z, 1.0f, kElements);
  SONDE_TEST_CALL(cudaEventRecord, worker.finished, side_stream);
  SONDE_TEST_LAUNCH("saxpy_kernel", saxpy_kernel, blocks, kThreads, main_stream, x, y, 2.0f, kElements);
  SONDE_TEST_CALL(cudaStreamWaitEvent, main_stream, worker.finished, 0);
  SONDE_TEST_LAUNCH("saxpy_kernel", saxpy_kernel, blocks, kThreads, main_stream, z, y, 4.0f, kElements);
  copy(x, y, kBytes, cudaMemcpyDeviceToDevice, main_stream);
  set(worker.sum, 0, sizeof(*worker.sum), main_stream);
  SONDE_TEST_LAUNCH("sum_kernel", sum_kernel, blocks, kThreads, main_stream, x, worker.sum, kElements);
  copy(worker.result, worker.sum, sizeof(*worker.sum), cudaMemcpyDeviceToHost, main_stream);
  SONDE_TEST_CALL(cudaStreamEndCapture, main_stream, &graph);
  expected::Ledger::repeat = 1;
  cudaGraphExec_t executable = nullptr;
  SONDE_TEST_CALL(cudaGraphInstantiate, &executable, graph, 0);
  nvtxDomainRangePop(ranges.domain);
  ledger.range(kDomain, "pop");

  for (int replay = 0; replay < kReplays; ++replay) {
    nvtxEventAttributes_t replay_attributes = attributes_of("");
    replay_attributes.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    replay_attributes.message.registered = ranges.replay_name;
    replay_attributes.payloadType = NVTX_PAYLOAD_TYPE_DOUBLE;
    replay_attributes.payload.dValue = replay / 4.0;
    const nvtxRangeId_t range = nvtxDomainRangeStartEx(ranges.domain, &replay_attributes);
    ledger.range(kDomain, "start");
    *worker.result = 0;
    SONDE_TEST_CALL(cudaGraphLaunch, executable, main_stream);
    SONDE_TEST_CALL(cudaStreamSynchronize, main_stream);
    // 2 * 3 + 4 * 1 for each element.
    expect_equal("sum of a replay", *worker.result, 10ull * kElements);
    nvtxDomainRangeEnd(ranges.domain, range);
    ledger.range(kDomain, "end");
  }
  SONDE_TEST_CALL(cudaGraphExecDestroy, executable);
  SONDE_TEST_CALL(cudaGraphDestroy, graph);
  free_device(z);
  free_device(y);
  free_device(x);
}

}  // namespace

int main() {
  open_ranges();
  SONDE_TEST_CALL(cudaSetDevice, 0);
  Worker workers[kWorkers];
  for (int index = 0; index < kWorkers; ++index) make_worker(workers[index], index);

  nvtxMarkA("begin");
  ledger.range(kDefaultDomain, "mark");
  run_blocking_part();
  std::vector<std::thread> threads;
  for (Worker &worker : workers) threads.emplace_back(run_worker, std::ref(worker));
  for (std::thread &thread : threads) thread.join();
  run_managed_part();
  run_graph(workers);
  nvtxMarkW(L"end");
  ledger.range(kDefaultDomain, "mark");

  SONDE_TEST_CALL(cudaDeviceSynchronize);
  for (Worker &worker : workers) end_worker(worker);
  nvtxDomainDestroy(ranges.domain);
  std::printf("{\"program\":\"streams\",\"wrong\":%d,%s}\n", wrong_results.load(), ledger.json().c_str());
  return wrong_results.load() == 0 ? 0 : 1;
}
