// Lanes of a warp that have the same key send one of them to the table, with their sum.
// scratch: table int64[3 * n + 1]
// scratch: keys int32[3 * n + 1]
// launch: clear<<<ceil_div(3 * n + 1, 512), 512>>>(keys, table, 3 * n + 1)
// launch: build<<<ceil_div(n, 128), 128>>>(key, amount, least, keys, table, n, 3 * n + 1)
// launch: look_up<<<ceil_div(m, 128), 128>>>(probe, keys, table, matches, total, m, 3 * n + 1)

// Fibonacci hashing: the upper bits of a product are the well mixed ones
__device__ unsigned home(int key, unsigned slots) {
    return __umulhi(static_cast<unsigned>(key) * 2654435769u, slots);
}

extern "C" __global__ void clear(int* keys, long long* table, int slots) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < slots) keys[i] = -1, table[i] = 0;
}

extern "C" __global__ void build(const int* key, const int* amount, int least, int* keys,
                                 long long* table, int n, int slots) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    bool is_taken = i < n && key[i] >= 0 && amount[i] >= least;
    unsigned taken = __ballot_sync(~0u, is_taken);
    if (!is_taken) return;
    unsigned same = __match_any_sync(taken, key[i]);
    int sum = 0;
    for (unsigned rest = taken; rest; rest &= rest - 1) {
        int lane = __ffs(rest) - 1;
        int other = __shfl_sync(taken, amount[i], lane);
        if (same >> lane & 1) sum += other;
    }
    if (threadIdx.x % 32 != __ffs(same) - 1) return;
    unsigned slot = home(key[i], slots);
    for (int found; (found = atomicCAS(&keys[slot], -1, key[i])) != -1 && found != key[i];)
        if (++slot == slots) slot = 0;
    // the count in the upper half, the sum in the lower: one atomic for both
    atomicAdd(reinterpret_cast<unsigned long long*>(&table[slot]),
              (static_cast<unsigned long long>(__popc(same)) << 32) + sum);
}

extern "C" __global__ void look_up(const int* probe, const int* keys, const long long* table,
                                   int* matches, int* total, int m, int slots) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= m) return;
    long long both = 0;
    if (probe[i] >= 0) {
        unsigned slot = home(probe[i], slots);
        for (; keys[slot] != -1; slot = slot + 1 == slots ? 0 : slot + 1)
            if (keys[slot] == probe[i]) {
                both = table[slot];
                break;
            }
    }
    int sum = static_cast<int>(both);
    total[i] = sum;
    matches[i] = static_cast<int>((both - sum) >> 32);
}
