// Decoupled look-back: blocks take numbers, publish status and sum in one word, and look back.
// scratch: words int64[ceil_div(n, 128) + 1]
// launch: begin<<<ceil_div(n, 128) + 1, 1>>>(words, total)
// launch: scan<<<ceil_div(n, 128), 128>>>(x, k, total, prefix, words, n)

typedef unsigned long long Word;
#define OWN (1ull << 32)
#define ALL (2ull << 32)

extern "C" __global__ void begin(Word* words, float* total) {
    words[blockIdx.x] = 0;
    if (blockIdx.x == 0) *total = 0;
}

extern "C" __global__ void scan(const float* x, const int* k, float* total, int* prefix, Word* words, int n) {
    __shared__ int number, sums[4], before;
    int t = threadIdx.x, lane = t % 32, warp = t / 32;
    // by the order in which they begin, so that whoever is waited for has begun
    if (t == 0) number = (int)atomicAdd(&words[gridDim.x], 1ull);
    __syncthreads();
    int tile = number, i = tile * 128 + t, v = i < n ? k[i] : 0;
    float f = i < n ? x[i] : 0;
    for (int d = 1; d < 32; d *= 2) {
        int below = __shfl_up_sync(~0u, v, d);
        if (lane >= d) v += below;
        f += __shfl_xor_sync(~0u, f, d);
    }
    if (lane == 0) atomicAdd(total, f);
    if (lane == 31) sums[warp] = v;
    __syncthreads();
    if (t == 0) {
        int own = sums[0] + sums[1] + sums[2] + sums[3], sum = 0;
        atomicExch(&words[tile], OWN | (unsigned)own);
        for (int at = tile - 1; at >= 0; at--) {
            Word word;
            do word = atomicAdd(&words[at], 0ull);
            while (word == 0);
            sum += (int)(unsigned)word;
            if (word & ALL) break;
        }
        before = sum;
        atomicExch(&words[tile], ALL | (unsigned)(sum + own));
    }
    __syncthreads();
    for (int w = 0; w < warp; w++) v += sums[w];
    if (i < n) prefix[i] = before + v;
}
