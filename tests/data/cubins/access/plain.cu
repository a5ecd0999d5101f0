// No kernel copies through a tensor map; for a capability without them.
extern "C" __global__ void fill(float *to) { to[blockIdx.x * blockDim.x + threadIdx.x] = 1; }
