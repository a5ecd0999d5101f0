// Small kernels whose accesses can be counted by hand, as a program that knows nothing of Sonde.
//
// Prints one JSON object: for each kernel what it must have done, by object. Expected numbers follow from the indexing of
// each kernel, written beside it. --few leaves out the 70,000 allocations.
#include <cuda.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#define CHECK(call)                                                                                      \
  do {                                                                                                   \
    const auto status_ = (call);                                                                         \
    if (status_ != 0) {                                                                                  \
      std::fprintf(stderr, "%s:%d: %s gave %d\n", __FILE__, __LINE__, #call, static_cast<int>(status_)); \
      std::exit(1);                                                                                      \
    }                                                                                                    \
  } while (0)

__device__ __forceinline__ uint32_t me() { return blockIdx.x * blockDim.x + threadIdx.x; }

extern "C" {
// n reads of 4 bytes, n writes of 4 bytes.
__global__ void k_copy(const float *a, float *b) { b[me()] = a[me()]; }
// Every fourth element.
__global__ void k_stride(const float *a, float *b) { b[me()] = a[me() * 4]; }
// Through an index: n reads of the index, n of the data.
__global__ void k_gather(const int *index, const float *a, float *b) { b[me()] = a[index[me()]]; }
// Threads whose number is no multiple of 3 do nothing: ceil(n / 3) reads and writes.
__global__ void k_mask(const float *a, float *b) {
  if (me() % 3 == 0) b[me()] = a[me()];
}
__global__ void k_vector2(const float2 *a, float2 *b) { b[me()] = a[me()]; }
__global__ void k_vector4(const float4 *a, float4 *b) { b[me()] = a[me()]; }
__global__ void k_bytes(const uint8_t *a, uint8_t *b) { b[me()] = a[me()]; }
__global__ void k_shorts(const uint16_t *a, uint16_t *b) { b[me()] = a[me()]; }
// One atomic operation a thread, all on one word; its result is used, so that it is no reduction. An exchange, because the
// assembler makes one addition of a warp's.
__global__ void k_atomic(unsigned *counter, unsigned *b) {
  unsigned before;
  asm volatile("atom.global.exch.b32 %0, [%1], %2;" : "=r"(before) : "l"(counter), "r"(threadIdx.x) : "memory");
  b[me()] = before;
}
// Atomic operations without a result, of 8 bytes.
__global__ void k_reduce(unsigned long long *sums) { atomicAdd(sums + me() % 32, 1ull); }
// The two halves of each warp read two objects.
__global__ void k_two_objects(const float *a, const float *b, float *c) {
  const float *const from = threadIdx.x % 32 < 16 ? a : b;
  c[me()] = from[me()];
}
// Each thread copies 16 bytes to shared memory asynchronously, then writes them.
__global__ void k_copy_async(const int4 *a, int4 *b) {
  __shared__ int4 buffer[256];
  const auto to = static_cast<uint32_t>(__cvta_generic_to_shared(&buffer[threadIdx.x]));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(a + me()) : "memory");
  asm volatile("cp.async.wait_all;" ::: "memory");
  __syncthreads();
  b[me()] = buffer[threadIdx.x];
}
// Each block loads 1 KiB by one bulk copy and stores it by another.
__global__ void k_bulk(const int *a, int *b) {
#if __CUDA_ARCH__ >= 900
  __shared__ alignas(128) int buffer[256];
  __shared__ alignas(8) unsigned long long barrier;
  const auto arrival = static_cast<uint32_t>(__cvta_generic_to_shared(&barrier));
  const auto to = static_cast<uint32_t>(__cvta_generic_to_shared(buffer));
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(arrival));
    asm volatile("fence.mbarrier_init.release.cluster;");
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(arrival), "r"(1024));
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
                 "l"(a + blockIdx.x * 256), "r"(1024), "r"(arrival)
                 : "memory");
  }
  uint32_t done = 0;
  while (done == 0) {
    asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], 0; selp.u32 %0, 1, 0, p;}"
                 : "=r"(done)
                 : "r"(arrival));
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("fence.proxy.async.shared::cta;");
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(b + blockIdx.x * 256), "r"(to),
                 "r"(1024)
                 : "memory");
    asm volatile("cp.async.bulk.commit_group;");
    asm volatile("cp.async.bulk.wait_group 0;");
  }
