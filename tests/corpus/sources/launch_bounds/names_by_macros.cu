// No array: 32 variables whose names a macro makes, and fma in PTX whose sum is read and written.
// launch: sums<<<ceil_div(n, 256), 256>>>(x, w, out, n, k)

#define EIGHT(F, a) F(a##0) F(a##1) F(a##2) F(a##3) F(a##4) F(a##5) F(a##6) F(a##7)
// in octal, so that names are digits
#define EACH(F) EIGHT(F, 0) EIGHT(F, 01) EIGHT(F, 02) EIGHT(F, 03)
#define BEGIN(j) float s##j = 0;
#define ADD(j) asm("fma.rn.f32 %0, %1, %2, %0;" : "+f"(s##j) : "f"(v), "f"(__ldg(w + j)));
#define STORE(j) out[(size_t)j * n] = s##j;

extern "C" __global__ void __launch_bounds__(256, 4) sums(const float* x, const float* w, float* out, int n, int k) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= n) return;
    x += i, out += i;
    EACH(BEGIN)
    for (const float* end = w + 32 * k; w != end; w += 32, x += n) {
        float v = *x;
        EACH(ADD)
    }
    EACH(STORE)
}
