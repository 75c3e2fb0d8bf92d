// A relaxed load looks first, and the exchange comes only where the slot seems to be empty.
// scratch: keys int32[2 * n]
// scratch: counts int32[2 * n]
// scratch: totals int32[2 * n]
// launch: prepare<<<ceil_div(n, 128), 256>>>(keys, counts, totals, n)
// launch: put<<<ceil_div(n, 256), 256>>>(key, amount, least, keys, counts, totals, n)
// launch: get<<<ceil_div(m, 256), 256>>>(probe, keys, counts, totals, matches, total, n, m)
#include <cuda/atomic>

using Key = cuda::atomic_ref<int, cuda::thread_scope_device>;

__device__ unsigned mixed(unsigned key) {
    key = (key ^ key >> 16) * 0x45d9f3bu;
    key = (key ^ key >> 16) * 0x45d9f3bu;
    return key ^ key >> 16;
}

extern "C" __global__ void prepare(int* keys, int* counts, int* totals, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < 2 * n) keys[i] = -7, counts[i] = totals[i] = 0;
}

extern "C" __global__ void put(const int* key, const int* amount, int least, int* keys, int* counts,
                               int* totals, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= n || key[i] < 0 || amount[i] < least) return;
    unsigned slot = mixed(key[i]) % (2 * n);
    while (true) {
        Key place(keys[slot]);
        int there = place.load(cuda::memory_order_relaxed);
        if (there == key[i]) break;
        if (there == -7) {
            int empty = -7;
            if (place.compare_exchange_strong(empty, key[i], cuda::memory_order_relaxed)) break;
            if (empty == key[i]) break;
        }
        slot = (slot + 1) % (2 * n);
    }
    atomicAdd(counts + slot, 1);
    atomicAdd(totals + slot, amount[i]);
}

extern "C" __global__ void get(const int* probe, const int* keys, const int* counts,
                               const int* totals, int* matches, int* total, int n, int m) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= m) return;
    matches[i] = total[i] = 0;
    if (probe[i] < 0) return;
    unsigned slot = mixed(probe[i]) % (2 * n);
    for (; keys[slot] != -7; slot = (slot + 1) % (2 * n))
        if (keys[slot] == probe[i]) {
            matches[i] = counts[slot];
            total[i] = totals[slot];
            return;
        }
}
