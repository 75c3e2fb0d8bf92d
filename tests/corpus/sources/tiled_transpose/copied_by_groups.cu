// cooperative_groups::memcpy_async: each warp asks for its rows as a group, and all wait.
// launch: transpose<<<(ceil_div(w, 32), ceil_div(h, 32)), (32, 8)>>>(x, out, w, h)

#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
namespace cg = cooperative_groups;

extern "C" __global__ void transpose(const float* x, float* out, int w, int h) {
    __shared__ float tile[32][33];
    auto block = cg::this_thread_block();
    auto warp = cg::tiled_partition<32>(block);
    int left = blockIdx.x * 32, top = blockIdx.y * 32, lane = warp.thread_rank();
    int columns = min(32, w - left), rows = min(32, h - top);
    for (int r = warp.meta_group_rank(); r < rows; r += warp.meta_group_size())
        cg::memcpy_async(warp, tile[r], x + (top + r) * w + left, sizeof(float) * columns);
    cg::wait(warp);
    block.sync();
    for (int c = warp.meta_group_rank(); c < columns; c += warp.meta_group_size())
        if (lane < rows) out[(left + c) * h + top + lane] = tile[lane][c];
}
