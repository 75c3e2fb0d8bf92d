// The group's barrier in two halves: barrier_arrive, work of one's own, barrier_wait.
// launch: scan<<<1, 1024>>>(x, k, total, prefix, n)

#include <cooperative_groups.h>
namespace cg = cooperative_groups;

extern "C" __global__ void scan(const float* x, const int* k, float* total, int* prefix, int n) {
    __shared__ int warps[2][32];
    __shared__ float parts[32];
    auto block = cg::this_thread_block();
    int t = block.thread_rank(), lane = t & 31, carry = 0, turn = 0;
    float f = 0;
    for (int first = 0; first < n; first += 1024, turn ^= 1) {
        int i = first + t, v = i < n ? k[i] : 0;
        for (int d = 1; d < 32; d *= 2) {
            int below = __shfl_up_sync(~0u, v, d);
            if (lane >= d) v += below;
        }
        if (lane == 31) warps[turn][t / 32] = v;
        auto token = block.barrier_arrive();
        if (i < n) f += x[i];
        block.barrier_wait(static_cast<decltype(token)&&>(token));
        int mine = warps[turn][lane];
        v += carry + __reduce_add_sync(~0u, lane < t / 32 ? mine : 0);
        carry += __reduce_add_sync(~0u, mine);
        if (i < n) prefix[i] = v;
    }
    for (int d = 1; d < 32; d *= 2) f += __shfl_xor_sync(~0u, f, d);
    if (lane == 0) parts[t / 32] = f;
    block.sync();
    if (t >= 32) return;
    f = parts[t];
    for (int d = 1; d < 32; d *= 2) f += __shfl_xor_sync(~0u, f, d);
    if (t == 0) *total = f;
}
