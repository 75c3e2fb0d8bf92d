// A template over the tile's side and the rows of a thread, in a function of its own.
// launch: transpose<<<(ceil_div(h, 64), ceil_div(w, 64)), (64, 8)>>>(x, out, w, h)

template <int SIDE, int THREADS>
__device__ void turn(const float* __restrict__ x, float* __restrict__ out, int w, int h, int left, int top) {
    __shared__ float tile[SIDE][SIDE + 1];
#pragma unroll
    for (int r = 0; r < SIDE; r += THREADS) {
        int row = top + threadIdx.y + r, column = left + threadIdx.x;
        tile[threadIdx.y + r][threadIdx.x] = row < h && column < w ? x[row * w + column] : 0.0f;
    }
    __syncthreads();
#pragma unroll
    for (int r = 0; r < SIDE; r += THREADS) {
        int row = left + threadIdx.y + r, column = top + threadIdx.x;
        if (row < w && column < h) out[row * h + column] = tile[threadIdx.x][threadIdx.y + r];
    }
}

// the grid is as wide as the result
extern "C" __global__ void transpose(const float* x, float* out, int w, int h) {
    turn<64, 8>(x, out, w, h, blockIdx.y * 64, blockIdx.x * 64);
}
