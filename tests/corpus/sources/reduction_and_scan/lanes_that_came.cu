// coalesced_threads: lanes with an element form a group, which reduces and scans by itself.
// scratch: ends int32[ceil_div(n, 32)]
// launch: clear<<<1, 1>>>(total)
// launch: groups<<<ceil_div(n, 128), 128>>>(x, k, total, prefix, ends, n)
// launch: join<<<ceil_div(n, 128), 128>>>(prefix, ends, n)

#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
namespace cg = cooperative_groups;

extern "C" __global__ void clear(float* total) { *total = 0; }

extern "C" __global__ void groups(const float* x, const int* k, float* total, int* prefix, int* ends, int n) {
    int i = blockIdx.x * 128 + threadIdx.x;
    if (i < n) {
        cg::coalesced_group here = cg::coalesced_threads();
        int v = cg::inclusive_scan(here, k[i], cg::plus<int>());
        prefix[i] = v;
        float f = cg::reduce(here, x[i], cg::plus<float>());
        if (here.thread_rank() == 0) atomicAdd(total, f);
        if (here.thread_rank() == here.size() - 1) ends[i / 32] = v;
    }
}

extern "C" __global__ void join(int* prefix, const int* ends, int n) {
    int i = blockIdx.x * 128 + threadIdx.x, warp = i / 32, before = 0;
    auto tile = cg::tiled_partition<32>(cg::this_thread_block());
    for (int w = tile.thread_rank(); w < min(warp, (n + 31) / 32); w += 32) before += ends[w];
    before = cg::reduce(tile, before, cg::plus<int>());
    if (i < n) prefix[i] += before;
}
