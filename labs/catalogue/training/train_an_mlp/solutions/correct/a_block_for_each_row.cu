// A block takes a row through forward and backward, and adds to gradients in scratch memory.
// scratch: g1 float32[d][h]
// scratch: gb1 float32[h]
// scratch: g2 float32[h][c]
// scratch: gb2 float32[c]
// scratch: hidden float32[n][h]
// scratch: delta float32[n][c]
// launch: clear<<<32, 128>>>(g1, d * h, gb1, h, g2, h * c, gb2, c, loss)
// launch: rows<<<n, 64>>>(x, labels, w1, b1, w2, b2, hidden, delta, g1, gb1, g2, gb2, loss, n, d, h, c)
// launch: update<<<32, 128>>>(w1, g1, d * h, b1, gb1, h, w2, g2, h * c, b2, gb2, c, lr)

__device__ void zero(float* a, int size) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < size; i += gridDim.x * blockDim.x) a[i] = 0;
}

__global__ void clear(float* g1, int s1, float* gb1, int t1, float* g2, int s2, float* gb2, int t2, float* loss) {
    zero(g1, s1);
    zero(gb1, t1);
    zero(g2, s2);
    zero(gb2, t2);
    zero(loss, 1);
}

__global__ void rows(const float* x, const int* labels, const float* w1, const float* b1, const float* w2,
                     const float* b2, float* hiddens, float* deltas, float* g1, float* gb1, float* g2,
                     float* gb2, float* loss, int n, int d, int h, int c) {
    const int t = threadIdx.x, threads = blockDim.x, label = labels[blockIdx.x];
    const float* in = x + blockIdx.x * d;
    float* hidden = hiddens + blockIdx.x * h;
    float* delta = deltas + blockIdx.x * c;
    __shared__ float most, sum;
    for (int j = t; j < h; j += threads) {
        float a = b1[j];
        for (int e = 0; e < d; e++) a += in[e] * w1[e * h + j];
        hidden[j] = a > 0 ? a : 0;
    }
    __syncthreads();
    for (int k = t; k < c; k += threads) {
        float z = b2[k];
        for (int j = 0; j < h; j++) z += hidden[j] * w2[j * c + k];
        delta[k] = z;
    }
    __syncthreads();
    if (t == 0) {
        most = delta[0];
        for (int k = 1; k < c; k++) most = fmaxf(most, delta[k]);
        sum = 0;
        for (int k = 0; k < c; k++) sum += expf(delta[k] - most);
        atomicAdd(loss, (logf(sum) - (delta[label] - most)) / n);
    }
    __syncthreads();
    for (int k = t; k < c; k += threads) {
        float p = expf(delta[k] - most) / sum;
        delta[k] = (p - (k == label)) / n;
        atomicAdd(&gb2[k], delta[k]);
    }
    __syncthreads();
    for (int i = t; i < h * c; i += threads) atomicAdd(&g2[i], hidden[i / c] * delta[i % c]);
    for (int j = t; j < h; j += threads) {
        if (hidden[j] <= 0) continue;
        float back = 0;
        for (int k = 0; k < c; k++) back += delta[k] * w2[j * c + k];
        atomicAdd(&gb1[j], back);
        for (int e = 0; e < d; e++) atomicAdd(&g1[e * h + j], in[e] * back);
    }
}

__device__ void descend(float* weights, const float* gradient, int size, float lr) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < size; i += gridDim.x * blockDim.x)
        weights[i] = weights[i] - lr * gradient[i];
}

__global__ void update(float* w1, const float* g1, int s1, float* b1, const float* gb1, int t1, float* w2,
                       const float* g2, int s2, float* b2, const float* gb2, int t2, float lr) {
    descend(w1, g1, s1, lr);
    descend(b1, gb1, t1, lr);
    descend(w2, g2, s2, lr);
    descend(b2, gb2, t2, lr);
}
