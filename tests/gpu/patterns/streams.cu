// Streams and pools: copies beside kernels, stream-ordered memory, holes, frees on other streams.
#include "program.h"

namespace patterns {

namespace {

struct Blocks {
  float *at[8];
};

// Writes one element of each block.
__global__ void fill_blocks(Blocks blocks) {
  const size_t me = size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  for (float *const block : blocks.at) {
    if (block != nullptr) block[me] = 1.0f;
  }
}

}  // namespace

// Four rounds of copy in, compute, copy out, each with buffers of its own. Improved: one pair of buffers serves all rounds.
void streams_of_copies(Program &program, bool improved) {
  constexpr int kRounds = 4;
  const char *const in_names[] = {"in0", "in1", "in2", "in3"}, *const out_names[] = {"out0", "out1", "out2", "out3"};
  float *in[kRounds], *out[kRounds];
  cudaStream_t streams[kRounds];
  float *host = nullptr;
  CHECK(cudaMallocHost(&host, 2 * kUnit * sizeof(float)));
  for (size_t i = 0; i < 2 * kUnit; ++i) host[i] = 1.0f;
  for (cudaStream_t &stream : streams) CHECK(cudaStreamCreate(&stream));
  for (int i = 0; i < kRounds; ++i) {
    in[i] = improved && i > 0 ? in[0] : program.allocate(in_names[i], kUnit);
    out[i] = improved && i > 0 ? out[0] : program.allocate(out_names[i], kUnit);
  }
  for (int i = 0; i < kRounds; ++i) {
    cudaStream_t const stream = streams[improved ? 0 : i];
    CHECK(cudaMemcpyAsync(in[i], host, kUnit * sizeof(float), cudaMemcpyHostToDevice, stream));
    map(in[i], out[i], kUnit, stream);
    CHECK(cudaMemcpyAsync(host + kUnit, out[i], kUnit * sizeof(float), cudaMemcpyDeviceToHost, stream));
  }
  CHECK(cudaDeviceSynchronize());
  for (int i = 0; i < (improved ? 1 : kRounds); ++i) {
    program.release(in[i]);
    program.release(out[i]);
  }
  for (cudaStream_t const stream : streams) CHECK(cudaStreamDestroy(stream));
  CHECK(cudaFreeHost(host));
}

// Eight neighbours from a pool; every other one is freed, then twice as much is asked for, which fits into no hole.
// Improved: all eight are freed.
void pool_holes(Program &program, bool improved) {
  const char *const names[] = {"block0", "block1", "block2", "block3", "block4", "block5", "block6", "block7"};
  constexpr size_t kBlock = 2 * kUnit;
  cudaMemPoolProps properties = {};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location.type = cudaMemLocationTypeDevice;
  cudaMemPool_t pool;
  CHECK(cudaMemPoolCreate(&pool, &properties));
  uint64_t keep = UINT64_MAX;
  CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep));
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  Blocks blocks;
  for (int i = 0; i < 8; ++i) blocks.at[i] = program.allocate_from(names[i], kBlock, pool, stream);
  launch(fill_blocks, kBlock, stream, blocks);
  for (int i = 0; i < 8; i += improved ? 1 : 2) program.release_ordered(blocks.at[i], stream);
  float *const large = program.allocate_from("large", 2 * kBlock, pool, stream);
  if (improved) {
    fill(large, 2 * kBlock, stream);
  } else {
    // The blocks that are left are used beside the large one.
    Blocks left = {{blocks.at[1], blocks.at[3], blocks.at[5], blocks.at[7], large, large + kBlock, nullptr, nullptr}};
    launch(fill_blocks, kBlock, stream, left);
    for (int i = 1; i < 8; i += 2) program.release_ordered(blocks.at[i], stream);
  }
  program.release_ordered(large, stream);
  CHECK(cudaStreamSynchronize(stream));
  CHECK(cudaMemPoolDestroy(pool));
  CHECK(cudaStreamDestroy(stream));
}

// `shared` is used on one stream and freed on another. Nothing orders the free behind the use but luck: nobody asks for memory
// meanwhile, so what the kernel reads stays where it is. Improved: an event orders them.
void freed_on_another_stream(Program &program, bool improved) {
  cudaStream_t one, other;
  CHECK(cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking));
  CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  cudaMemPool_t pool;
  CHECK(cudaDeviceGetDefaultMemPool(&pool, 0));
  uint64_t keep = UINT64_MAX;
  CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep));
  cudaEvent_t used;
  CHECK(cudaEventCreateWithFlags(&used, cudaEventDisableTiming));
  float *const shared = program.allocate_ordered("shared", 2 * kUnit, one);
  fill(shared, 2 * kUnit, one);
  if (improved) {
    CHECK(cudaEventRecord(used, one));
    CHECK(cudaStreamWaitEvent(other, used, 0));
  }
  program.release_ordered(shared, other);
  CHECK(cudaStreamSynchronize(one));
  CHECK(cudaStreamSynchronize(other));
  CHECK(cudaEventDestroy(used));
  CHECK(cudaStreamDestroy(one));
  CHECK(cudaStreamDestroy(other));
}

// early_allocation with stream-ordered memory.
void early_in_pool(Program &program, bool improved) {
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  float *result = improved ? nullptr : program.allocate_ordered("result", 2 * kUnit, stream);
  float *const work = program.allocate_ordered("work", kUnit, stream);
  fill(work, kUnit, stream);
  step(work, kUnit, stream);
  if (improved) result = program.allocate_ordered("result", 2 * kUnit, stream);
  map(work, result, kUnit, stream);
  program.release_ordered(work, stream);
  step(result, 2 * kUnit, stream);
  CHECK(cudaStreamSynchronize(stream));
  program.copy_out(result, 2 * kUnit);
  program.release_ordered(result, stream);
  CHECK(cudaStreamSynchronize(stream));
  CHECK(cudaStreamDestroy(stream));
}

}  // namespace patterns
