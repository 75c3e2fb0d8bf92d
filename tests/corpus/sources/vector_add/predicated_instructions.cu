// All in PTX without a branch: loads, addition and store stand under one predicate.
// launch: add_relu<<<ceil_div(n, 64), 64>>>(x, y, out, n)

extern "C" __global__ void add_relu(const float* x, const float* y, float* out, int n) {
    asm volatile(
        "{\n\t"
        ".reg .u32 %%i, %%b, %%s;\n\t"
        ".reg .u64 %%at, %%p;\n\t"
        ".reg .f32 %%a, %%c, %%zero;\n\t"
        ".reg .pred %%there, %%keep, %%drop;\n\t"
        "mov.u32 %%i, %%tid.x;\n\t"
        "mov.u32 %%b, %%ctaid.x;\n\t"
        "mov.u32 %%s, %%ntid.x;\n\t"
        "mad.lo.u32 %%i, %%b, %%s, %%i;\n\t"
        "setp.lt.u32 %%there, %%i, %3;\n\t"
        "mov.f32 %%zero, 0f00000000;\n\t"
        "mul.wide.u32 %%at, %%i, 4;\n\t"
        "add.u64 %%p, %0, %%at;\n\t"
        "@%%there ld.global.nc.f32 %%a, [%%p];\n\t"
        "add.u64 %%p, %1, %%at;\n\t"
        "@%%there ld.global.nc.f32 %%c, [%%p];\n\t"
        "@%%there add.rn.f32 %%a, %%a, %%c;\n\t"
        "add.u64 %%p, %2, %%at;\n\t"
        // unordered or not below: NaN is kept
        "@%%there setp.geu.and.f32 %%keep|%%drop, %%a, %%zero, %%there;\n\t"
        "@!%%there setp.ne.u32 %%keep, 0, 0;\n\t"
        "@!%%there setp.ne.u32 %%drop, 0, 0;\n\t"
        "@%%keep st.global.f32 [%%p], %%a;\n\t"
        "@%%drop st.global.f32 [%%p], %%zero;\n\t"
        "}" ::"l"(x), "l"(y), "l"(out), "r"(n)
        : "memory");
}
