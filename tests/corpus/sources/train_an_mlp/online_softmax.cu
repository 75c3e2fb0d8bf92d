// A thread for each row keeps the largest logit and the sum as it goes; weights are a warp's each
// launch: layer<true><<<64, 96>>>(x, w1, b1, hidden, n, d, h)
// launch: layer<false><<<64, 96>>>(hidden, w2, b2, delta, n, h, c)
// launch: softmax<<<ceil_div(n, 32), 32>>>(delta, labels, losses, n, c)
// launch: through<<<dim3(n), 64>>>(delta, w2, hidden, back, h, c)
// launch: descend<<<dim3(c, h + 1), 32>>>(hidden, delta, w2, b2, lr, n, h, c)
// launch: descend<<<dim3(h, d + 1), 32>>>(x, back, w1, b1, lr, n, d, h)
// launch: mean<<<1, 32>>>(losses, loss, n)
// scratch: hidden float32[n * h]
// scratch: delta float32[n * c]
// scratch: back float32[n * h]
// scratch: losses float32[n]

template <bool relu>
__global__ void layer(const float* __restrict__ in, const float* __restrict__ w, const float* bias,
                      float* out, int rows, int depth, int columns) {
    for (long at = blockIdx.x * blockDim.x + threadIdx.x; at < (long)rows * columns;
         at += gridDim.x * blockDim.x) {
        const long row = at / columns, column = at % columns;
        float sum = 0.f;
        for (int e = depth - 1; e >= 0; --e) sum = __fmaf_rn(in[row * depth + e], w[e * columns + column], sum);
        sum += bias[column];
        out[at] = relu ? sum * (sum > 0.f) : sum;
    }
}

__global__ void softmax(float* logits, const int* labels, float* losses, int n, int c) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < n) {
        float* z = logits + row * c;
        float most = z[0], sum = 1.f;
        for (int k = 1; k < c; ++k) {
            const float next = fmaxf(most, z[k]);
            sum = sum * expf(most - next) + expf(z[k] - next);
            most = next;
        }
        const float scale = 1.f / sum, label = z[labels[row]];
        losses[row] = logf(sum) + (most - label);
        for (int k = 0; k < c; ++k) {
            float p = expf(z[k] - most) * scale;
            if (k == labels[row]) p -= 1.f;
            z[k] = p / (float)n;
        }
    }
}

__global__ void through(const float* delta, const float* w2, const float* hidden, float* back, int h, int c) {
    for (int j = threadIdx.x; j < h; j += blockDim.x) {
        const int at = blockIdx.x * h + j;
        float sum = 0.f;
        if (hidden[at] > 0.f)
            for (int k = 0; k < c; ++k) sum += w2[j * c + k] * delta[blockIdx.x * c + k];
        back[at] = sum;
    }
}

__global__ void descend(const float* in, const float* gradient, float* w, float* bias, float lr, int n,
                        int rows, int columns) {
    const int column = blockIdx.x, row = blockIdx.y;
    float sum = 0.f;
    for (int i = threadIdx.x; i < n; i += warpSize)
        sum += (row == rows ? 1.f : in[i * rows + row]) * gradient[i * columns + column];
    for (int step = 1; step < 32; step <<= 1) sum += __shfl_xor_sync(0xffffffffu, sum, step);
    float* out = row == rows ? bias + column : w + row * columns + column;
    if (threadIdx.x == 0) *out = __fmaf_rn(-lr, sum, *out);
}

__global__ void mean(const float* losses, float* loss, int n) {
    float sum = 0.f;
    for (int i = threadIdx.x; i < n; i += 32) sum += losses[i] / n;
    for (int step = 16; step > 0; step >>= 1) sum += __shfl_down_sync(0xffffffffu, sum, step);
    if (threadIdx.x == 0) *loss = sum;
}
