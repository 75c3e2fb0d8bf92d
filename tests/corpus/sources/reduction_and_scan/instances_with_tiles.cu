// Tiles of warps in instances of templates: cooperative groups scan in two levels.
// scratch: sums float32[64]
// scratch: parts int32[64]
// launch: tiles<1024><<<ceil_div(n, 1024), 1024>>>(x, k, prefix, sums, parts, n)
// launch: finish<1024><<<ceil_div(n, 1024), 1024>>>(prefix, sums, parts, total, n, ceil_div(n, 1024))
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
struct Plus { template <class T> __device__ T operator()(T a, T b) const { return a + b; } };
template <class T, class Op>
__device__ T inclusive(cg::thread_block_tile<32> const& w, T v, Op op) {
#pragma unroll
    for (int s = 1; s < 32; s <<= 1) {
        T other = w.shfl_up(v, s);
        if (w.thread_rank() >= s) v = op(other, v);
    }
    return v;
}
template <int B, class T>
__device__ T block_scan(T v) {
    __shared__ T ends[B / 32];
    auto block = cg::this_thread_block();
    auto w = cg::tiled_partition<32>(block);
    T mine = inclusive(w, v, Plus{});
    if (w.thread_rank() == 31) ends[w.meta_group_rank()] = mine;
    block.sync();
    if (w.meta_group_rank() == 0) ends[w.thread_rank()] = inclusive(w, ends[w.thread_rank()], Plus{});
    block.sync();
    if (w.meta_group_rank()) mine += ends[w.meta_group_rank() - 1];
    return mine;
}
template <int B>
__global__ void tiles(const float* x, const int* k, int* prefix, float* sums, int* parts, int n) {
    int i = blockIdx.x * B + threadIdx.x;
    int running = block_scan<B, int>(i < n ? k[i] : 0);
    float sum = block_scan<B, float>(i < n ? x[i] : 0.f);
    if (i < n) prefix[i] = running;
    if (threadIdx.x == B - 1) { sums[blockIdx.x] = sum; parts[blockIdx.x] = running; }
}
template <int B>
__global__ void finish(int* prefix, const float* sums, const int* parts, float* total, int n, int blocks) {
    __shared__ int before;
    if (threadIdx.x < 32) {
        auto w = cg::tiled_partition<32>(cg::this_thread_block());
        int b = 0;
        for (int j = w.thread_rank(); j < blockIdx.x; j += 32) b += parts[j];
        for (int s = 16; s; s /= 2) b += w.shfl_xor(b, s);
        if (w.thread_rank() == 0) before = b;
    }
    __syncthreads();
    int i = blockIdx.x * B + threadIdx.x;
    if (i < n) prefix[i] += before;
    if (i == 0) { float t = 0; for (int j = 0; j < blocks; ++j) t += sums[j]; *total = t; }
}
