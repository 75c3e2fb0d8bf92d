// A square grid for any shape: whole blocks without a tile leave, and so do idle warps.
// launch: transpose<<<(ceil_div(max(w, h), 32), ceil_div(max(w, h), 32)), (32, 32)>>>(x, out, w, h)

extern "C" __global__ void transpose(const float* x, float* out, int w, int h) {
    __shared__ float tile[32][33];
    int left = blockIdx.x * 32, top = blockIdx.y * 32;
    if (left >= w || top >= h) return;
    int rows = min(32, h - top), columns = min(32, w - left);
    // a warp that has neither a row to read nor one to write
    if (threadIdx.y >= max(rows, columns)) return;
    if (threadIdx.y < rows && threadIdx.x < columns)
        tile[threadIdx.y][threadIdx.x] = x[(top + threadIdx.y) * w + left + threadIdx.x];
    __syncthreads();
    if (threadIdx.y < columns && threadIdx.x < rows)
        out[(left + threadIdx.y) * h + top + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}
