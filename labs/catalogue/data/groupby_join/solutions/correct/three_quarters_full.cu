// Three of four slots may be taken: less memory, and longer ways.
// scratch: slot_key int32[n + n / 3 + 1]
// scratch: slot_matches int32[n + n / 3 + 1]
// scratch: slot_total int32[n + n / 3 + 1]
// launch: clear<<<ceil_div(n + n / 3 + 1, 256), 256>>>(slot_key, slot_matches, slot_total, n + n / 3 + 1)
// launch: build<<<ceil_div(n, 256), 256>>>(key, amount, least, slot_key, slot_matches, slot_total, n, n + n / 3 + 1)
// launch: look_up<<<ceil_div(m, 256), 256>>>(probe, slot_key, slot_matches, slot_total, matches, total, m, n + n / 3 + 1)

// a key below 0 is null, so none that is inserted is the same as this
constexpr int kEmpty = -1;

// mixes all bits of the key into the low ones
__device__ unsigned first_slot(int key, int slots) {
    unsigned h = key;
    h = (h ^ (h >> 16)) * 0x85ebca6bu;
    h = (h ^ (h >> 13)) * 0xc2b2ae35u;
    return (h ^ (h >> 16)) % slots;
}

__global__ void clear(int* slot_key, int* slot_matches, int* slot_total, int slots) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= slots) return;
    slot_key[i] = kEmpty;
    slot_matches[i] = 0;
    slot_total[i] = 0;
}

__global__ void build(const int* key, const int* amount, int least, int* slot_key,
                      int* slot_matches, int* slot_total, int n, int slots) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n || key[i] < 0 || amount[i] < least) return;
    unsigned slot = first_slot(key[i], slots);
    while (true) {
        int found = atomicCAS(&slot_key[slot], kEmpty, key[i]);
        if (found == kEmpty || found == key[i]) break;
        slot = slot + 1 < slots ? slot + 1 : 0;
    }
    atomicAdd(&slot_matches[slot], 1);
    atomicAdd(&slot_total[slot], amount[i]);
}

__global__ void look_up(const int* probe, const int* slot_key, const int* slot_matches,
                        const int* slot_total, int* matches, int* total, int m, int slots) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= m) return;
    int count = 0, sum = 0;
    if (probe[i] >= 0) {
        unsigned slot = first_slot(probe[i], slots);
        while (slot_key[slot] != kEmpty && slot_key[slot] != probe[i])
            slot = slot + 1 < slots ? slot + 1 : 0;
        if (slot_key[slot] == probe[i]) {
            count = slot_matches[slot];
            sum = slot_total[slot];
        }
    }
    matches[i] = count;
    total[i] = sum;
}
