// backward and the update of a row of w2 in one launch, without a barrier between: other threads still read
// scratch: hidden float32[n][h]
// scratch: delta float32[n][c]
// scratch: back float32[n][h]
// launch: forward<<<(ceil_div(h, 16), ceil_div(n, 16)), (16, 16)>>>(x, w1, b1, hidden, n, d, h)
// launch: classify<<<ceil_div(n, 32), 32>>>(hidden, w2, b2, labels, delta, n, h, c)
// launch: losses<<<1, 1>>>(delta, labels, loss, n, c)
// launch: backward<<<h, 32>>>(delta, w2, hidden, back, lr, n, h, c)
// launch: update<<<(ceil_div(h, 16), ceil_div(d, 16)), (16, 16)>>>(x, back, w1, lr, n, d, h)
// launch: bias<<<ceil_div(c, 32), 32>>>(delta, b2, lr, n, c)
// launch: bias<<<ceil_div(h, 32), 32>>>(back, b1, lr, n, h)

__global__ void forward(const float* x, const float* w1, const float* b1, float* hidden, int n, int d, int h) {
    int i = blockIdx.y * 16 + threadIdx.y, j = blockIdx.x * 16 + threadIdx.x;
    if (i >= n || j >= h) return;
    float sum = b1[j];
    for (int e = 0; e < d; e++) sum += x[i * d + e] * w1[e * h + j];
    hidden[i * h + j] = fmaxf(sum, 0);
}

__global__ void classify(const float* hidden, const float* w2, const float* b2, const int* labels,
                         float* delta, int n, int h, int c) {
    int i = blockIdx.x * 32 + threadIdx.x;
    if (i >= n) return;
    for (int k = 0; k < c; k++) {
        float z = b2[k];
        for (int j = 0; j < h; j++) z += hidden[i * h + j] * w2[j * c + k];
        delta[i * c + k] = z;
    }
}

__global__ void losses(float* delta, const int* labels, float* loss, int n, int c) {
    float all = 0;
    for (int i = 0; i < n; i++) {
        float most = -INFINITY, sum = 0;
        for (int k = 0; k < c; k++) most = fmaxf(most, delta[i * c + k]);
        for (int k = 0; k < c; k++) sum += expf(delta[i * c + k] - most);
        all += logf(sum) + most - delta[i * c + labels[i]];
        for (int k = 0; k < c; k++)
            delta[i * c + k] = (expf(delta[i * c + k] - most) / sum - (k == labels[i])) / n;
    }
    *loss = all / n;
}

__global__ void backward(const float* delta, float* w2, const float* hidden, float* back, float lr,
                         int n, int h, int c) {
    int j = blockIdx.x;
    for (int i = threadIdx.x; i < n; i += 32) {
        float sum = 0;
        for (int k = 0; k < c; k++) sum += delta[i * c + k] * w2[j * c + k];
        back[i * h + j] = hidden[i * h + j] > 0 ? sum : 0;
    }
    for (int k = threadIdx.x; k < c; k += 32) {
        float sum = 0;
        for (int i = 0; i < n; i++) sum += hidden[i * h + j] * delta[i * c + k];
        w2[j * c + k] -= lr * sum;
    }
}

__global__ void update(const float* x, const float* back, float* w1, float lr, int n, int d, int h) {
    int e = blockIdx.y * 16 + threadIdx.y, j = blockIdx.x * 16 + threadIdx.x;
    if (e >= d || j >= h) return;
    float sum = 0;
    for (int i = 0; i < n; i++) sum += x[i * d + e] * back[i * h + j];
    w1[e * h + j] -= lr * sum;
}

__global__ void bias(const float* gradient, float* b, float lr, int n, int width) {
    int k = blockIdx.x * 32 + threadIdx.x;
    if (k >= width) return;
    float sum = 0;
    for (int i = 0; i < n; i++) sum += gradient[i * width + k];
    b[k] -= lr * sum;
}
