// Columns are rotated by their row, so that 32 x 32 floats need no gap.
// launch: transpose<<<ceil_div(w, 32) * ceil_div(h, 32), 512>>>(x, out, w, h)

__device__ int rotated(int row, int column) { return 32 * row + (row + column) % 32; }

extern "C" __global__ void transpose(const float* x, float* out, int w, int h) {
    __shared__ float tile[1024];
    int across = (w - 1) / 32 + 1, left = blockIdx.x % across * 32, top = blockIdx.x / across * 32;
    int a = threadIdx.x % 32, b = threadIdx.x / 32;
    for (int r = b; r <= b + 16; r += 16)
        if (top + r < h && left + a < w) tile[rotated(r, a)] = x[(top + r) * w + left + a];
    __syncthreads();
    for (int r = b; r <= b + 16; r += 16)
        if (left + r < w && top + a < h) out[(left + r) * h + top + a] = tile[rotated(a, r)];
}