#endif
}
// A tile through a tensor map, which no patch sees: the launch must say that it is incomplete.
__global__ void k_tensor(const __grid_constant__ CUtensorMap map, int *b) {
#if __CUDA_ARCH__ >= 900
  __shared__ alignas(128) int buffer[1024];
  __shared__ alignas(8) unsigned long long barrier;
  const auto arrival = static_cast<uint32_t>(__cvta_generic_to_shared(&barrier));
  const auto to = static_cast<uint32_t>(__cvta_generic_to_shared(buffer));
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(arrival));
    asm volatile("fence.mbarrier_init.release.cluster;");
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(arrival), "r"(4096));
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
            to),
        "l"(&map), "r"(0), "r"(0), "r"(arrival)
        : "memory");
  }
  uint32_t done = 0;
  while (done == 0) {
    asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], 0; selp.u32 %0, 1, 0, p;}"
                 : "=r"(done)
                 : "r"(arrival));
  }
  __syncthreads();
  b[me()] = buffer[threadIdx.x];
#endif
}
// Shared memory with a stride of 2 words: 2 passes for each warp access; then one without conflicts.
__global__ void k_shared(float *b) {
  __shared__ float buffer[512];
  buffer[threadIdx.x * 2 % 512] = 1.0f;
  __syncthreads();
  b[me()] = buffer[threadIdx.x];
}
// Waits until its partner has come as far: ends only if both run at the same time.
__global__ void k_meet(volatile int *mine, volatile int *other, float *b) {
  if (threadIdx.x == 0 && blockIdx.x == 0) {
    *mine = 1;
    __threadfence();
    const long long begin = clock64();
    while (*other == 0 && clock64() - begin < 8000000000ll) {
    }
  }
  __syncthreads();
  b[me()] = 1.0f;
}
// One write, in a function of its own: nodes of a graph that run the same function are counted together.
__global__ void k_first(float *b) { b[0] = 1.0f; }
// First and last element of an object.
__global__ void k_ends(float *b, size_t last) {
  b[0] = 1.0f;
  b[last] = 2.0f;
}
// One write into each of many objects.
__global__ void k_many(float **objects, size_t count) {
  if (me() < count) objects[me()][0] = 1.0f;
}
}

namespace {

struct Object {
  std::string name;
  uint64_t address;
  // As in sonde.access.object.
  uint64_t reads, writes, atomics, copies, read_bytes, write_bytes, copy_bytes;
};

bool first_kernel = true;

void expect(const char *kernel, unsigned launches, bool incomplete, const std::vector<Object> &objects) {
  std::printf("%s\n{\"kernel\": \"%s\", \"launches\": %u, \"incomplete\": %s, \"objects\": [", first_kernel ? "" : ",",
              kernel, launches, incomplete ? "true" : "false");
  first_kernel = false;
  for (size_t i = 0; i < objects.size(); ++i) {
    const Object &o = objects[i];
    std::printf(
        "%s{\"name\": \"%s\", \"address\": %llu, \"reads\": %llu, \"writes\": %llu, \"atomics\": %llu, "
        "\"copies\": %llu, \"read_bytes\": %llu, \"write_bytes\": %llu, \"copy_bytes\": %llu}",
        i == 0 ? "" : ", ", o.name.c_str(), (unsigned long long)o.address, (unsigned long long)o.reads,
        (unsigned long long)o.writes, (unsigned long long)o.atomics, (unsigned long long)o.copies,
        (unsigned long long)o.read_bytes, (unsigned long long)o.write_bytes, (unsigned long long)o.copy_bytes);
  }
  std::printf("]}");
}

template <typename T>
Object object(const char *name, T *address, uint64_t reads, uint64_t read_bytes, uint64_t writes,
              uint64_t write_bytes) {
  return {name, reinterpret_cast<uint64_t>(address), reads, writes, 0, 0, read_bytes, write_bytes, 0};
}

}  // namespace

