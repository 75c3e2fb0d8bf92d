// What the trusted process runs on the GPU beside a learner's kernels.
typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;
#define EACH(i, count) \
    u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x; i < count; \
    i += gridDim.x * (u64)blockDim.x

__device__ u32 mix(u32 x) {
    x ^= x >> 16; x *= 0x85ebca6bu; x ^= x >> 13; x *= 0xc2b2ae35u; return x ^ x >> 16;
}
// not a number as float16, float32 and float64, and another one at each place
__device__ u32 poison_word(u64 word, u32 key) {
    u32 h = mix((u32)word ^ mix((u32)(word >> 32) ^ key));
    return (0x7ff0u | (h & 0xffffu) % 15u) << 16 | 0x7c00u | (h >> 16) % 511u + 1u;
}
__device__ u8 poison_byte(u64 at, u32 key) {
    return poison_word(at / 4, key) >> 8 * (at % 4);
}
extern "C" __global__ void poison(u32* words, u64 count, u32 key) {
    for (EACH(i, count)) words[i] = poison_word(i, key);
}
// found[0]: the first place that is not as it was, found[1]: how many are not
extern "C" __global__ void untouched(const u8* arena, u64 begin, u64 end, u32 key, u64* found) {
    for (EACH(i, end - begin))
        if (arena[begin + i] != poison_byte(begin + i, key)) {
            atomicMin(found, begin + i);
            atomicAdd(found + 1, 1ull);
        }
}
// each chunk from a place of the pool that the key decides
template <typename T>
__device__ void take(T* to, const T* pool, u64 count, u32 places, u32 chunk, u32 key) {
    for (EACH(i, count)) {
        u32 number = i / chunk;
        to[i] = pool[mix(number + key) % places + (u32)(i - (u64)number * chunk)];
    }
}
extern "C" __global__ void fill(void* to, const void* pool, u64 count, u32 places,
                                u32 chunk, u32 key, u32 item) {
    if (item == 1) take((u8*)to, (const u8*)pool, count, places, chunk, key);
    if (item == 2) take((unsigned short*)to, (const unsigned short*)pool, count, places, chunk, key);
    if (item == 4) take((u32*)to, (const u32*)pool, count, places, chunk, key);
    if (item == 8) take((u64*)to, (const u64*)pool, count, places, chunk, key);
}
__device__ double half_value(unsigned short h) {
    int exponent = h >> 10 & 31, fraction = h & 1023;
    double size = exponent == 31 ? (fraction ? __longlong_as_double(0x7ff8000000000000ll)
                                             : __longlong_as_double(0x7ff0000000000000ll))
                : exponent ? ldexp(1024.0 + fraction, exponent - 25) : ldexp((double)fraction, -24);
    return h >> 15 ? -size : size;
}
// kind: 'f' floats, 'i' whole numbers with a sign, 'u' without
__device__ double value_of(const u8* p, u32 item, u32 kind) {
    if (kind == 'f')
        return item == 2 ? half_value(*(const unsigned short*)p)
             : item == 4 ? *(const float*)p : *(const double*)p;
    if (kind == 'u')
        return item == 1 ? *p : item == 2 ? *(const unsigned short*)p
             : item == 4 ? *(const u32*)p : *(const u64*)p;
    return item == 1 ? *(const signed char*)p : item == 2 ? *(const short*)p
         : item == 4 ? *(const int*)p : *(const long long*)p;
}
__device__ u64 bits_of(const u8* p, u32 item) {
    return item == 1 ? *p : item == 2 ? *(const unsigned short*)p
         : item == 4 ? *(const u32*)p : *(const u64*)p;
}
// of an element; where it begins is a multiple of its size
__device__ u64 poison_bits(u64 at, u32 item, u32 key) {
    u64 word = poison_word(at / 4, key);
    if (item == 8) return word | (u64)poison_word(at / 4 + 1, key) << 32;
    return item == 4 ? word : word >> 8 * (at % 4) & (1u << 8 * item) - 1;
}
// found[0]: the first element that is wrong, found[1]: how many are
extern "C" __global__ void compare(const u8* arena, u64 at, const u8* right, u64 count,
                                   u32 item, u32 kind, double bound, u32 key, u64* found) {
    for (EACH(i, count)) {
        const u8* got = arena + at + i * item;
        const u8* want = right + i * item;
        u64 bits = bits_of(got, item);
        bool same = bits == bits_of(want, item);
        // a whole number that is right may be what memory held before
        bool unwritten = !same && (kind == 'f' || item >= 4)
                      && bits == poison_bits(at + i * item, item, key);
        if (!same) {
            double a = value_of(got, item, kind), b = value_of(want, item, kind);
            if (kind == 'f')
                same = isfinite(b) ? fabs(a - b) <= bound : a == b || (isnan(a) && isnan(b));
            else if (bound > 0) same = fabs(a - b) <= bound;
        }
        if (unwritten || !same) {
            atomicMin(found, i);
            atomicAdd(found + 1, 1ull);
        }
    }
}
// whoever does not know the key can't exchange words for others of the same sum
extern "C" __global__ void digest(const u32* words, u64 count, u32 key, u64* sum) {
    u64 own = 0;
    for (EACH(i, count)) own += mix(words[i] ^ mix((u32)i ^ key)) * 0x9e3779b97f4a7c15ull;
    atomicAdd(sum, own);
}
// reading leaves lines that nobody has to write back
extern "C" __global__ void flush(const uint4* held, u64 count, u32* nowhere) {
    u32 sum = 0;
    for (EACH(i, count)) { uint4 v = held[i]; sum += v.x ^ v.y ^ v.z ^ v.w; }
    if (sum == 0x5eed1234u) *nowhere = sum;
}
// so many steps, each of which waits for the one before: how long it takes tells
// whether somebody else's kernels have a share of the time
extern "C" __global__ void spin(u32 steps, u32* nowhere) {
    u32 x = threadIdx.x;
    for (u32 i = 0; i < steps; i++) x = mix(x ^ i);
    if (x == 0x5eed1234u) *nowhere = x;
}
