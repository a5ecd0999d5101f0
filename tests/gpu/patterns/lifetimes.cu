// When objects are made and freed, beside when they are used. Sizes of different objects differ by more than a factor of 1.5, so that none
// could take the place of another, except where that is the point.
#include "program.h"

namespace patterns {

// `result` is made before three kernels that do not need it.
void early_allocation(Program &program, bool improved) {
  float *result = improved ? nullptr : program.allocate("result", 2 * kUnit);
  float *const work = program.allocate("work", kUnit);
  fill(work, kUnit);
  step(work, kUnit);
  step(work, kUnit);
  if (improved) result = program.allocate("result", 2 * kUnit);
  widen(work, result, kUnit, 2);
  program.release(work);
  program.copy_out(result, 2 * kUnit);
  program.release(result);
}

// `input` stays for three kernels that do not need it.
void late_deallocation(Program &program, bool improved) {
  float *const input = program.allocate("input", 2 * kUnit);
  program.copy_in(input, 2 * kUnit);
  float *const work = program.allocate("work", kUnit);
  reduce(input, work, kUnit, 2);
  if (improved) program.release(input);
  step(work, kUnit);
  step(work, kUnit);
  step(work, kUnit);
  program.copy_out(work, kUnit);
  program.release(work);
  if (!improved) program.release(input);
}

// `second` could lie where `first` was, whose last use has passed when `second` begins; both have the same size.
// `first` is not freed before the kernel that `second` is made for, so it is freed late too.
void redundant_allocation(Program &program, bool improved) {
  float *const first = program.allocate("first", 2 * kUnit);
  program.copy_in(first, 2 * kUnit);
  float *const small = program.allocate("small", kUnit);
  reduce(first, small, kUnit, 2);
  float *const second = improved ? first : program.allocate("second", 2 * kUnit);
  widen(small, second, kUnit, 2);
  program.release(small);
  program.copy_out(second, 2 * kUnit);
  if (!improved) program.release(second);
  program.release(first);
}

// Nothing ever touches `spare`.
void unused_allocation(Program &program, bool improved) {
  float *const work = program.allocate("work", kUnit);
  float *const spare = improved ? nullptr : program.allocate("spare", 4 * kUnit);
  fill(work, kUnit);
  program.copy_out(work, kUnit);
  program.release(work);
  if (!improved) program.release(spare);
}

// Nobody frees `result`.
void leak(Program &program, bool improved) {
  float *const work = program.allocate("work", kUnit);
  fill(work, kUnit);
  float *const result = program.allocate("result", 2 * kUnit);
  widen(work, result, kUnit, 2);
  program.release(work);
  program.copy_out(result, 2 * kUnit);
  if (improved) program.release(result);
}

// `table` rests while three kernels work on something else.
void temporary_idleness(Program &program, bool improved) {
  float *const table = program.allocate("table", 4 * kUnit);
  program.copy_in(table, 4 * kUnit);
  float *const work = program.allocate("work", kUnit);
  reduce(table, work, kUnit, 4);
  if (improved) widen(work, table, kUnit, 4);
  if (improved) program.copy_out(table, 4 * kUnit), program.release(table);
  step(work, kUnit);
  step(work, kUnit);
  step(work, kUnit);
  if (!improved) widen(work, table, kUnit, 4);
  program.copy_out(work, kUnit);
  program.release(work);
  if (!improved) program.copy_out(table, 4 * kUnit), program.release(table);
}

// No kernel but the first touches `result`; the host fetches it at the end. It was needed until then, so it is neither unused nor freed late.
// It rests meanwhile. Improved: fetched at once.
void host_reads_late(Program &program, bool improved) {
  float *const result = program.allocate("result", 4 * kUnit);
  fill(result, 4 * kUnit);
  if (improved) program.copy_out(result, 4 * kUnit), program.release(result);
  float *const work = program.allocate("work", kUnit);
  fill(work, kUnit);
  step(work, kUnit);
  step(work, kUnit);
  program.copy_out(work, kUnit);
  program.release(work);
  if (!improved) program.copy_out(result, 4 * kUnit), program.release(result);
}

// The mirror image: the host fills `input` long before a kernel reads it.
void host_fills_early(Program &program, bool improved) {
  float *input = nullptr;
  if (!improved) input = program.allocate("input", 4 * kUnit), program.copy_in(input, 4 * kUnit);
  float *const work = program.allocate("work", kUnit);
  fill(work, kUnit);
  step(work, kUnit);
  step(work, kUnit);
  program.copy_out(work, kUnit);
  program.release(work);
  if (improved) input = program.allocate("input", 4 * kUnit), program.copy_in(input, 4 * kUnit);
  step(input, 4 * kUnit);
  program.copy_out(input, 4 * kUnit);
  program.release(input);
}

// Two objects of one size after each other: the runtime hands out the same address again (the list of objects says whether it did). The first
// is used and freed as it should be; nothing touches the second, and the first's uses must not count for it.
void address_reuse(Program &program, bool improved) {
  float *const first = program.allocate("first", 2 * kUnit);
  fill(first, 2 * kUnit);
  program.copy_out(first, 2 * kUnit);
  program.release(first);
  float *const second = program.allocate("second", 2 * kUnit);
  if (improved) {
    fill(second, 2 * kUnit);
    program.copy_out(second, 2 * kUnit);
  }
  program.release(second);
}

// Nothing but operations of no bytes; nothing is to be found in either form. Improved: without them.
void zero_size(Program &program, bool improved) {
  float *const work = program.allocate("work", kUnit);
  fill(work, kUnit);
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
  program.copy_out(work, kUnit);
  program.release(work);
}

}  // namespace patterns
