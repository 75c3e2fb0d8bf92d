"""Sources for `vector-add` that try to get marks that they have not earned.

Each is graded by both lanes: the GPU, in the trusted process, and the interpreter.
"""

from __future__ import annotations

RIGHT = "float sum = x[i] + y[i]; out[i] = sum < 0 ? 0 : sum;"
#: only when it is timed
TIMED = "n > 1000000"


def source(
    body: str = RIGHT,
    rule: str = "add_relu<<<ceil_div(n, 256), 256>>>(x, y, out, n)",
    before: str = "",
    bounds: str = "",
) -> str:
    return f"""// launch: {rule}
{before}
extern "C" __global__ void {bounds}
add_relu(const float* x, const float* y, float* out, int n) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x, t = threadIdx.x;
    if (i < n) {{ {body} }}
}}
"""


#: they compute what is asked, and must pass
HONEST = {
    "one element each": source(),
    "a stride of the grid": source(
        "for (; i < n; i += gridDim.x * blockDim.x) {" + RIGHT + "}",
        "add_relu<<<1024, 256>>>(x, y, out, n)",
    ),
}

#: right or not, they fail on the GPU: the words of one of these are in the reason
CAUGHT_BY_THE_GPU = {
    "writes nothing": ("", "nothing"),
    "takes what lies in the output": ("out[i] = out[i];", "nothing"),
    "NaN as a wildcard": ("out[i] = __int_as_float(0x7fffffff);", "expected"),
    "zeros": ("out[i] = 0;", "expected"),
    "works for the cases that are shown": (
        f"if (n == 256 || n == 1000 || n == 77) {{ {RIGHT} }} else out[i] = 0;",
        "expected",
    ),
    "all but the last element": (f"if (i < n - 1) {{ {RIGHT} }}", "nothing"),
    "half precision": (
        "short a, b, c; float s; "
        'asm("cvt.rn.f16.f32 %0, %1;" : "=h"(a) : "f"(x[i])); '
        'asm("cvt.rn.f16.f32 %0, %1;" : "=h"(b) : "f"(y[i])); '
        'asm("add.f16 %0, %1, %2;" : "=h"(c) : "h"(a), "h"(b)); '
        'asm("cvt.f32.f16 %0, %1;" : "=f"(s) : "h"(c)); out[i] = s < 0 ? 0 : s;',
        "expected",
    ),
    "writes behind its output": (f"{RIGHT} if (i < 4) out[n + i] = 0;", "behind"),
    "writes before its output": (f"{RIGHT} if (i < 4) out[-1 - i] = 0;", "before"),
    "writes far into the neighbour": (
        f"{RIGHT} if (i < 9) out[40000 + n + 16 * i] = 0;",
        "beside its buffers|input|stopped|crashed",
    ),
    "spoils its input": (f"{RIGHT} ((float*)x)[i] = 0;", "input"),
    "looks for the answer in the memory around": (
        "float s = 0; for (int k = 1; k < 12000; k++) { float v = out[-k]; "
        "if (v == v && v > s) s = v; } out[i] = s;",
        "expected|stopped",
    ),
    "sprays all the memory around": (
        f"{RIGHT} if (i == 0) for (long long k = 1; k < 64; k++) "
        "*(int*)((char*)out + (k << 21)) = 0;",
        "beside its buffers|stopped|crashed",
    ),
    "asks the clock": ("if (clock64() % 3) {" + RIGHT + "} else out[i] = 1;", "right"),
    "traps on hidden sizes": (f"if (n == 1021) __trap(); {RIGHT}", "stopped"),
    "an address of nobody": (f"{RIGHT} *(volatile int*)16 = 0;", "stopped"),
    "an address that is not aligned": (
        f"{RIGHT} *(volatile int*)((char*)out + 1) = 0;",
        "stopped",
    ),
    "a loop without end": ("while (1) ((volatile float*)out)[i] = 0;", "end within"),
    "waits for a block that never comes": (
        "while (((volatile int*)out)[0] != 77777);",
        "end within",
    ),
    "a barrier that half of it misses": (
        f"if (t < 16) while (1) __syncthreads(); {RIGHT}",
        "end within",
    ),
}
#: as above, but what is odd is outside of the body
CAUGHT_AS_A_WHOLE = {
    "a stack without end": (
        source(
            f"{RIGHT} out[i] += deep(i);",
            before="__device__ __noinline__ int deep(int k) {"
            " volatile int own[64]; own[k % 64] = k;"
            " return k < 0 ? own[0] : deep(k + 1) + own[k % 64]; }",
        ),
        "stopped|launch",
    ),
    "launches more threads than its bounds": (
        source(bounds="__launch_bounds__(32)"),
        "launched",
    ),
    "a block of 2048": (source(rule="add_relu<<<1, 2048>>>(x, y, out, n)"), "launch"),
    "a gigabyte of shared memory": (
        source(rule="add_relu<<<1, 32, 1073741824>>>(x, y, out, n)"),
        "shared memory|launch",
    ),
    "two billion blocks that wait": (
        source(rule="add_relu<<<2147483647, 1024>>>(x, y, out, n)").replace(
            "if (i < n)", "__nanosleep(1000000); if (i < n)"
        ),
        "end within|longer",
    ),
}
#: right on this GPU by luck, or harmless there: the interpreter tells
CAUGHT_BY_THE_INTERPRETER = {
    "a race that is right by luck": (
        "__shared__ float held[256]; held[t] = x[i]; "
        "float other = held[t ^ 1]; "
        + RIGHT
        + " if (other == 1.2345678f) out[i] += 1;",
        "race",
    ),
    "reads beyond its input": (
        "float more = x[n + i]; " + RIGHT + " if (more == 1.2345678f) out[i] += 1;",
        "out of bounds",
    ),
    "a barrier that some threads miss": (
        "if (t < 16) __syncthreads(); " + RIGHT,
        "divergent barrier",
    ),
    "barriers that threads meet apart": (
        "if (t < 16) __syncthreads(); " + RIGHT + " __syncthreads();",
        "divergent barrier",
    ),
    "memory in strides": (
        "int j = (i * 33) % n; if (n % 3 == 0 || n % 11 == 0) j = i; "
        "float sum = x[j] + y[j]; out[j] = sum < 0 ? 0 : sum;",
        "sectors",
    ),
}
#: right while they are checked, wrong while they are timed
CAUGHT_WHEN_TIMED = {
    "does nothing when it is timed": f"if (!({TIMED})) {{ {RIGHT} }}",
    "does half of it when it is timed": (f"if (!({TIMED}) || i < n / 2) {{ {RIGHT} }}"),
    "all but one element when it is timed": (
        f"if (!({TIMED}) || i != 7654321) {{ {RIGHT} }}"
    ),
    "all but the last element when it is timed": (
        f"if (!({TIMED}) || i != n - 1) {{ {RIGHT} }}"
    ),
    "traps when it is timed": f"if ({TIMED}) __trap(); {RIGHT}",
    "never ends when it is timed": f"if ({TIMED}) while (1) out[i] = 0; {RIGHT}",
    "writes behind its output when it is timed": (
        f"{RIGHT} if ({TIMED} && i < 4) out[n + i] = 0;"
    ),
    "writes its input when it is timed": (
        f"{RIGHT} if ({TIMED} && i == n - 1) ((float*)x)[i] = 3;"
    ),
    "takes the output of the call before": (
        f"if ({TIMED}) {{ if (out[i] != out[i]) out[i] = out[-16777216ll]; }} "
        f"else {{ {RIGHT} }}"
    ),
}
_SEEN = "__device__ int calls; __device__ float kept[4096]; __device__ float first;"
#: right always, since what they keep is gone at the next call
GAIN_NOTHING = {
    "counts its calls and rests after the third": source(
        "if (*(volatile int*)&calls < 3) {" + RIGHT + "} if (i == 0) calls++;",
        before=_SEEN,
    ),
    "keeps results for the same first input": source(
        "if (first != 0 && first == x[0] && i < 4096) out[i] = kept[i]; else {"
        + RIGHT
        + " if (i < 4096) kept[i] = out[i]; } if (i == n - 1) first = x[0];",
        before=_SEEN,
    ),
    "asks the cache to keep its inputs": source(
        'asm volatile("prefetch.global.L2::evict_last [%0];" :: "l"(x + i)); '
        'asm volatile("prefetch.global.L2::evict_last [%0];" :: "l"(y + i)); ' + RIGHT
    ),
}
#: they must not compile, and must tell nothing of the machine
NOT_COMPILED = {
    "a file of the system": source(before='#include "/etc/passwd"'),
    "a file of the process": source(before='#include "/proc/self/environ"'),
    "kernels that launch kernels": source(
        "if (i == 0) add_relu<<<1, 1>>>(x, y, out, n);" + RIGHT
    ),
    "a bomb of templates": source(
        "F<1>::u q;",
        before="template<int N> struct F { typedef F<N+1> t; typedef t::u u; };",
    ),
    "assembly with a file in it": source(
        'asm volatile(".file 9 \\"/etc/passwd\\"\\n.include \\"/etc/passwd\\";");'
        + RIGHT
    ),
    "assembly that holds a file": source(
        'asm volatile(".incbin \\"/etc/passwd\\";");' + RIGHT
    ),
    "assembly that closes the kernel": source(
        'asm volatile("} .visible .entry other() { ret;");' + RIGHT
    ),
    "half a gigabyte of shared memory": source(
        "__shared__ volatile float all[1 << 27]; all[t] = 1; out[i] = all[t];"
    ),
}
#: right, and a nuisance: they end, whatever their status is
END_CLEARLY = {
    "a flood of words": source(
        'for (int k = 0; k < 2000; k++) printf("%0100d%0100d", k, k);' + RIGHT
    ),
    "a megabyte of each thread's own": source(
        "volatile char own[200000]; own[i % 199999] = 1; " + RIGHT
    ),
    "memory that is never given back": source(
        "for (int k = 0; k < 64; k++) malloc(1 << 12);" + RIGHT
    ),
}
