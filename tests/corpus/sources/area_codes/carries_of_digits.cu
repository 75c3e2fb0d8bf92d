// Codes are counted up like digits: a step of the grid is added, with carries from side to side.
// launch: number<<<4, 96>>>(code, visits, d, h, w)

struct Place {
    int x, y, z;
    __device__ Place& operator+=(const Place& step) { x += step.x, y += step.y, z += step.z; return *this; }
    // each digit is below twice its side, so that one carry is enough
    __device__ void carry(int w, int h) {
        if (x >= w) x -= w, y++;
        if (y >= h) y -= h, z++;
    }
    __device__ operator int() const { return 1000000 * z + 1000 * y + x; }
};

__device__ Place place_of(int i, int h, int w) { return {i % w, i / w % h, i / w / h}; }

extern "C" __global__ void number(int* code, int* visits, int d, int h, int w) {
    const int step = blockDim.x * gridDim.x, first = blockIdx.x * blockDim.x + threadIdx.x;
    const Place far = place_of(step, h, w);
    Place place = place_of(first, h, w);
    for (int i = first; i < d * h * w; i += step) {
        code[i] = place;
        visits[i]++;
        (place += far).carry(w, h);
    }
}
