// How kernels reach memory: sectors, banks, blocks that do unequal work, blocks of memory that all want.
#include "program.h"

namespace patterns {

namespace {

__device__ size_t me() { return size_t{blockIdx.x} * blockDim.x + threadIdx.x; }

// Neighbouring threads read elements 1,024 apart: 32 sectors a warp where 4 would do.
__global__ void read_across(const float *source, float *target) {
  target[me()] = source[me() % 1024 * 1024 + me() / 1024];
}
__global__ void read_along(const float *source, float *target) { target[me()] = source[me()]; }

// Each thread writes and reads one word of its own, `stride` words from its neighbour's. 32: all lanes of a warp in one bank; 33: none.
// A warp has 1,056 words, so strides up to 33 stay inside.
__global__ void shared_words(float *target, unsigned stride) {
  __shared__ volatile float words[8 * 1056];
  volatile float *const mine = words + threadIdx.x / 32 * 1056 + threadIdx.x % 32 * stride;
  *mine = 1.0f;
  target[me()] = *mine;
}

// One block in four reads its part 64 times, the others once.
__global__ void unequal_work(const float *source, float *target, unsigned period) {
  const unsigned rounds = blockIdx.x % period == 0 ? 64 : 1;
  float sum = 0.0f;
  for (unsigned i = 0; i < rounds; ++i) sum += source[(me() + i * 256) % (1024 * 1024)];
  target[me()] = sum;
}

// All threads read one block of 2 MiB of a larger object once more than the rest.
__global__ void favourite(const float *source, float *target, size_t where, unsigned times) {
  float sum = source[me()];
  for (unsigned i = 0; i < times; ++i) sum += source[where + (me() + i * 8192) % (512 * 1024)];
  target[me()] = sum;
}

}  // namespace

void uncoalesced(Program &program, bool improved) {
  float *const source = program.allocate("source", 4 * kMebi);
  program.copy_in(source, 4 * kMebi);
  float *const target = program.allocate("target", 4 * kMebi);
  launch(improved ? read_along : read_across, 4 * kMebi, nullptr, source, target);
  program.copy_out(target, 4 * kMebi);
  program.release(source);
  program.release(target);
}

void bank_conflicts(Program &program, bool improved) {
  float *const target = program.allocate("target", kMebi);
  launch(shared_words, kMebi, nullptr, target, improved ? 33u : 32u);
  program.copy_out(target, kMebi);
  program.release(target);
}

void diverging_blocks(Program &program, bool improved) {
  float *const source = program.allocate("source", 4 * kMebi);
  program.copy_in(source, 4 * kMebi);
  float *const target = program.allocate("target", 4 * kMebi);
  launch(unequal_work, 4 * kMebi, nullptr, source, target, improved ? 1u : 4u);
  program.copy_out(target, 4 * kMebi);
  program.release(source);
  program.release(target);
}

void hot_block(Program &program, bool improved) {
  float *const source = program.allocate("source", 8 * kMebi);
  program.copy_in(source, 8 * kMebi);
  float *const target = program.allocate("target", 8 * kMebi);
  launch(favourite, 8 * kMebi, nullptr, source, target, 2 * kMebi, improved ? 0u : 8u);
  program.copy_out(target, 8 * kMebi);
  program.release(source);
  program.release(target);
}

}  // namespace patterns
