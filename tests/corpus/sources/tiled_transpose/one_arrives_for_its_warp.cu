// An mbarrier of eight: a lane arrives for its warp, behind __syncwarp; all wait for the phase.
// launch: transpose<<<(ceil_div(w, 32), ceil_div(h, 32)), (32, 8)>>>(x, out, w, h)

extern "C" __global__ void transpose(const float* x, float* out, int w, int h) {
    __shared__ float tile[32][33];
    __shared__ unsigned long long full;
    unsigned at = (unsigned)__cvta_generic_to_shared(&full);
    int left = blockIdx.x * 32, top = blockIdx.y * 32, lane = threadIdx.x, warp = threadIdx.y;
    if (lane == 0 && warp == 0) asm volatile("mbarrier.init.shared.b64 [%0], 8;" ::"r"(at) : "memory");
    __syncthreads();
    for (int r = warp; r < 32; r += 8)
        if (top + r < h && left + lane < w) tile[r][lane] = x[(top + r) * w + left + lane];
    __syncwarp();
    if (lane == 0) asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(at) : "memory");
    unsigned is_full;
    do
        asm volatile("{\n\t.reg .pred p;\n\tmbarrier.test_wait.parity.shared.b64 p, [%1], 0;\n\t"
                     "selp.u32 %0, 1, 0, p;\n\t}"
                     : "=r"(is_full)
                     : "r"(at)
                     : "memory");
    while (!is_full);
    for (int c = warp; c < 32; c += 8)
        if (left + c < w && top + lane < h) out[(left + c) * h + top + lane] = tile[lane][c];
}
