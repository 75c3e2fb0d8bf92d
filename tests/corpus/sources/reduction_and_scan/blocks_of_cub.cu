// One block: running sums and sum by cub's primitives for blocks.
// launch: all<<<1, 256>>>(x, k, total, prefix, n)
#include <cub/cub.cuh>

__global__ void all(const float* x, const int* k, float* total, int* prefix, int n) {
    using Scan = cub::BlockScan<int, 256>;
    using Reduce = cub::BlockReduce<float, 256>;
    __shared__ union {
        typename Scan::TempStorage scan;
        typename Reduce::TempStorage reduce;
    } room;
    int before = 0;
    float sum = 0;
    for (int begin = 0; begin < n; begin += 256) {
        const int i = begin + threadIdx.x;
        int value = i < n ? k[i] : 0, of_all;
        sum += i < n ? x[i] : 0.0f;
        Scan(room.scan).InclusiveSum(value, value, of_all);
        __syncthreads();
        if (i < n) prefix[i] = before + value;
        before += of_all;
    }
    sum = Reduce(room.reduce).Sum(sum);
    if (threadIdx.x == 0) *total = sum;
}
