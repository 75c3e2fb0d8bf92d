// No shared memory: a warp turns 32 x 32 floats in registers, by shuffles in five rounds.
// launch: transpose<<<(ceil_div(w, 32), ceil_div(h, 32)), 32>>>(x, out, w, h)

extern "C" __global__ void transpose(const float* x, float* out, int w, int h) {
    int lane = threadIdx.x, left = blockIdx.x * 32, top = blockIdx.y * 32;
    float v[32];
#pragma unroll
    for (int r = 0; r < 32; r++) v[r] = top + r < h && left + lane < w ? x[(top + r) * w + left + lane] : 0;
    // the quarters beside the diagonal change places, in squares of 32, 16, 8, 4 and 2
#pragma unroll
    for (int half = 16; half > 0; half /= 2) {
#pragma unroll
        for (int r = 0; r < 32; r++) {
            if (r & half) continue;
            bool is_high = lane & half;
            float sent = __shfl_xor_sync(0xffffffff, is_high ? v[r] : v[r | half], half);
            if (is_high) v[r] = sent;
            else v[r | half] = sent;
        }
    }
#pragma unroll
    for (int r = 0; r < 32; r++)
        if (left + r < w && top + lane < h) out[(left + r) * h + top + lane] = v[r];
}
