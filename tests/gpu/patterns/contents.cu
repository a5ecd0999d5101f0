// What happens to the bytes of an object: written for nothing, never reached, reached unevenly, reached in slices.
#include "program.h"

namespace patterns {

namespace {

__device__ size_t me() { return size_t{blockIdx.x} * blockDim.x + threadIdx.x; }

// Reads the whole object once, and its first page once more for each thread.
__global__ void look_up(const float *table, float *target) { target[me()] = table[me()] + table[me() % kPage]; }
// Reads the whole object twice.
__global__ void look_around(const float *table, float *target, size_t count) {
  target[me()] = table[me()] + table[(me() + 4096) % count];
}
// Of each two pages the first.
__global__ void every_other_page(float *object) { object[me() / kPage * 2 * kPage + me() % kPage] = 1.0f; }

}  // namespace

// All of `target` is set, then all of it copied over.
void set_then_copy(Program &program, bool improved) {
  float *const target = program.allocate("target", kUnit);
  if (!improved) CHECK(cudaMemset(target, 0, kUnit * sizeof(float)));
  program.copy_in(target, kUnit);
  step(target, kUnit);
  program.copy_out(target, kUnit);
  program.release(target);
}

// Copied twice; the first copy is read by nobody. Improved: a kernel uses it before the second.
void copy_then_copy(Program &program, bool improved) {
  float *const target = program.allocate("target", kUnit);
  program.copy_in(target, kUnit);
  if (improved) step(target, kUnit);
  if (improved) program.copy_out(target, kUnit);
  program.copy_in(target, kUnit);
  step(target, kUnit);
  program.copy_out(target, kUnit);
  program.release(target);
}

// Rows of 512 bytes, 1,024 bytes apart: the left halves are set and then copied over. Improved: left halves are set, right halves copied.
void rows_written_twice(Program &program, bool improved) {
  constexpr size_t kPitch = 1024, kWidth = 512, kRows = 256;
  float *const rows = program.allocate("rows", kUnit);
  const std::vector<float> host(kPitch * kRows / sizeof(float), 1.0f);
  CHECK(cudaMemset2D(rows, kPitch, 0, kWidth, kRows));
  CHECK(cudaMemcpy2D(rows + (improved ? kWidth / sizeof(float) : 0), kPitch, host.data(), kPitch, kWidth, kRows,
                     cudaMemcpyHostToDevice));
  if (!improved) CHECK(cudaMemset2D(rows + kWidth / sizeof(float), kPitch, 0, kWidth, kRows));
  step(rows, kUnit);
  program.copy_out(rows, kUnit);
  program.release(rows);
}

// The host reads between two writes, so neither form writes for nothing. Improved: a kernel reads.
void read_between_writes(Program &program, bool improved) {
  float *const target = program.allocate("target", kUnit);
  CHECK(cudaMemset(target, 0, kUnit * sizeof(float)));
  if (improved) step(target, kUnit);
  program.copy_out(target, kUnit);
  CHECK(cudaMemset(target, 0, kUnit * sizeof(float)));
  step(target, kUnit);
  program.copy_out(target, kUnit);
  program.release(target);
}

// One eighth is used, the first.
void over_allocation(Program &program, bool improved) {
  float *const object = program.allocate("object", improved ? kUnit : 8 * kUnit);
  fill(object, kUnit);
  step(object, kUnit);
  program.copy_out(object, kUnit);
  program.release(object);
}

// Half of the object is used, every other page, so no smaller allocation would do without moving data. Improved: all of it.
void scattered_use(Program &program, bool improved) {
  float *const object = program.allocate("object", 2 * kUnit);
  if (improved) {
    fill(object, 2 * kUnit);
  } else {
    launch(every_other_page, kUnit, nullptr, object);
  }
  program.copy_out(object, kPage);
  program.release(object);
}

// One page of `table` is read as often as all the others together. Improved: each as often as the next.
void hot_page(Program &program, bool improved) {
  float *const table = program.allocate("table", 4 * kUnit);
  program.copy_in(table, 4 * kUnit);
  float *const target = program.allocate("target", 4 * kUnit);
  if (improved) {
    launch(look_around, 4 * kUnit, nullptr, table, target, 4 * kUnit);
  } else {
    launch(look_up, 4 * kUnit, nullptr, table, target);
  }
  program.release(table);
  program.copy_out(target, 4 * kUnit);
  program.release(target);
}

// Sixteen kernels, each on a slice of its own, fetched before the next: a buffer of one slice would do. Improved: it does.
void slices(Program &program, bool improved) {
  constexpr size_t kSlices = 16, kSlice = kUnit / 4;
  float *const matrix = program.allocate("matrix", improved ? kSlice : kSlices * kSlice);
  for (size_t i = 0; i < kSlices; ++i) {
    float *const slice = matrix + (improved ? 0 : i * kSlice);
    fill(slice, kSlice);
    program.copy_out(slice, kSlice);
  }
  program.release(matrix);
}

}  // namespace patterns
