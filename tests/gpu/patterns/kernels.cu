// How kernels reach memory: sectors, banks, blocks that do unequal work, blocks of memory that all want.
#include "program.h"

namespace patterns {

namespace {

__device__ size_t me() { return size_t{blockIdx.x} * blockDim.x + threadIdx.x; }

// Neighbouring threads read elements of a square of 256 x 256 that are 256 apart: 32 sectors a warp where 4 would do.
__global__ void read_across(const float *source, float *target) {
  target[me()] = source[me() % 256 * 256 + me() / 256];
}
__global__ void read_along(const float *source, float *target) { target[me()] = source[me()]; }

// Each thread writes and reads one word of its own, `stride` words from its neighbour's. 32: all lanes of a warp in one
// bank; 33: none in another's. A warp has 1,056 words, so strides up to 33 stay inside.
__global__ void shared_words(float *target, unsigned stride) {
  __shared__ volatile float words[8 * 1056];
  volatile float *const mine = words + threadIdx.x / 32 * 1056 + threadIdx.x % 32 * stride;
  *mine = 1.0f;
  target[me()] = *mine;
}

// One block in `period` reads 64 elements a thread, the others one.
__global__ void unequal_work(const float *source, float *target, unsigned period) {
  const unsigned rounds = blockIdx.x % period == 0 ? 64 : 1;
  float sum = 0.0f;
  for (unsigned i = 0; i < rounds; ++i) sum += source[(me() + i * 256) % (256 * 256)];
  target[me()] = sum;
}

// Each thread reads the first element of a piece of 256 bytes of its own, then four more: of the 64 KiB at `where`, or first
// elements of other pieces.
__global__ void favourite(const float *source, float *target, size_t pieces, size_t where, bool is_hot) {
  float sum = source[me() * 64];
  for (size_t i = 1; i <= 4; ++i) {
    const size_t other = (me() + i * 4096) % pieces;
    sum += source[is_hot ? where + other % (16 * 1024) : other * 64];
  }
  target[me()] = sum;
}

constexpr size_t kSquare = 256 * 256;

}  // namespace

void uncoalesced(Program &program, bool improved) {
  float *const source = program.allocate("source", kSquare);
  program.copy_in(source, kSquare);
  float *const target = program.allocate("target", kSquare);
  launch(improved ? read_along : read_across, kSquare, nullptr, source, target);
  program.copy_out(target, kSquare);
  program.release(source);
  program.release(target);
}

void bank_conflicts(Program &program, bool improved) {
  float *const target = program.allocate("target", kSquare);
  launch(shared_words, kSquare, nullptr, target, improved ? 33u : 32u);
  program.copy_out(target, kSquare);
  program.release(target);
}

void diverging_blocks(Program &program, bool improved) {
  float *const source = program.allocate("source", kSquare);
  program.copy_in(source, kSquare);
  float *const target = program.allocate("target", kSquare);
  launch(unequal_work, kSquare, nullptr, source, target, improved ? 1u : 4u);
  program.copy_out(target, kSquare);
  program.release(source);
  program.release(target);
}

// 40 MiB, of which four of six accesses go to 64 KiB. Improved: they go everywhere.
void hot_block(Program &program, bool improved) {
  constexpr size_t kCount = 40 * kMebi, kPieces = kCount / 64;
  float *const source = program.allocate("source", kCount);
  program.copy_in(source, kCount);
  float *const target = program.allocate("target", kPieces);
  launch(favourite, kPieces, nullptr, source, target, kPieces, 5 * kMebi, !improved);
  program.copy_out(target, kPieces);
  program.release(source);
  program.release(target);
}

}  // namespace patterns
