// The scan bit by bit: ballots count for each lane, and the sum is a butterfly of doubles.
// launch: both<<<1, 256>>>(x, k, total, prefix, n)

__device__ int scan_of_warp(unsigned v, int lane) {
    // modulo 2^32, so that numbers below zero are right, too
    unsigned upto = 0xffffffffu >> (31 - lane), sum = 0;
    for (int bit = 0; bit < 32; bit++) sum += (unsigned)__popc(__ballot_sync(0xffffffff, v >> bit & 1) & upto) << bit;
    return (int)sum;
}

extern "C" __global__ void both(const float* x, const int* k, float* total, int* prefix, int n) {
    __shared__ int ends[8];
    __shared__ double halves[8];
    int t = threadIdx.x, lane = t % 32, warp = t / 32, carried = 0;
    double sum = 0;
    for (int first = 0; first < n; first += 256) {
        int i = first + t, v = i < n ? k[i] : 0;
        sum += i < n ? x[i] : 0;
        int s = scan_of_warp(v, lane);
        if (lane == 31) ends[warp] = s;
        __syncthreads();
        for (int b = 0; b < 8; b++) {
            if (b < warp) s += ends[b];
        }
        if (i < n) prefix[i] = carried + s;
        for (int b = 0; b < 8; b++) carried += ends[b];
        __syncthreads();
    }
    for (int d = 16; d; d /= 2) sum += __shfl_xor_sync(0xffffffff, sum, d);
    if (lane == 0) halves[warp] = sum;
    __syncthreads();
    if (t == 0) *total = halves[0] + halves[1] + halves[2] + halves[3] + halves[4] + halves[5] + halves[6] + halves[7];
}
