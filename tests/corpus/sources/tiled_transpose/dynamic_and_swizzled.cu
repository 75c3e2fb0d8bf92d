// Dynamic shared memory without a gap: column and row are XORed against conflicts.
// launch: transpose<<<(ceil_div(w, 32), ceil_div(h, 32)), 256, 4096>>>(x, out, w, h)

extern __shared__ float tile[];

__device__ __forceinline__ float& at(int row, int column) { return tile[32 * row + (column ^ row)]; }

extern "C" __global__ void transpose(const float* x, float* out, int w, int h) {
    int a = threadIdx.x & 31, b = threadIdx.x >> 5;
    const float* from = x + (blockIdx.y * 32) * w + blockIdx.x * 32;
    float* to = out + (blockIdx.x * 32) * h + blockIdx.y * 32;
    int rows = h - blockIdx.y * 32, columns = w - blockIdx.x * 32;
    for (int r = b; r < 32; r += 8)
        if (r < rows && a < columns) at(r, a) = from[r * w + a];
    __syncthreads();
    for (int r = b; r < 32; r += 8)
        if (r < columns && a < rows) to[r * h + a] = at(a, r);
}
