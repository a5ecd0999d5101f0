// patterns NAME [improved]: runs one program and prints its objects. patterns --list: names.
#include "program.h"

#include <algorithm>
#include <cstring>

namespace patterns {

float *Program::note(const char *name, void *address, size_t count) {
  const uint64_t at = reinterpret_cast<uint64_t>(address);
  const auto earlier =
      std::count_if(objects_.begin(), objects_.end(), [at](const Object &object) { return object.address == at; });
  objects_.push_back({name, at, count * sizeof(float), static_cast<unsigned>(earlier)});
  return static_cast<float *>(address);
}

float *Program::allocate(const char *name, size_t count) {
  void *address = nullptr;
  CHECK(cudaMalloc(&address, count * sizeof(float)));
  return note(name, address, count);
}

float *Program::allocate_managed(const char *name, size_t count) {
  void *address = nullptr;
  CHECK(cudaMallocManaged(&address, count * sizeof(float), cudaMemAttachGlobal));
  return note(name, address, count);
}

float *Program::allocate_ordered(const char *name, size_t count, cudaStream_t stream) {
  void *address = nullptr;
  CHECK(cudaMallocAsync(&address, count * sizeof(float), stream));
  return note(name, address, count);
}

float *Program::allocate_from(const char *name, size_t count, cudaMemPool_t pool, cudaStream_t stream) {
  void *address = nullptr;
  CHECK(cudaMallocFromPoolAsync(&address, count * sizeof(float), pool, stream));
  return note(name, address, count);
}

void Program::release(float *object) { CHECK(cudaFree(object)); }
void Program::release_ordered(float *object, cudaStream_t stream) { CHECK(cudaFreeAsync(object, stream)); }

void Program::copy_in(float *target, size_t count) {
  if (host_.size() < count) host_.resize(count, 1.0f);
  CHECK(cudaMemcpy(target, host_.data(), count * sizeof(float), cudaMemcpyHostToDevice));
}

void Program::copy_out(const float *source, size_t count) {
  if (host_.size() < count) host_.resize(count, 1.0f);
  CHECK(cudaMemcpy(host_.data(), source, count * sizeof(float), cudaMemcpyDeviceToHost));
}

void Program::print() const {
  std::printf("{\"objects\": [");
  for (size_t i = 0; i < objects_.size(); ++i) {
    const Object &object = objects_[i];
    std::printf("%s\n{\"name\": \"%s\", \"address\": %llu, \"bytes\": %llu, \"life\": %u}", i == 0 ? "" : ",",
                object.name.c_str(), static_cast<unsigned long long>(object.address),
                static_cast<unsigned long long>(object.bytes), object.life);
  }
  std::printf("\n]}\n");
}

namespace {

__device__ size_t me() { return size_t{blockIdx.x} * blockDim.x + threadIdx.x; }

__global__ void fill_kernel(float *target) { target[me()] = static_cast<float>(me() % 64); }
__global__ void step_kernel(float *object) { object[me()] = object[me()] * 0.5f + 1.0f; }
__global__ void map_kernel(const float *source, float *target) { target[me()] = source[me()] + 1.0f; }
__global__ void reduce_kernel(const float *source, float *target, size_t ratio) {
  float sum = 0.0f;
  for (size_t i = 0; i < ratio; ++i) sum += source[me() * ratio + i];
  target[me()] = sum;
}
__global__ void widen_kernel(const float *source, float *target, size_t ratio) {
  const float value = source[me()];
  for (size_t i = 0; i < ratio; ++i) target[me() * ratio + i] = value;
}
__global__ void add_kernel(const float *left, const float *right, float *target) {
  target[me()] = left[me()] + right[me()];
}

}  // namespace

void fill(float *target, size_t count, cudaStream_t stream) { launch(fill_kernel, count, stream, target); }
void step(float *object, size_t count, cudaStream_t stream) { launch(step_kernel, count, stream, object); }
void map(const float *source, float *target, size_t count, cudaStream_t stream) {
  launch(map_kernel, count, stream, source, target);
}
void reduce(const float *source, float *target, size_t count, size_t ratio) {
  launch(reduce_kernel, count, nullptr, source, target, ratio);
}
void widen(const float *source, float *target, size_t count, size_t ratio) {
  launch(widen_kernel, count, nullptr, source, target, ratio);
}
void add(const float *left, const float *right, float *target, size_t count) {
  launch(add_kernel, count, nullptr, left, right, target);
}

}  // namespace patterns

int main(int argc, char **argv) {
  using namespace patterns;
  struct Entry {
    const char *name;
    void (*run)(Program &, bool);
  };
#define PATTERNS_ENTRY(name) {#name, patterns::name},
  const Entry entries[] = {PATTERNS_PROGRAMS(PATTERNS_ENTRY)};
#undef PATTERNS_ENTRY
  if (argc == 2 && std::strcmp(argv[1], "--list") == 0) {
    for (const Entry &entry : entries) std::printf("%s\n", entry.name);
    return 0;
  }
  const bool improved = argc == 3 && std::strcmp(argv[2], "improved") == 0;
  if (argc != 2 && !improved) {
    std::fprintf(stderr, "usage: patterns NAME [improved] | --list\n");
    return 2;
  }
  for (const Entry &entry : entries) {
    if (std::strcmp(entry.name, argv[1]) != 0) continue;
    Program program;
    entry.run(program, improved);
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaGetLastError());
    program.print();
    return 0;
  }
  std::fprintf(stderr, "patterns: no program %s; see --list\n", argv[1]);
  return 2;
}