int main(int argc, char **argv) {
  const bool many = argc < 2 || std::strcmp(argv[1], "--few") != 0;
  constexpr uint64_t kBlocks = 32;
  constexpr uint64_t kThreads = 256;
  constexpr uint64_t n = kBlocks * kThreads;
  CHECK(cudaFree(nullptr));
  float *a, *b, *c;
  int *index;
  unsigned *counter;
  unsigned long long *sums;
  CHECK(cudaMalloc(&a, n * 16));
  CHECK(cudaMalloc(&b, n * 16));
  CHECK(cudaMalloc(&c, n * 16));
  CHECK(cudaMalloc(&index, n * 4));
  CHECK(cudaMalloc(&counter, 256));
  CHECK(cudaMalloc(&sums, 256));
  std::vector<int> order(n);
  for (uint64_t i = 0; i < n; ++i) order[i] = static_cast<int>(i * 2654435761u % n);
  CHECK(cudaMemcpy(index, order.data(), n * 4, cudaMemcpyHostToDevice));
  CHECK(cudaMemset(counter, 0, 256));
  CHECK(cudaMemset(sums, 0, 256));
  std::printf("{\"threads\": %llu, \"kernels\": [", (unsigned long long)n);

  k_copy<<<kBlocks, kThreads>>>(a, b);
  expect("k_copy", 1, false, {object("a", a, n, 4 * n, 0, 0), object("b", b, 0, 0, n, 4 * n)});
  k_stride<<<kBlocks, kThreads>>>(a, b);
  expect("k_stride", 1, false, {object("a", a, n, 4 * n, 0, 0), object("b", b, 0, 0, n, 4 * n)});
  k_gather<<<kBlocks, kThreads>>>(index, a, b);
  expect("k_gather", 1, false,
         {object("index", index, n, 4 * n, 0, 0), object("a", a, n, 4 * n, 0, 0), object("b", b, 0, 0, n, 4 * n)});
  k_mask<<<kBlocks, kThreads>>>(a, b);
  const uint64_t third = (n + 2) / 3;
  expect("k_mask", 1, false, {object("a", a, third, 4 * third, 0, 0), object("b", b, 0, 0, third, 4 * third)});
  k_vector2<<<kBlocks, kThreads>>>(reinterpret_cast<float2 *>(a), reinterpret_cast<float2 *>(b));
  expect("k_vector2", 1, false, {object("a", a, n, 8 * n, 0, 0), object("b", b, 0, 0, n, 8 * n)});
  k_vector4<<<kBlocks, kThreads>>>(reinterpret_cast<float4 *>(a), reinterpret_cast<float4 *>(b));
  expect("k_vector4", 1, false, {object("a", a, n, 16 * n, 0, 0), object("b", b, 0, 0, n, 16 * n)});
  k_bytes<<<kBlocks, kThreads>>>(reinterpret_cast<uint8_t *>(a), reinterpret_cast<uint8_t *>(b));
  expect("k_bytes", 1, false, {object("a", a, n, n, 0, 0), object("b", b, 0, 0, n, n)});
  k_shorts<<<kBlocks, kThreads>>>(reinterpret_cast<uint16_t *>(a), reinterpret_cast<uint16_t *>(b));
  expect("k_shorts", 1, false, {object("a", a, n, 2 * n, 0, 0), object("b", b, 0, 0, n, 2 * n)});
  k_atomic<<<kBlocks, kThreads>>>(counter, reinterpret_cast<unsigned *>(b));
  expect("k_atomic", 1, false,
         {{"counter", reinterpret_cast<uint64_t>(counter), 0, 0, n, 0, 0, 4 * n, 0}, object("b", b, 0, 0, n, 4 * n)});
  k_reduce<<<kBlocks, kThreads>>>(sums);
  expect("k_reduce", 1, false, {{"sums", reinterpret_cast<uint64_t>(sums), 0, 0, n, 0, 0, 8 * n, 0}});
  k_two_objects<<<kBlocks, kThreads>>>(a, b, c);
  expect("k_two_objects", 1, false,
         {object("a", a, n / 2, 2 * n, 0, 0), object("b", b, n / 2, 2 * n, 0, 0), object("c", c, 0, 0, n, 4 * n)});
  k_copy_async<<<kBlocks, kThreads>>>(reinterpret_cast<int4 *>(a), reinterpret_cast<int4 *>(b));
  expect("k_copy_async", 1, false,
         {{"a", reinterpret_cast<uint64_t>(a), 0, 0, 0, n, 0, 0, 16 * n}, object("b", b, 0, 0, n, 16 * n)});
  cudaDeviceProp properties;
  CHECK(cudaGetDeviceProperties(&properties, 0));
  if (properties.major >= 9) {
    k_bulk<<<kBlocks, 32>>>(reinterpret_cast<int *>(a), reinterpret_cast<int *>(b));
    expect("k_bulk", 1, false,
           {{"a", reinterpret_cast<uint64_t>(a), 0, 0, 0, kBlocks, 0, 0, 1024 * kBlocks},
            {"b", reinterpret_cast<uint64_t>(b), 0, 0, 0, kBlocks, 0, 0, 1024 * kBlocks}});
    void *encode = nullptr;
    cudaDriverEntryPointQueryResult found;
    CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &encode, 12000, cudaEnableDefault, &found));
    CUtensorMap map;
    const cuuint64_t sizes[2] = {32, 32};
    const cuuint64_t strides[1] = {128};
    const cuuint32_t box[2] = {32, 32};
    const cuuint32_t steps[2] = {1, 1};
    using Encode = CUresult (*)(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *, const cuuint64_t *,
                                const cuuint64_t *, const cuuint32_t *, const cuuint32_t *, CUtensorMapInterleave,
                                CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill);
    CHECK(reinterpret_cast<Encode>(encode)(&map, CU_TENSOR_MAP_DATA_TYPE_INT32, 2, a, sizes, strides, box, steps,
                                           CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
                                           CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
    k_tensor<<<1, 256>>>(map, reinterpret_cast<int *>(b));
    expect("k_tensor", 1, true, {object("b", b, 0, 0, 256, 1024)});
  }
  k_shared<<<kBlocks, kThreads>>>(b);
  expect("k_shared", 1, false, {object("b", b, 0, 0, n, 4 * n)});
  CHECK(cudaDeviceSynchronize());

  // A graph of three kernels, replayed. Two of them run one function: the first's record holds both.
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  k_ends<<<1, 1, 0, stream>>>(c, n - 1);
  k_first<<<1, 1, 0, stream>>>(c);
  k_ends<<<1, 1, 0, stream>>>(c, n - 1);
  CHECK(cudaStreamEndCapture(stream, &graph));
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  for (int i = 0; i < 10; ++i) CHECK(cudaGraphLaunch(exec, stream));
  CHECK(cudaStreamSynchronize(stream));
  expect("k_first", 10, false, {object("c", c, 0, 0, 1, 4)});
  expect("k_ends", 20, false, {object("c", c, 0, 0, 4, 16)});

  // Two kernels that need each other, while another thread frees and allocates the same address again and again.
  {
    int *flags;
    float *first, *second;
    CHECK(cudaMalloc(&flags, 256));
    CHECK(cudaMemset(flags, 0, 256));
    CHECK(cudaMalloc(&first, n * 4));
    CHECK(cudaMalloc(&second, n * 4));
    cudaStream_t other;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    CHECK(cudaDeviceSynchronize());
    bool stop = false;
    std::thread churn([&] {
      for (int i = 0; i < 200 && !__atomic_load_n(&stop, __ATOMIC_RELAXED); ++i) {
        void *p = nullptr;
        if (cudaMallocAsync(&p, 1 << 16, other) == cudaSuccess) cudaFreeAsync(p, other);
      }
    });
    k_meet<<<kBlocks, kThreads, 0, stream>>>(flags, flags + 1, first);
    cudaStream_t third_stream;
    CHECK(cudaStreamCreateWithFlags(&third_stream, cudaStreamNonBlocking));
    k_meet<<<kBlocks, kThreads, 0, third_stream>>>(flags + 1, flags, second);
    CHECK(cudaDeviceSynchronize());
    __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
    churn.join();
    // Reads of the other's flag depend on time: their number is not expected, the two writes of flags are.
    expect("k_meet", 2, false, {object("first", first, 0, 0, n, 4 * n), object("second", second, 0, 0, n, 4 * n)});
  }

  // An object of 6 GiB of addresses, of which the first and the last 2 MiB are backed: one mapping at each end.
  {
    CUmemAllocationProp property = {};
    property.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    property.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    const size_t piece = size_t{3} << 30;
    CUdeviceptr address = 0;
    CHECK(cuMemAddressReserve(&address, 2 * piece, 0, 0, 0));
    CUmemGenericAllocationHandle handle;
    // One physical allocation of 5 GiB makes one object over 4 GiB.
    const size_t large = size_t{5} << 30;
    CHECK(cuMemCreate(&handle, large, &property, 0));
    CHECK(cuMemMap(address, large, 0, handle, 0));
    CUmemAccessDesc access = {property.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CHECK(cuMemSetAccess(address, large, &access, 1));
    auto *const big = reinterpret_cast<float *>(address);
    k_ends<<<1, 1>>>(big, large / 4 - 1);
    CHECK(cudaDeviceSynchronize());
    expect("k_ends", 21, false, {object("big", big, 0, 0, 2, 8)});
  }

  if (many) {
    constexpr size_t kObjects = 70000;
    std::vector<float *> objects(kObjects);
    for (float *&o : objects) CHECK(cudaMalloc(&o, 512));
    float **list;
    CHECK(cudaMalloc(&list, kObjects * sizeof(float *)));
    CHECK(cudaMemcpy(list, objects.data(), kObjects * sizeof(float *), cudaMemcpyHostToDevice));
    k_many<<<(kObjects + 255) / 256, 256>>>(list, kObjects);
    CHECK(cudaDeviceSynchronize());
    std::vector<Object> expected = {object("list", list, kObjects, 8 * kObjects, 0, 0)};
    for (size_t i = 0; i < kObjects; i += 997) expected.push_back(object("small", objects[i], 0, 0, 1, 4));
    expect("k_many", 1, false, expected);
  }
  std::printf("\n]}\n");
  CHECK(cudaDeviceSynchronize());
  return 0;
}
