// Small linear algebra, the way benchmark suites write it: everything is made at the start and freed at the end. Improved: each object lives as
// long as it is needed, and memory is used again.
#include "program.h"

namespace patterns {

namespace {

constexpr size_t kOrder = 128;  // of the square matrices

__device__ size_t me() { return size_t{blockIdx.x} * blockDim.x + threadIdx.x; }

// target = left * right, one thread an element, row-major.
__global__ void multiply(const float *left, const float *right, float *target) {
  const size_t row = me() / 128, column = me() % 128;
  float sum = 0.0f;
  for (size_t i = 0; i < 128; ++i) sum += left[row * 128 + i] * right[i * 128 + column];
  target[me()] = sum;
}

// target[row] = sum of matrix[row][column] * vector[column], one thread a row of `width`.
__global__ void rows_times(const float *matrix, const float *vector, float *target, size_t width) {
  float sum = 0.0f;
  for (size_t i = 0; i < width; ++i) sum += matrix[me() * width + i] * vector[i];
  target[me()] = sum;
}

// target[column] = sum of matrix[row][column] * vector[row].
__global__ void columns_times(const float *matrix, const float *vector, float *target, size_t height, size_t width) {
  float sum = 0.0f;
  for (size_t i = 0; i < height; ++i) sum += matrix[i * width + me()] * vector[i];
  target[me()] = sum;
}

// Gram and Schmidt's steps on columns of 256 elements that lie one behind the other.
__global__ void scale_column(const float *a, float *q, size_t column) {
  q[column * 256 + me()] = a[column * 256 + me()] * 0.0625f;
}
// One block for each later column: takes its share of `column` away.
__global__ void project(float *a, const float *q, size_t column) {
  const size_t later = column + 1 + blockIdx.x;
  float share = 0.0f;
  for (size_t i = 0; i < 256; ++i) share += q[column * 256 + i] * 0.001f;
  a[later * 256 + threadIdx.x] -= share * q[column * 256 + threadIdx.x];
}

}  // namespace

// d = a b, e = c d.
void two_products(Program &program, bool improved) {
  constexpr size_t kCount = kOrder * kOrder;
  if (!improved) {
    float *const a = program.allocate("a", kCount), *const b = program.allocate("b", kCount);
    float *const c = program.allocate("c", kCount), *const d = program.allocate("d", kCount);
    float *const e = program.allocate("e", kCount);
    program.copy_in(a, kCount);
    program.copy_in(b, kCount);
    program.copy_in(c, kCount);
    launch(multiply, kCount, nullptr, a, b, d);
    launch(multiply, kCount, nullptr, c, d, e);
    program.copy_out(e, kCount);
    for (float *const object : {a, b, c, d, e}) program.release(object);
    return;
  }
  float *const a = program.allocate("a", kCount), *const b = program.allocate("b", kCount);
  float *const d = program.allocate("d", kCount);
  program.copy_in(a, kCount);
  program.copy_in(b, kCount);
  launch(multiply, kCount, nullptr, a, b, d);
  // c takes a's place and e takes b's.
  program.copy_in(a, kCount);
  launch(multiply, kCount, nullptr, a, d, b);
  program.release(d);
  program.copy_out(b, kCount);
  program.release(a);
  program.release(b);
}

// e = a b, f = c d, g = e f.
void three_products(Program &program, bool improved) {
  constexpr size_t kCount = kOrder * kOrder;
  if (!improved) {
    float *const a = program.allocate("a", kCount), *const b = program.allocate("b", kCount);
    float *const c = program.allocate("c", kCount), *const d = program.allocate("d", kCount);
    float *const e = program.allocate("e", kCount), *const f = program.allocate("f", kCount);
    float *const g = program.allocate("g", kCount);
    for (float *const object : {a, b, c, d}) program.copy_in(object, kCount);
    launch(multiply, kCount, nullptr, a, b, e);
    launch(multiply, kCount, nullptr, c, d, f);
    launch(multiply, kCount, nullptr, e, f, g);
    program.copy_out(g, kCount);
    for (float *const object : {a, b, c, d, e, f, g}) program.release(object);
    return;
  }
  // Three places hold all seven; e is parked on the host while f is made.
  float *const x = program.allocate("x", kCount), *const y = program.allocate("y", kCount);
  float *const z = program.allocate("z", kCount);
  program.copy_in(x, kCount);
  program.copy_in(y, kCount);
  launch(multiply, kCount, nullptr, x, y, z);
  program.copy_out(z, kCount);
  program.copy_in(x, kCount);
  program.copy_in(y, kCount);
  launch(multiply, kCount, nullptr, x, y, z);
  program.copy_in(x, kCount);
  launch(multiply, kCount, nullptr, x, z, y);
  program.copy_out(y, kCount);
  for (float *const object : {x, y, z}) program.release(object);
}

// Sixteen columns of 256 elements. Only one column of q is used between two of its neighbours. Improved: a buffer of one column, fetched by the
// host each time.
void gram_schmidt(Program &program, bool improved) {
  constexpr size_t kColumns = 16, kColumn = 256;
  float *const a = program.allocate("a", kColumns * kColumn);
  program.copy_in(a, kColumns * kColumn);
  float *const q = program.allocate("q", improved ? kColumn : kColumns * kColumn);
  for (size_t i = 0; i < kColumns; ++i) {
    if (improved) {
      // The kernels add column * 256 to q; the buffer is as if it began there.
      launch(scale_column, kColumn, nullptr, a + i * kColumn, q, size_t{0});
    } else {
      launch(scale_column, kColumn, nullptr, a, q, i);
    }
    if (i + 1 < kColumns) {
      const size_t later = kColumns - 1 - i;
      if (improved) {
        launch(project, later * kColumn, nullptr, a + i * kColumn, q, size_t{0});
      } else {
        launch(project, later * kColumn, nullptr, a, q, i);
      }
    }
    program.copy_out(improved ? q : q + i * kColumn, kColumn);
  }
  program.release(a);
  program.release(q);
}

// q = A p, s = transposed A r: a matrix of 512 x 256, four vectors, all made at the start.
void two_directions(Program &program, bool improved) {
  constexpr size_t kHeight = 512, kWidth = 256;
  float *const matrix = program.allocate("matrix", kHeight * kWidth);
  program.copy_in(matrix, kHeight * kWidth);
  float *const p = program.allocate("p", kWidth);
  program.copy_in(p, kWidth);
  float *const q = program.allocate("q", kHeight);
  if (improved) {
    launch(rows_times, kHeight, nullptr, matrix, p, q, kWidth);
    program.copy_out(q, kHeight);
    // r lies in q's place and s in p's.
    program.copy_in(q, kHeight);
    launch(columns_times, kWidth, nullptr, matrix, q, p, kHeight, kWidth);
    program.copy_out(p, kWidth);
    for (float *const object : {matrix, p, q}) program.release(object);
    return;
  }
  float *const r = program.allocate("r", kHeight), *const s = program.allocate("s", kWidth);
  program.copy_in(r, kHeight);
  launch(rows_times, kHeight, nullptr, matrix, p, q, kWidth);
  launch(columns_times, kWidth, nullptr, matrix, r, s, kHeight, kWidth);
  program.copy_out(q, kHeight);
  program.copy_out(s, kWidth);
  for (float *const object : {matrix, p, q, r, s}) program.release(object);
}

}  // namespace patterns
