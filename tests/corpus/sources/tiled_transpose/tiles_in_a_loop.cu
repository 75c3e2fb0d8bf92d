// Few blocks stride over the tiles, with a second barrier before a tile is written anew.
// launch: transpose<<<min(7, ceil_div(w, 32) * ceil_div(h, 32)), (32, 8)>>>(x, out, w, h)

extern "C" __global__ void transpose(const float* x, float* out, int w, int h) {
    __shared__ float tile[32][33];
    int across = (w + 31) / 32, tiles = across * ((h + 31) / 32), a = threadIdx.x, b = threadIdx.y;
    for (int number = blockIdx.x; number < tiles; number += gridDim.x) {
        int left = number % across * 32, top = number / across * 32;
        for (int r = b; r < 32; r += 8)
            if (top + r < h && left + a < w) tile[r][a] = x[(top + r) * w + left + a];
        __syncthreads();
        for (int r = b; r < 32; r += 8)
            if (left + r < w && top + a < h) out[(left + r) * h + top + a] = tile[a][r];
        __syncthreads();
    }
}
