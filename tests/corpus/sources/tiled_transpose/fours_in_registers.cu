// Where 4 divides both sides, a thread turns 4 x 4 floats in registers; else a tile does it.
// launch: transpose<<<(ceil_div(w, 32), ceil_div(h, 32)), 64>>>(x, out, w, h)

extern "C" __global__ void transpose(const float* __restrict__ x, float* __restrict__ out, int w, int h) {
    __shared__ float tile[32 * 33];
    int left = blockIdx.x * 32, top = blockIdx.y * 32, t = threadIdx.x;
    if (((w | h) & 3) == 0) {
        int column = left + t % 8 * 4, row = top + t / 8 * 4;
        if (column >= w || row >= h) return;
        float4 in[4];
        for (int j = 0; j < 4; j++) in[j] = __ldcs((const float4*)(x + (size_t)(row + j) * w + column));
        float4* to = (float4*)(out + (size_t)column * h + row);
        __stcs(to, make_float4(in[0].x, in[1].x, in[2].x, in[3].x));
        __stcs(to + h / 4, make_float4(in[0].y, in[1].y, in[2].y, in[3].y));
        __stcs(to + h / 2, make_float4(in[0].z, in[1].z, in[2].z, in[3].z));
        __stcs(to + h / 4 * 3, make_float4(in[0].w, in[1].w, in[2].w, in[3].w));
        return;
    }
    for (int i = t; i < 1024; i += 64)
        if (top + i / 32 < h && left + i % 32 < w)
            tile[i / 32 * 33 + i % 32] = x[(size_t)(top + i / 32) * w + left + i % 32];
    __syncthreads();
    for (int i = t; i < 1024; i += 64)
        if (left + i / 32 < w && top + i % 32 < h)
            out[(size_t)(left + i / 32) * h + top + i % 32] = tile[i % 32 * 33 + i / 32];
}
