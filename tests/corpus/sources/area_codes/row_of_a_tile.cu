// Groups of eight lanes take rows of their own, each in whole sectors from a shared list.
// launch: number<<<ceil_div(d * h, 16), 128>>>(code, visits, d, h, w)

#include <cooperative_groups.h>
namespace cg = cooperative_groups;

extern "C" __global__ void number(int* code, int* visits, int d, int h, int w) {
    __shared__ int3 rows[16];
    cg::thread_block block = cg::this_thread_block();
    auto eight = cg::tiled_partition<8>(block);
    int row = blockIdx.x * 16 + eight.meta_group_rank();
    if (eight.thread_rank() == 0) rows[eight.meta_group_rank()] = make_int3(row / h, row % h, row * w);
    eight.sync();
    int3 mine = rows[eight.meta_group_rank()];
    if (row >= d * h) return;
    for (int x = eight.thread_rank(); x < w; x += eight.size()) {
        code[mine.z + x] = 1000000 * mine.x + 1000 * mine.y + x;
        visits[mine.z + x] += 1;
    }
}
