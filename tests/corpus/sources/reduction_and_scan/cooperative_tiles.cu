// Cooperative groups of 32: their reduce and their scan, from CUDA's headers.
// launch: both<<<1, 32>>>(x, k, total, prefix, n)
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
namespace cg = cooperative_groups;

extern "C" __global__ void both(const float* x, const int* k, float* total, int* prefix, int n) {
    auto tile = cg::tiled_partition<32>(cg::this_thread_block());
    float sum = 0;
    int before = 0;
    for (int first = 0; first < n; first += 32) {
        int i = first + tile.thread_rank();
        sum += i < n ? x[i] : 0;
        int v = cg::inclusive_scan(tile, i < n ? k[i] : 0);
        if (i < n) prefix[i] = before + v;
        before += tile.shfl(v, 31);
    }
    sum = cg::reduce(tile, sum, cg::plus<float>());
    if (tile.thread_rank() == 0) *total = sum;
}
