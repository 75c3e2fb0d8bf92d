// The table is made and cleared. Nobody puts a row into it, and nobody finds one.
// scratch: slot_key int32[2 * n]
// scratch: slot_matches int32[2 * n]
// scratch: slot_total int32[2 * n]
// launch: clear<<<ceil_div(2 * n, 256), 256>>>(slot_key, slot_matches, slot_total, 2 * n)
// launch: build<<<ceil_div(n, 256), 256>>>(key, amount, least, slot_key, slot_matches, slot_total, n, 2 * n)
// launch: look_up<<<ceil_div(m, 256), 256>>>(probe, slot_key, slot_matches, slot_total, matches, total, m, 2 * n)

// a key below 0 is null, so none that is inserted is the same as this
constexpr int kEmpty = -1;

__device__ unsigned first_slot(int key, int slots) { return key % slots; }

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
    // find the slot of key[i], or make an empty one its own; then add
}

__global__ void look_up(const int* probe, const int* slot_key, const int* slot_matches,
                        const int* slot_total, int* matches, int* total, int m, int slots) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= m) return;
    // find the slot of probe[i], if there is one
    matches[i] = 0;
    total[i] = 0;
}
