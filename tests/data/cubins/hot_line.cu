__device__ __noinline__ float far(float x) { return x * x + 1.0f; }
__device__ __forceinline__ float inner(float x, int n) {
  for (int i = 0; i < n; ++i) x = __sinf(x) * 0.5f + 0.25f;
  return x;
}
__device__ __forceinline__ float middle(float x, int n) { return inner(x, n) + 1.0f; }
extern "C" __global__ void hot(float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float x = out[i];
  x = middle(x, n);
  x = far(x);
  out[i] = x;
}
template <typename T>
__global__ void second(T *out) {
  out[threadIdx.x] = out[threadIdx.x] * T(2);
}
template __global__ void second<double>(double *);
