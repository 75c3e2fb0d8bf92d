// Slots are structs, empty is the least int32, and a fixed grid strides over the rows.
// scratch: slots int32[3 * (2 * n + 1)]
// launch: clear<<<ceil_div(2 * n + 1, 256), 256>>>(slots, 2 * n + 1)
// launch: insert<<<64, 128>>>(key, amount, least, slots, n, 2 * n + 1)
// launch: find<<<64, 128>>>(probe, slots, matches, total, m, 2 * n + 1)

constexpr int kEmpty = -2147483647 - 1;

struct Slot {
    int key, matches, total;
};

__device__ unsigned mixed(unsigned key) {
    key ^= key >> 15;
    key *= 0x2c1b3c6du;
    key ^= key >> 12;
    key *= 0x297a2d39u;
    return key ^ key >> 15;
}

__global__ void clear(int* slots, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) reinterpret_cast<Slot*>(slots)[i] = {kEmpty, 0, 0};
}

__global__ void insert(const int* key, const int* amount, int least, int* slots, int n, int count) {
    Slot* table = reinterpret_cast<Slot*>(slots);
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        if (key[i] < 0 || amount[i] < least) continue;
        unsigned at = mixed(key[i]) % count;
        for (;; at = (at + 1) % count) {
            int before = atomicCAS(&table[at].key, kEmpty, key[i]);
            if (before == kEmpty || before == key[i]) break;
        }
        atomicAdd(&table[at].matches, 1);
        atomicAdd(&table[at].total, amount[i]);
    }
}

__global__ void find(const int* probe, const int* slots, int* matches, int* total, int m, int count) {
    const Slot* table = reinterpret_cast<const Slot*>(slots);
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < m; i += gridDim.x * blockDim.x) {
        Slot slot = {kEmpty, 0, 0};
        if (probe[i] >= 0)
            for (unsigned at = mixed(probe[i]) % count;; at = (at + 1) % count) {
                slot = table[at];
                if (slot.key == probe[i] || slot.key == kEmpty) break;
            }
        matches[i] = slot.matches;
        total[i] = slot.total;
    }
}
