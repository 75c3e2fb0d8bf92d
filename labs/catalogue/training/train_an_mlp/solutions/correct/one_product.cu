// One kernel of products for all five, with strides in place of transposed copies.
// scratch: hidden float32[n][h]
// scratch: delta float32[n][c]
// scratch: back float32[n][h]
// launch: product<<<(ceil_div(h, TILE), ceil_div(n, TILE)), (TILE, TILE)>>>(x, d, 1, w1, h, 1, b1, hidden, n, h, d, 1.0, 0, 1)
// launch: product<<<(ceil_div(c, TILE), ceil_div(n, TILE)), (TILE, TILE)>>>(hidden, h, 1, w2, c, 1, b2, delta, n, c, h, 1.0, 0, 0)
// launch: clear<<<1, 1>>>(loss)
// launch: softmax<<<n, 128>>>(delta, labels, loss, n, c)
// launch: product<<<(ceil_div(h, TILE), ceil_div(n, TILE)), (TILE, TILE)>>>(delta, c, 1, w2, 1, c, b1, back, n, h, c, 1.0, 0, 2)
// launch: mask<<<ceil_div(n * h, 128), 128>>>(hidden, back, n * h)
// launch: product<<<(ceil_div(c, TILE), ceil_div(h, TILE)), (TILE, TILE)>>>(hidden, 1, h, delta, c, 1, b2, w2, h, c, n, lr, 1, 2)
// launch: product<<<(ceil_div(h, TILE), ceil_div(d, TILE)), (TILE, TILE)>>>(x, 1, d, back, h, 1, b1, w1, d, h, n, lr, 1, 2)
// launch: columns<<<c, 64>>>(delta, b2, lr, n, c)
// launch: columns<<<h, 64>>>(back, b1, lr, n, h)
#define TILE 16

// mode 0: with a bias, 1: with a bias and relu, 2: without; out -= scale * product if it is an update
__global__ void product(const float* a, int a_row, int a_depth, const float* b, int b_depth, int b_column,
                        const float* bias, float* out, int rows, int columns, int depth,
                        float scale, int is_update, int mode) {
    __shared__ float left[TILE][TILE + 1], right[TILE][TILE + 1];
    const int x = threadIdx.x, y = threadIdx.y;
    const int row = blockIdx.y * TILE + y, column = blockIdx.x * TILE + x;
    float sum = 0;
    for (int from = 0; from < depth; from += TILE) {
        left[y][x] = row < rows && from + x < depth ? a[row * a_row + (from + x) * a_depth] : 0;
        right[y][x] = column < columns && from + y < depth ? b[(from + y) * b_depth + column * b_column] : 0;
        __syncthreads();
        for (int e = 0; e < TILE; ++e) sum = fmaf(left[y][e], right[e][x], sum);
        __syncthreads();
    }
    if (row >= rows || column >= columns) return;
    if (mode < 2) sum += bias[column];
    if (mode == 1 && sum < 0) sum = 0;
    if (is_update) out[row * columns + column] -= scale * sum;
    else out[row * columns + column] = sum;
}

__global__ void clear(float* loss) { *loss = 0; }

template <bool largest> __device__ float all(float value) {
    __shared__ float of_warp[4];
    for (int step = 16; step; step >>= 1) {
        float other = __shfl_xor_sync(0xffffffff, value, step);
        value = largest ? fmaxf(value, other) : value + other;
    }
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = value;
    __syncthreads();
    float result = of_warp[0];
    for (int w = 1; w < 4; w++) result = largest ? fmaxf(result, of_warp[w]) : result + of_warp[w];
    __syncthreads();
    return result;
}

// a block for each row; the losses are added by atomics
__global__ void softmax(float* delta, const int* labels, float* loss, int n, int c) {
    float* row = delta + blockIdx.x * c;
    const int label = labels[blockIdx.x];
    float most = -3.4e38f, sum = 0;
    for (int k = threadIdx.x; k < c; k += blockDim.x) most = max(most, row[k]);
    most = all<true>(most);
    for (int k = threadIdx.x; k < c; k += blockDim.x) sum += expf(row[k] - most);
    sum = all<false>(sum);
    if (threadIdx.x == 0) atomicAdd(loss, (logf(sum) + most - row[label]) / n);
    __syncthreads();
    for (int k = threadIdx.x; k < c; k += blockDim.x)
        row[k] = (expf(row[k] - most) / sum - (k == label ? 1.f : 0.f)) / n;
}

__global__ void mask(const float* hidden, float* back, int size) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < size && hidden[i] == 0) back[i] = 0;
}

// the gradient of a bias is the sum of a column
__global__ void columns(const float* gradient, float* bias, float lr, int n, int width) {
    __shared__ float part[64];
    float sum = 0;
    for (int i = threadIdx.x; i < n; i += 64) sum += gradient[i * width + blockIdx.x];
    part[threadIdx.x] = sum;
    for (int half = 32; half; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
    }
    if (threadIdx.x == 0) bias[blockIdx.x] -= lr * part[0];
}
