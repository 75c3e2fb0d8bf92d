// cp.async fills the tile past the registers; each thread waits for its own, then all wait.
// launch: transpose<<<(ceil_div(w, 32), ceil_div(h, 32)), (32, 8)>>>(x, out, w, h)

extern "C" __global__ void transpose(const float* x, float* out, int w, int h) {
    __shared__ float tile[32][33];
    int left = blockIdx.x * 32, top = blockIdx.y * 32, a = threadIdx.x;
    for (int r = threadIdx.y; r < 32; r += 8)
        if (top + r < h && left + a < w) {
            unsigned to = (unsigned)__cvta_generic_to_shared(&tile[r][a]);
            asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(x + (top + r) * w + left + a) : "memory");
        }
    asm volatile("cp.async.wait_all;" ::: "memory");
    __syncthreads();
    for (int r = threadIdx.y; r < 32; r += 8)
        if (left + r < w && top + a < h) out[(left + r) * h + top + a] = tile[a][r];
}
