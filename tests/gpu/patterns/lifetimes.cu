// When objects are made and freed, beside when they are used. Sizes of different objects differ by more than a factor of 1.5, so that none
// could take the place of another, except where that is the point.
#include "program.h"

namespace patterns {

// `result` is made before three kernels that do not need it.
void early_allocation(Program &program, bool improved) {
  float *result = improved ? nullptr : program.allocate("result", 2 * kMebi);
  float *const work = program.allocate("work", kMebi);
  fill(work, kMebi);
  step(work, kMebi);
  step(work, kMebi);
  if (improved) result = program.allocate("result", 2 * kMebi);
  widen(work, result, kMebi, 2);
  program.release(work);
  program.copy_out(result, 2 * kMebi);
  program.release(result);
}

// `input` stays for three kernels that do not need it.
void late_deallocation(Program &program, bool improved) {
  float *const input = program.allocate("input", 2 * kMebi);
  program.copy_in(input, 2 * kMebi);
  float *const work = program.allocate("work", kMebi);
  reduce(input, work, kMebi, 2);
  if (improved) program.release(input);
  step(work, kMebi);
  step(work, kMebi);
  step(work, kMebi);
  program.copy_out(work, kMebi);
  program.release(work);
  if (!improved) program.release(input);
}

// `second` could lie where `first` was, whose last use has passed when `second` begins; both have the same size.
// `first` is not freed before the kernel that `second` is made for, so it is freed late too.
void redundant_allocation(Program &program, bool improved) {
  float *const first = program.allocate("first", 2 * kMebi);
  program.copy_in(first, 2 * kMebi);
  float *const small = program.allocate("small", kMebi);
  reduce(first, small, kMebi, 2);
  float *const second = improved ? first : program.allocate("second", 2 * kMebi);
  widen(small, second, kMebi, 2);
  program.release(small);
  program.copy_out(second, 2 * kMebi);
  if (!improved) program.release(second);
  program.release(first);
}

// Nothing ever touches `spare`.
void unused_allocation(Program &program, bool improved) {
  float *const work = program.allocate("work", kMebi);
  float *const spare = improved ? nullptr : program.allocate("spare", 4 * kMebi);
  fill(work, kMebi);
  program.copy_out(work, kMebi);
  program.release(work);
  if (!improved) program.release(spare);
}

// Nobody frees `result`.
void leak(Program &program, bool improved) {
  float *const work = program.allocate("work", kMebi);
  fill(work, kMebi);
  float *const result = program.allocate("result", 2 * kMebi);
  widen(work, result, kMebi, 2);
  program.release(work);
  program.copy_out(result, 2 * kMebi);
  if (improved) program.release(result);
}

// `table` rests while three kernels work on something else.
void temporary_idleness(Program &program, bool improved) {
  float *const table = program.allocate("table", 4 * kMebi);
  program.copy_in(table, 4 * kMebi);
  float *const work = program.allocate("work", kMebi);
  reduce(table, work, kMebi, 4);
  if (improved) widen(work, table, kMebi, 4);
  if (improved) program.copy_out(table, 4 * kMebi), program.release(table);
  step(work, kMebi);
  step(work, kMebi);
  step(work, kMebi);
  if (!improved) widen(work, table, kMebi, 4);
  program.copy_out(work, kMebi);
  program.release(work);
  if (!improved) program.copy_out(table, 4 * kMebi), program.release(table);
}

// No kernel but the first touches `result`; the host fetches it at the end. It was needed until then, so it is neither unused nor freed late.
// It rests meanwhile. Improved: fetched at once.
void host_reads_late(Program &program, bool improved) {
  float *const result = program.allocate("result", 4 * kMebi);
  fill(result, 4 * kMebi);
  if (improved) program.copy_out(result, 4 * kMebi), program.release(result);
  float *const work = program.allocate("work", kMebi);
  fill(work, kMebi);
  step(work, kMebi);
  step(work, kMebi);
  program.copy_out(work, kMebi);
  program.release(work);
  if (!improved) program.copy_out(result, 4 * kMebi), program.release(result);
}

// The mirror image: the host fills `input` long before a kernel reads it.
void host_fills_early(Program &program, bool improved) {
  float *input = nullptr;
  if (!improved) input = program.allocate("input", 4 * kMebi), program.copy_in(input, 4 * kMebi);
  float *const work = program.allocate("work", kMebi);
  fill(work, kMebi);
  step(work, kMebi);
  step(work, kMebi);
  program.copy_out(work, kMebi);
  program.release(work);
  if (improved) input = program.allocate("input", 4 * kMebi), program.copy_in(input, 4 * kMebi);
  step(input, 4 * kMebi);
  program.copy_out(input, 4 * kMebi);
  program.release(input);
}

// Two objects of one size after each other: the runtime hands out the same address again (the list of objects says whether it did). The first
// is used and freed as it should be; nothing touches the second, and the first's uses must not count for it.
void address_reuse(Program &program, bool improved) {
  float *const first = program.allocate("first", 2 * kMebi);
  fill(first, 2 * kMebi);
  program.copy_out(first, 2 * kMebi);
  program.release(first);
  float *const second = program.allocate("second", 2 * kMebi);
  if (improved) {
    fill(second, 2 * kMebi);
    program.copy_out(second, 2 * kMebi);
  }
  program.release(second);
}

// Nothing but operations of no bytes; nothing is to be found in either form. Improved: without them.
void zero_size(Program &program, bool improved) {
  float *const work = program.allocate("work", kMebi);
  fill(work, kMebi);
  if (!improved) {
    void *empty = nullptr;
    CHECK(cudaMalloc(&empty, 0));
    CHECK(cudaFree(empty));
    // Whether stream-ordered memory of no bytes is an error is for the runtime to say.
    empty = nullptr;
    if (cudaMallocAsync(&empty, 0, nullptr) != cudaSuccess) {
      (void)cudaGetLastError();
    } else if (empty != nullptr) {
      CHECK(cudaFreeAsync(empty, nullptr));
    }
    CHECK(cudaMemset(work, 0, 0));
    program.copy_in(work, 0);
    program.copy_out(work, 0);
  }
  program.copy_out(work, kMebi);
  program.release(work);
}

}  // namespace patterns
