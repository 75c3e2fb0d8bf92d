// Kernels whose warps wait for one thing each; launched with blocks of 256 threads.

// each thread sums up a row of its own, 64 floats long
extern "C" __global__ void row_sums(const float* x, float* out, int rows)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0.0f;
    for (int k = 0; k < 64; k++)
        sum += x[row * 64 + k];
    out[row] = sum;
}

// the same, with a warp for each row
extern "C" __global__ void rows_by_warps(const float* x, float* out, int rows)
{
    int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    float sum = x[row * 64 + lane] + x[row * 64 + 32 + lane];
    for (int step = 16; step > 0; step /= 2)
        sum += __shfl_down_sync(0xffffffffu, sum, step);
    if (lane == 0)
        out[row] = sum;
}

// a warp reads columns of a tile of 32 x 32 in shared memory
extern "C" __global__ void tile_columns(const float* x, float* out, int rows)
{
    __shared__ float tile[32 * 32];
    for (int k = threadIdx.x; k < 32 * 32; k += blockDim.x)
        tile[k] = x[k];
    __syncthreads();
    int lane = threadIdx.x % 32, first = threadIdx.x / 32;
    float sum = 0.0f;
    for (int k = 0; k < 512; k++)
        sum += tile[lane * 32 + (first + k) % 32];
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

// the same, with a column more in each row
extern "C" __global__ void padded_columns(const float* x, float* out, int rows)
{
    __shared__ float tile[32 * 33];
    for (int k = threadIdx.x; k < 32 * 32; k += blockDim.x)
        tile[k / 32 * 33 + k % 32] = x[k];
    __syncthreads();
    int lane = threadIdx.x % 32, first = threadIdx.x / 32;
    float sum = 0.0f;
    for (int k = 0; k < 512; k++)
        sum += tile[lane * 33 + (first + k) % 32];
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

// all threads count in four bins
extern "C" __global__ void four_bins(const float* x, float* out, int rows)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    int bin = __float_as_int(x[row]) & 3;
    atomicAdd(out + bin, 1.0f);
}

// seven warps of eight wait until the first has done its work
extern "C" __global__ void one_works(const float* x, float* out, int rows)
{
    __shared__ float scale;
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (threadIdx.x < 32) {
        float value = x[row];
        for (int k = 0; k < 2000; k++)
            value = value * 0.999f + 0.5f;
        if (threadIdx.x == 0)
            scale = value;
    }
    __syncthreads();
    out[row] = x[row] * scale;
}

// sines and exponentials, one after the other
extern "C" __global__ void sines(const float* x, float* out, int rows)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    float value = x[row];
    for (int k = 0; k < 256; k++)
        value = __sinf(value) + __cosf(value + 1.0f);
    out[row] = value;
}

// a polynomial in double precision
extern "C" __global__ void in_double(const float* x, float* out, int rows)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    double value = x[row], other = value + 1.0, third = value + 2.0, last = value + 3.0;
    for (int k = 0; k < 128; k++) {
        value = value * 0.5 + 1.0; other = other * 0.5 + 1.0; third = third * 0.5 + 1.0; last = last * 0.5 + 1.0;
    }
    out[row] = value + other + third + last;
}

// one warp for each multiprocessor, and each result needs the one before
extern "C" __global__ void long_chain(const float* x, float* out, int rows)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    float value = x[row];
    for (int k = 0; k < 20000; k++)
        value = value * 0.999f + 0.5f;
    out[row] = value;
}

// each thread reads where another element sends it
extern "C" __global__ void gather(const float* x, float* out, int rows)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned at = row;
    float sum = 0.0f;
    for (int k = 0; k < 8; k++) {
        at = at * 1664525u + 1013904223u;
        sum += x[at % (rows * 64u)];
    }
    out[row] = sum;
}
