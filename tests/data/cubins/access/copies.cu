// One kernel for each way to copy; only the last three go through tensor maps (CUtensorMap).
#include <cstdint>

extern "C" __global__ void plain_add(float *to, const float *from) {
  to[blockIdx.x * blockDim.x + threadIdx.x] += from[blockIdx.x * blockDim.x + threadIdx.x];
}

// cp.async.bulk without a map: the Compute Sanitizer patches it.
extern "C" __global__ void bulk_load(float *to, const float *from) {
  __shared__ alignas(16) float tile[256];
  __shared__ uint64_t barrier;
  const auto tile_address = static_cast<uint32_t>(__cvta_generic_to_shared(tile));
  const auto barrier_address = static_cast<uint32_t>(__cvta_generic_to_shared(&barrier));
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(barrier_address));
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], 1024;" ::"r"(barrier_address));
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 1024, [%2];" ::"r"(tile_address),
        "l"(from), "r"(barrier_address));
  }
  __syncthreads();
  to[threadIdx.x] = tile[threadIdx.x];
}

extern "C" __global__ void tensor_load(float *to, const void *map) {
  __shared__ alignas(128) float tile[256];
  __shared__ uint64_t barrier;
  const auto tile_address = static_cast<uint32_t>(__cvta_generic_to_shared(tile));
  const auto barrier_address = static_cast<uint32_t>(__cvta_generic_to_shared(&barrier));
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(barrier_address));
    asm volatile(
        "cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2}], [%3];" ::"r"(
            tile_address),
        "l"(map), "r"(0), "r"(barrier_address));
  }
  __syncthreads();
  to[threadIdx.x] = tile[threadIdx.x];
}

extern "C" __global__ void tensor_store(const float *from, const void *map) {
  __shared__ alignas(128) float tile[256];
  tile[threadIdx.x] = from[threadIdx.x];
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%0, {%1}], [%2];" ::"l"(map), "r"(0),
                 "r"(static_cast<uint32_t>(__cvta_generic_to_shared(tile))));
  }
}

extern "C" __global__ void tensor_reduce(const float *from, const void *map) {
  __shared__ alignas(128) float tile[256];
  tile[threadIdx.x] = from[threadIdx.x];
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("cp.reduce.async.bulk.tensor.1d.global.shared::cta.add.bulk_group [%0, {%1}], [%2];" ::"l"(map),
                 "r"(0), "r"(static_cast<uint32_t>(__cvta_generic_to_shared(tile))));
  }
}
