// scratch: hidden float32[n][h]
// scratch: delta float32[n][c]
// scratch: back float32[n][h]
// scratch: losses float32[n]
// launch: forward<<<(ceil_div(h, 16), ceil_div(n, 16)), (16, 16)>>>(x, w1, b1, hidden, n, d, h)
// launch: classify<<<ceil_div(n, 4), (32, 4)>>>(hidden, w2, b2, labels, delta, losses, n, h, c)
// launch: backward<<<(ceil_div(h, 16), ceil_div(n, 16)), (16, 16)>>>(delta, w2, hidden, back, n, h, c)
// launch: update<<<(ceil_div(c, 16), ceil_div(h + 1, 16)), (16, 16)>>>(hidden, delta, w2, b2, lr, n, h, c)
// launch: update<<<(ceil_div(h, 16), ceil_div(d + 1, 16)), (16, 16)>>>(x, back, w1, b1, lr, n, d, h)
// launch: mean<<<1, 32>>>(losses, loss, n)

// hidden = relu(x @ w1 + b1): one thread for each of its n x h elements
__global__ void forward(const float* x, const float* w1, const float* b1, float* hidden,
                        int n, int d, int h) {
    int i = blockIdx.y * 16 + threadIdx.y, j = blockIdx.x * 16 + threadIdx.x;
    if (i >= n || j >= h) return;
    float sum = b1[j];
    for (int e = 0; e < d; e++) sum += x[i * d + e] * w1[e * h + j];
    hidden[i * h + j] = fmaxf(sum, 0);
}

// A warp for each row: its logits lie in delta, then become the gradient of the loss.
__global__ void classify(const float* hidden, const float* w2, const float* b2, const int* labels,
                         float* delta, float* losses, int n, int h, int c) {
    int i = blockIdx.x * 4 + threadIdx.y, lane = threadIdx.x;
    if (i >= n) return;
    float* row = delta + i * c;
    float most = -INFINITY;
    for (int k = lane; k < c; k += 32) {
        float sum = b2[k];
        for (int j = 0; j < h; j++) sum += hidden[i * h + j] * w2[j * c + k];
        row[k] = sum;
        most = fmaxf(most, sum);
    }
    for (int other = 16; other; other /= 2)
        most = fmaxf(most, __shfl_xor_sync(~0u, most, other));
    // less the largest, no exponential exceeds 1, and one is 1
    float sum = 0, of_label = 0;
    for (int k = lane; k < c; k += 32) {
        if (k == labels[i]) of_label = row[k] - most;
        row[k] = expf(row[k] - most);
        sum += row[k];
    }
    for (int other = 16; other; other /= 2) {
        sum += __shfl_xor_sync(~0u, sum, other);
        of_label += __shfl_xor_sync(~0u, of_label, other);
    }
    for (int k = lane; k < c; k += 32) row[k] = (row[k] / sum - (k == labels[i])) / n;
    if (lane == 0) losses[i] = logf(sum) - of_label;
}

// back = (delta @ w2^T), where relu let something through
__global__ void backward(const float* delta, const float* w2, const float* hidden, float* back,
                         int n, int h, int c) {
    int i = blockIdx.y * 16 + threadIdx.y, j = blockIdx.x * 16 + threadIdx.x;
    if (i >= n || j >= h) return;
    float sum = 0;
    for (int k = 0; k < c; k++) sum += delta[i * c + k] * w2[j * c + k];
    back[i * h + j] = hidden[i * h + j] > 0 ? sum : 0;
}

// weights -= lr * input^T @ gradient; the last row of threads has the biases
__global__ void update(const float* input, const float* gradient, float* weights, float* biases,
                       float lr, int n, int rows, int columns) {
    int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
    if (row > rows || column >= columns) return;
    float sum = 0;
    for (int i = 0; i < n; i++)
        sum += (row < rows ? input[i * rows + row] : 1) * gradient[i * columns + column];
    if (row < rows) weights[row * columns + column] -= lr * sum;
    else biases[column] -= lr * sum;
}

__global__ void mean(const float* losses, float* loss, int n) {
    float sum = 0;
    for (int i = threadIdx.x; i < n; i += 32) sum += losses[i];
    for (int other = 16; other; other /= 2) sum += __shfl_xor_sync(~0u, sum, other);
    if (threadIdx.x == 0) loss[0] = sum / n;
}
