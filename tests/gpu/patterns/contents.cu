// What happens to the bytes of an object: written for nothing, never reached, reached unevenly, reached in slices.
#include "program.h"

namespace patterns {

namespace {

__device__ size_t me() { return size_t{blockIdx.x} * blockDim.x + threadIdx.x; }

// Reads the whole object once, and its first page once more for each thread.
__global__ void look_up(const float *table, float *target) { target[me()] = table[me()] + table[me() % 1024]; }
// Reads the whole object twice.
__global__ void look_around(const float *table, float *target, size_t count) {
  target[me()] = table[me()] + table[(me() + 4096) % count];
}
// Every other page: of 2 * kPage elements the first kPage.
__global__ void every_other_page(float *object) {
  const size_t page = me() / 1024;
  object[page * 2048 + me() % 1024] = 1.0f;
}

}  // namespace

// All of `target` is set, then all of it copied over.
void set_then_copy(Program &program, bool improved) {
  float *const target = program.allocate("target", kMebi);
  if (!improved) CHECK(cudaMemset(target, 0, kMebi * sizeof(float)));
  program.copy_in(target, kMebi);
  step(target, kMebi);
  program.copy_out(target, kMebi);
  program.release(target);
}

// Copied twice; the first copy is read by nobody. Improved: a kernel uses it before the second.
void copy_then_copy(Program &program, bool improved) {
  float *const target = program.allocate("target", kMebi);
  program.copy_in(target, kMebi);
  if (improved) step(target, kMebi);
  if (improved) program.copy_out(target, kMebi);
  program.copy_in(target, kMebi);
  step(target, kMebi);
  program.copy_out(target, kMebi);
  program.release(target);
}

// Rows of 512 bytes, 1,024 bytes apart: the left halves are set and then copied over. Improved: left halves are set, right halves copied.
void rows_written_twice(Program &program, bool improved) {
  constexpr size_t kPitch = 1024, kWidth = 512, kRows = 1024;
  float *const rows = program.allocate("rows", kMebi);
  const std::vector<float> host(kPitch * kRows / sizeof(float), 1.0f);
  CHECK(cudaMemset2D(rows, kPitch, 0, kWidth, kRows));
  CHECK(cudaMemcpy2D(rows + (improved ? kWidth / sizeof(float) : 0), kPitch, host.data(), kPitch, kWidth, kRows,
                     cudaMemcpyHostToDevice));
  if (!improved) CHECK(cudaMemset2D(rows + kWidth / sizeof(float), kPitch, 0, kWidth, kRows));
  step(rows, kMebi);
  program.copy_out(rows, kMebi);
  program.release(rows);
}

// The host reads between two writes, so neither form writes for nothing. Improved: a kernel reads.
void read_between_writes(Program &program, bool improved) {
  float *const target = program.allocate("target", kMebi);
  CHECK(cudaMemset(target, 0, kMebi * sizeof(float)));
  if (improved) step(target, kMebi);
  program.copy_out(target, kMebi);
  CHECK(cudaMemset(target, 0, kMebi * sizeof(float)));
  step(target, kMebi);
  program.copy_out(target, kMebi);
  program.release(target);
}

// Of 8 MiB the first is used.
void over_allocation(Program &program, bool improved) {
  float *const object = program.allocate("object", improved ? kMebi : 8 * kMebi);
  fill(object, kMebi);
  step(object, kMebi);
  program.copy_out(object, kMebi);
  program.release(object);
}

// Half of the object is used, every other page, so no smaller allocation would do without moving data. Improved: all of it.
void scattered_use(Program &program, bool improved) {
  float *const object = program.allocate("object", 2 * kMebi);
  if (improved) {
    fill(object, 2 * kMebi);
  } else {
    launch(every_other_page, kMebi, nullptr, object);
  }
  program.copy_out(object, kPage);
  program.release(object);
}

// One page of `table` is read as often as all the others together. Improved: each as often as the next.
void hot_page(Program &program, bool improved) {
  float *const table = program.allocate("table", 4 * kMebi);
  program.copy_in(table, 4 * kMebi);
  float *const target = program.allocate("target", 4 * kMebi);
  if (improved) {
    launch(look_around, 4 * kMebi, nullptr, table, target, 4 * kMebi);
  } else {
    launch(look_up, 4 * kMebi, nullptr, table, target);
  }
  program.release(table);
  program.copy_out(target, 4 * kMebi);
  program.release(target);
}

// Sixteen kernels, each on a slice of its own, fetched before the next: a buffer of one slice would do. Improved: it does.
void slices(Program &program, bool improved) {
  constexpr size_t kSlices = 16, kSlice = kMebi / 4;
  float *const matrix = program.allocate("matrix", improved ? kSlice : kSlices * kSlice);
  for (size_t i = 0; i < kSlices; ++i) {
    float *const slice = matrix + (improved ? 0 : i * kSlice);
    fill(slice, kSlice);
    program.copy_out(slice, kSlice);
  }
  program.release(matrix);
}

}  // namespace patterns
