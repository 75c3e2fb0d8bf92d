// cuda::atomic_ref of the block's scope: no other block visits the element.
// launch: number<<<(ceil_div(w, 64), h, d), 64>>>(code, visits, w)

#include <cuda/atomic>

extern "C" __global__ void number(int* code, int* visits, int w) {
    int x = blockIdx.x * 64 + threadIdx.x, y = blockIdx.y, z = blockIdx.z;
    if (x >= w) return;
    size_t i = (z * (size_t)gridDim.y + y) * w + x;
    cuda::atomic_ref<int, cuda::thread_scope_block> seen(visits[i]);
    cuda::atomic_ref<int, cuda::thread_scope_system>(code[i])
        .store(1000000 * z + 1000 * y + x, cuda::memory_order_relaxed);
    seen.fetch_add(1, cuda::memory_order_acq_rel);
}
