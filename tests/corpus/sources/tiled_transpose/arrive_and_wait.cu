// The barrier in two halves: bar.arrive and bar.sync, for warps that read and warps that write.
// launch: transpose<<<(ceil_div(w, 32), ceil_div(h, 32)), 64>>>(x, out, w, h)

extern "C" __global__ void transpose(const float* x, float* out, int w, int h) {
    __shared__ float tile[32][33];
    int left = blockIdx.x * 32, top = blockIdx.y * 32, lane = threadIdx.x % 32;
    if (threadIdx.x < 32) {
        for (int r = 0; r < 32; r++)
            if (top + r < h && left + lane < w) tile[r][lane] = x[(top + r) * w + left + lane];
        asm volatile("bar.arrive 1, 64;" ::: "memory");
    } else {
        asm volatile("bar.sync 1, 64;" ::: "memory");
        for (int c = 0; c < 32; c++)
            if (left + c < w && top + lane < h) out[(left + c) * h + top + lane] = tile[lane][c];
    }
}
