// Macros give the tile and the threads, also in the launch rule; two stages take turns.
// launch: gemm<<<(ceil_div(n, TILE), ceil_div(m, TILE)), THREADS>>>(a, b, c, m, n, k)
#define TILE 64
#define THREADS 256
#define FOR(v, n) _Pragma("unroll") for (int v = 0; v < (n); ++v)
static constexpr int K = 16;
struct Stage { float a[K][TILE + 4]; float b[K][TILE]; };
__device__ __forceinline__ void fill(Stage& s, const float* a, const float* b, int row, int col, int at, int m, int n, int k) {
    FOR(q, TILE * K / THREADS) {
        const int t = q * THREADS + threadIdx.x;
        const int r = t / K, d = t % K;
        s.a[d][r] = row + r < m && at + d < k ? a[(row + r) * k + at + d] : 0.f;
        const int e = t / TILE, c = t % TILE;
        s.b[e][c] = at + e < k && col + c < n ? b[(at + e) * n + col + c] : 0.f;
    }
}
extern "C" __global__ void __launch_bounds__(THREADS) gemm(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int m, int n, int k) {
    __shared__ __align__(16) Stage stage[2];
    const int row = blockIdx.y * TILE, col = blockIdx.x * TILE;
    const int ty = threadIdx.x / 16 * 4, tx = threadIdx.x % 16 * 4;
    float sum[4][4] = {};
    fill(stage[0], a, b, row, col, 0, m, n, k);
    __syncthreads();
    for (int at = 0, which = 0; at < k; at += K, which ^= 1) {
        if (at + K < k) fill(stage[which ^ 1], a, b, row, col, at + K, m, n, k);
        auto& s = stage[which];
        FOR(d, K) {
            const float4 l = *reinterpret_cast<const float4*>(&s.a[d][ty]), r = *reinterpret_cast<const float4*>(&s.b[d][tx]);
            const float left[4] = {l.x, l.y, l.z, l.w}, right[4] = {r.x, r.y, r.z, r.w};
            FOR(i, 4) FOR(j, 4) sum[i][j] += left[i] * right[j];
        }
        __syncthreads();
    }
    FOR(i, 4) FOR(j, 4) if (row + ty + i < m && col + tx + j < n) c[(row + ty + i) * n + col + tx + j] = sum[i][j];
}
