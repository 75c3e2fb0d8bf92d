// Inline PTX: special registers are read, mad computes, red adds.
// launch: number<<<(ceil_div(w, 32), h, d), 32>>>(code, visits, d, h, w)

extern "C" __global__ void number(int* code, int* visits, int d, int h, int w) {
    int t, b, y, z, x, i;
    asm("mov.u32 %0, %%tid.x;" : "=r"(t));
    asm("mov.u32 %0, %%ctaid.x;" : "=r"(b));
    asm("mov.u32 %0, %%ctaid.y;" : "=r"(y));
    asm("mov.u32 %0, %%ctaid.z;" : "=r"(z));
    asm("mad.lo.s32 %0, %1, 32, %2;" : "=r"(x) : "r"(b), "r"(t));
    if (x >= w) return;
    asm("mad.lo.s32 %0, %1, %2, %3;" : "=r"(i) : "r"(z), "r"(h), "r"(y));
    i = i * w + x;
    code[i] = 1000000 * z + 1000 * y + x;
    asm volatile("red.global.add.s32 [%0], 1;" ::"l"(visits + i) : "memory");
}
