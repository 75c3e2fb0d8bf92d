// Each kernel has one fault; its line says so, with the reasons that may lead there.

extern "C" __global__ void bank_conflicts(const float* in, float* out, int rounds) {
  __shared__ float tile[1024];
  tile[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  float sum = 0;
  int at = (threadIdx.x & 31) * 32;
  for (int r = 0; r < rounds; r++) {
    sum += tile[(at + r) & 1023];  // planted: mio_throttle short_scoreboard
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

extern "C" __global__ void one_busy_warp(const float* in, float* out, int rounds) {
  __shared__ float last;
  float v = in[threadIdx.x];
  for (int r = 0; r < rounds; r++) {
    if (threadIdx.x < 32) {
      for (int k = 0; k < 200; k++) v = v * 1.0001f + 0.5f;
    }
    if (threadIdx.x == 0) last = v;
    __syncthreads();  // planted: barrier
    v += last;
    __syncthreads();
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = v;
}

extern "C" __global__ void double_division(const double* in, double* out, int rounds) {
  double v = in[threadIdx.x];
  for (int r = 0; r < rounds; r++) {
    v = v / (v + 1.25) + 0.5;  // planted: math_pipe_throttle wait
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = v;
}

extern "C" __global__ __launch_bounds__(1024, 2) void spilled(
    const float* in, float* out, int rounds) {
  float v[64];
#pragma unroll
  for (int k = 0; k < 64; k++) v[k] = in[threadIdx.x + 32 * k];
  for (int r = 0; r < rounds; r++) {
#pragma unroll
    for (int k = 0; k < 64; k++) {
      v[k] = v[k] * 1.0001f + v[(k + 17) & 63];  // planted: lg_throttle long_scoreboard
    }
  }
  float sum = 0;
#pragma unroll
  for (int k = 0; k < 64; k++) sum += v[k];
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

extern "C" __global__ void long_chain(const float* in, float* out, int rounds) {
  float v = in[threadIdx.x];
  for (int r = 0; r < rounds; r++) {
    v = v * 1.0001f + 0.5f;  // planted: wait
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = v;
}

extern "C" __global__ void small_grid(const int* next, int* out, int rounds) {
  int at = threadIdx.x;
  int steps = blockIdx.x == gridDim.x - 1 ? rounds : rounds / 64;
  for (int r = 0; r < steps; r++) {
    at = next[at];  // planted: long_scoreboard
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = at;
}
