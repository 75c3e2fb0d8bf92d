// Keys lie in slots of 64 bits, of scratch memory of that type; lambdas walk them.
// scratch: keys uint64[next_power_of_2(2 * n)]
// scratch: sums int32[2 * next_power_of_2(2 * n)]
// launch: table::clear<<<ceil_div(next_power_of_2(2 * n), 128), 128>>>(keys, sums, next_power_of_2(2 * n))
// launch: table::insert<<<ceil_div(n, 128), 128>>>(key, amount, least, keys, sums, n, next_power_of_2(2 * n))
// launch: table::find<<<ceil_div(m, 128), 128>>>(probe, keys, sums, matches, total, m, next_power_of_2(2 * n))
namespace table {
using u64 = unsigned long long;
inline constexpr u64 kFree = ~0ull;
__device__ __forceinline__ unsigned mix(unsigned h) {
    h ^= h >> 16; h *= 0x85ebca6bu; h ^= h >> 13; h *= 0xc2b2ae35u; return h ^ (h >> 16);
}
struct Table {
    u64* keys; int2* sums; unsigned mask;
    template <class Visit> __device__ void walk(int key, Visit visit) const {
        for (unsigned s = mix(static_cast<unsigned>(key)) & mask; visit(s); s = (s + 1) & mask) {}
    }
};
__global__ void clear(u64* keys, int* sums, int slots) {
    if (int i = blockIdx.x * blockDim.x + threadIdx.x; i < slots) { keys[i] = kFree; sums[2 * i] = sums[2 * i + 1] = 0; }
}
__global__ void insert(const int* key, const int* amount, int least, u64* keys, int* sums, int n, int slots) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const int k = __ldg(key + i), a = __ldg(amount + i);
    if (k < 0 or a < least) return;
    Table t{keys, reinterpret_cast<int2*>(sums), unsigned(slots) - 1u};
    t.walk(k, [&](unsigned s) {
        const u64 before = atomicCAS(t.keys + s, kFree, (u64)k);
        if (before != kFree and before != (u64)k) return true;
        atomicAdd(&t.sums[s].x, 1);
        atomicAdd(&t.sums[s].y, a);
        return false;
    });
}
__global__ void find(const int* probe, const u64* keys, const int* sums, int* matches, int* total, int m, int slots) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= m) return;
    int2 result{0, 0};
    const int k = probe[i];
    Table t{const_cast<u64*>(keys), reinterpret_cast<int2*>(const_cast<int*>(sums)), unsigned(slots) - 1u};
    if (k >= 0) t.walk(k, [&](unsigned s) {
        if (t.keys[s] == kFree) return false;
        if (t.keys[s] != (u64)k) return true;
        result = t.sums[s];
        return false;
    });
    matches[i] = result.x;
    total[i] = result.y;
}
}  // namespace table
