// float4 wherever 4 divides the rows and they begin at 16 bytes, else four floats.
// launch: matmul<<<(ceil_div(n, 64), ceil_div(m, 16)), (16, 16)>>>(a, b, c, m, n, k)

__device__ float4 four(const float* row, int at, int end, bool is_there, bool is_aligned) {
    if (is_there && is_aligned && at + 4 <= end) return *(const float4*)(row + at);
    float v[4];
    for (int j = 0; j < 4; j++) v[j] = is_there && at + j < end ? row[at + j] : 0;
    return make_float4(v[0], v[1], v[2], v[3]);
}

extern "C" __global__ void matmul(const float* a, const float* b, float* c, int m, int n, int k) {
    __shared__ float left[16][16];
    __shared__ float4 right[16][16];
    int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 16 + y, column = blockIdx.x * 64 + 4 * x;
    bool is_aligned = n % 4 == 0 && (size_t)b % 16 == 0;
    float4 sum = make_float4(0, 0, 0, 0);
    for (int from = 0; from < k; from += 16) {
        left[y][x] = row < m && from + x < k ? a[row * k + from + x] : 0;
        right[y][x] = four(b + (from + y) * n, column, n, from + y < k, is_aligned);
        __syncthreads();
        for (int d = 0; d < 16; d++) {
            float l = left[y][d];
            float4 r = right[d][x];
            sum.x += l * r.x, sum.y += l * r.y, sum.z += l * r.z, sum.w += l * r.w;
        }
        __syncthreads();
    }
    if (row >= m) return;
    float held[4] = {sum.x, sum.y, sum.z, sum.w};
    for (int j = 0; j < 4; j++)
        if (column + j < n) c[row * n + column + j] = held[j];
}
