// Tiles of 32 rows and 64 columns, whose rows are 65 floats apart.
// launch: transpose<<<(ceil_div(w, 64), ceil_div(h, 32)), 256>>>(x, out, w, h)

extern "C" __global__ void __launch_bounds__(256) transpose(const float* x, float* out, int w, int h) {
    __shared__ float tile[32 * 65];
    int left = blockIdx.x * 64, top = blockIdx.y * 32, t = threadIdx.x;
    for (int e = t; e < 32 * 64; e += 256) {
        int r = e / 64, c = e % 64;
        if (top + r < h && left + c < w) tile[65 * r + c] = __ldg(&x[(size_t)(top + r) * w + left + c]);
    }
    __syncthreads();
    for (int e = t; e < 64 * 32; e += 256) {
        int c = e / 32, r = e % 32;
        if (left + c < w && top + r < h) __stwt(&out[(size_t)(left + c) * h + top + r], tile[65 * r + c]);
    }
}
