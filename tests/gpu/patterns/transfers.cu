// What the host moves, and how: for a recorder of time, not of accesses.
#include "program.h"

namespace patterns {

// The device waits for pageable copies between kernels. Improved: pinned copies on another stream beside the kernels.
void blocking_copies(Program &program, bool improved) {
  constexpr size_t kCount = 4 * kMebi;
  float *const work = program.allocate("work", kCount), *const next = program.allocate("next", kCount);
  float *pinned = nullptr;
  cudaStream_t copies;
  CHECK(cudaMallocHost(&pinned, kCount * sizeof(float)));
  CHECK(cudaStreamCreateWithFlags(&copies, cudaStreamNonBlocking));
  fill(work, kCount);
  for (int round = 0; round < 8; ++round) {
    if (improved) {
      CHECK(cudaMemcpyAsync(next, pinned, kCount * sizeof(float), cudaMemcpyHostToDevice, copies));
    } else {
      program.copy_in(next, kCount);
    }
    for (int i = 0; i < 20; ++i) step(work, kCount);
  }
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaStreamDestroy(copies));
  CHECK(cudaFreeHost(pinned));
  program.release(work);
  program.release(next);
}

// 400 copies of 256 bytes. Improved: one copy of all of them.
void tiny_copies(Program &program, bool improved) {
  constexpr size_t kCopies = 400, kEach = 64;
  float *const target = program.allocate("target", kCopies * kEach);
  if (improved) {
    program.copy_in(target, kCopies * kEach);
  } else {
    for (size_t i = 0; i < kCopies; ++i) program.copy_in(target + i * kEach, kEach);
  }
  step(target, kCopies * kEach / 256 * 256);
  program.release(target);
}

// Host and device take turns at one managed buffer. Improved: the host has its turn before and after, not between.
void managed_ping_pong(Program &program, bool improved) {
  constexpr size_t kCount = 4 * kMebi;
  constexpr int kTurns = 8;
  float *const shared = program.allocate_managed("shared", kCount);
  for (size_t i = 0; i < kCount; ++i) shared[i] = 1.0f;
  for (int turn = 0; turn < kTurns; ++turn) {
    step(shared, kCount);
    if (improved) continue;
    CHECK(cudaDeviceSynchronize());
    for (size_t i = 0; i < kCount; i += kPage) shared[i] += 1.0f;
  }
  CHECK(cudaDeviceSynchronize());
  for (size_t i = 0; i < kCount; i += kPage) shared[i] += 1.0f;
  program.release(shared);
}

}  // namespace patterns
