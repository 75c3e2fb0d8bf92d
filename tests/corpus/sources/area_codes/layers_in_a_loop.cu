// A thread for each row and column, which loops over the layers and carries its index along.
// launch: number<<<(ceil_div(w, 64), ceil_div(h, 2)), (64, 2)>>>(code, visits, d, h, w)

extern "C" __global__ void number(int* code, int* visits, int d, int h, int w) {
    int x = blockIdx.x * 64 + threadIdx.x, y = blockIdx.y * 2 + threadIdx.y;
    if (x < w && y < h) {
        int layer = h * w, value = 1000 * y + x;
        for (int i = y * w + x, end = d * layer; i < end; i += layer, value += 1000000) {
            code[i] = value;
            ++visits[i];
        }
    }
}
