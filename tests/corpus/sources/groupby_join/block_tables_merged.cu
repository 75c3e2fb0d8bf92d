// Each block fills a small table in shared memory, and sends its groups to the large one.
// scratch: keys int32[2 * n + 2]
// scratch: sums int32[4 * n + 4]
// launch: wipe<<<ceil_div(2 * n + 2, 256), 256>>>(keys, sums, 2 * n + 2)
// launch: gather<<<ceil_div(n, 128), 128>>>(key, amount, least, keys, sums, n, 2 * n + 2)
// launch: answer<<<ceil_div(m, 64), 64>>>(probe, keys, sums, matches, total, m, 2 * n + 2)

constexpr int kRows = 128, kSmall = 256, kFree = -1;

__device__ unsigned spread(int key) {
    unsigned bits = key * 0x9e3779b1u;
    return bits ^ bits >> 15;
}

// takes a slot for the key, or finds the one that it has
__device__ int slot_of(int* keys, int slots, int key) {
    int slot = spread(key) % slots;
    for (int before; (before = atomicCAS(keys + slot, kFree, key)) != kFree;) {
        if (before == key) break;
        slot = (slot + 1) % slots;
    }
    return slot;
}

__global__ void wipe(int* keys, int* sums, int slots) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= slots) return;
    keys[i] = kFree;
    sums[2 * i] = sums[2 * i + 1] = 0;
}

__global__ void gather(const int* key, const int* amount, int least, int* keys, int* sums, int n,
                       int slots) {
    __shared__ int near_keys[kSmall], near_counts[kSmall], near_totals[kSmall];
    for (int slot = threadIdx.x; slot < kSmall; slot += kRows) {
        near_keys[slot] = kFree;
        near_counts[slot] = near_totals[slot] = 0;
    }
    __syncthreads();
    int i = blockIdx.x * kRows + threadIdx.x;
    if (i < n && key[i] >= 0 && amount[i] >= least) {
        int slot = slot_of(near_keys, kSmall, key[i]);
        atomicAdd(near_counts + slot, 1);
        atomicAdd(near_totals + slot, amount[i]);
    }
    __syncthreads();
    for (int slot = threadIdx.x; slot < kSmall; slot += kRows) {
        if (near_keys[slot] == kFree) continue;
        int far = slot_of(keys, slots, near_keys[slot]);
        atomicAdd(sums + 2 * far, near_counts[slot]);
        atomicAdd(sums + 2 * far + 1, near_totals[slot]);
    }
}

__global__ void answer(const int* probe, const int* keys, const int* sums, int* matches, int* total,
                       int m, int slots) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= m) return;
    int count = 0, sum = 0;
    if (probe[i] >= 0) {
        int slot = spread(probe[i]) % slots;
        while (keys[slot] != probe[i] && keys[slot] != kFree) slot = (slot + 1) % slots;
        if (keys[slot] != kFree) count = sums[2 * slot], sum = sums[2 * slot + 1];
    }
    matches[i] = count;
    total[i] = sum;
}
