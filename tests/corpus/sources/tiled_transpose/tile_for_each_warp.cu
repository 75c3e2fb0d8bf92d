// Each warp of a block has a tile of its own, so that __syncwarp is enough.
// launch: transpose<<<ceil_div(ceil_div(w, 32) * ceil_div(h, 32), 4), 128>>>(x, out, w, h)

extern "C" __global__ void transpose(const float* x, float* out, int w, int h) {
    __shared__ float tiles[4][32 * 33];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, number = blockIdx.x * 4 + warp;
    int across = (w + 31) / 32, left = number % across * 32, top = number / across * 32;
    if (top >= h) return;
    float* tile = tiles[warp];
    int rows = min(32, h - top), columns = min(32, w - left);
    if (lane < columns)
        for (int r = 0; r < rows; r++) tile[33 * r + lane] = x[(top + r) * w + left + lane];
    __syncwarp();
    if (lane < rows)
        for (int c = 0; c < columns; c++) out[(left + c) * h + top + lane] = tile[33 * lane + c];
}
