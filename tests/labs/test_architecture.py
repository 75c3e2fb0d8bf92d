"""A CUDA source that asks which GPU it is for is not supported without one."""

from __future__ import annotations

import pytest

from tests.lab_checks import check
from warpbook_labs.compiler.cuda_headers import headers_for
from warpbook_labs.compiler.jobs import Compile, Compiled
from warpbook_labs.course.session import find
from warpbook_labs.results.check import CheckResult
from warpbook_labs.sandbox import parent

KERNEL = """// launch: add_relu<<<ceil_div(n, 256), 256>>>(x, y, out, n)
TOP
extern "C" __global__
void add_relu(const float* x, const float* y, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    BODY
    if (i < n) { float s = x[i] + y[i]; out[i] = s < 0 ? 0 : s; }
}
"""
WRONG = "if (i < n) out[i] = 42;"


def checked(top: str, body: str) -> CheckResult:
    lab = find("vector-add")
    source = KERNEL.replace("TOP", top).replace("BODY", body)
    return check(lab, source)


#: at the top, in the kernel, and the line that is named; 0 where none can be
ASKS = {
    "a condition": ("", f"\n#if __CUDA_ARCH__ != 900\n{WRONG} return;\n#endif", 7),
    "a number": ("", f"if (__CUDA_ARCH__ != 900) {{ {WRONG} return; }}", 6),
    "a list": ("", "int all[] = {__CUDA_ARCH_LIST__}; if (all[0] < 900) return;", 6),
    "a pasted name": (
        "#define BOTH(a, b) a##b\n#define IS BOTH(__CUDA_, ARCH__)",
        "if (IS < 900) return;",
        7,
    ),
    "a spliced name": ("", "if (__CUDA_\\\nARCH__ < 900) return;", 6),
    "a text": (
        "#define TEXT_(x) #x\n#define TEXT(x) TEXT_(x)",
        "if (TEXT(__CUDA_ARCH__)[0] != '9') return;",
        7,
    ),
    "a text of any length": (
        "#define TEXT_(...) #__VA_ARGS__\n#define TEXT(...) TEXT_(__VA_ARGS__)",
        "if (TEXT(__CUDA_ARCH__)[0] == '8') return;",
        7,
    ),
    "a name that only the check could know": (
        "",
        "\n#ifndef __CUDA_ARCH___of_headers\n#if __CUDA_ARCH__ != 900\n"
        f"{WRONG} return;\n#endif\n#line 12\n#endif",
        8,
    ),
    "what only the check defines": (
        "",
        "\n#ifndef __nvvm_\\\nreflect\n#if __CUDA_ARCH__ != 900\n"
        f"{WRONG} return;\n#endif\n#line 13\n#endif",
        7,
    ),
    "a header's own mark": (
        "#include <cooperative_groups.h>",
        f"\n#ifndef _CG_HAS_CLUSTER_GROUP\n{WRONG} return;\n#endif",
        7,
    ),
    "a template": (
        "template <int N> __device__ int f() { return N; }",
        "if (f<__CUDA_ARCH__>() < 900) return;",
        6,
    ),
    "the compiler's reflection": (
        'extern "C" __device__ int __nvvm_reflect(const char*);',
        'if (__nvvm_reflect("__CUDA_ARCH") < 900) return;',
        2,
    ),
    "a target": (
        "#include <nv/target>",
        f"NV_IF_ELSE_TARGET(NV_PROVIDES_SM_90, (), ({WRONG} return;))",
        6,
    ),
    "a target, without a header": (
        "",
        "NV_IF_TARGET(NV_IS_EXACTLY_SM_80, (return;))",
        6,
    ),
    "the compiler's version": (
        "#if __CUDACC_VER_MAJOR__ < 12\n#define OLD\n#endif",
        "",
        2,
    ),
}


@pytest.mark.parametrize("how", ASKS)
def test_who_asks_for_the_architecture_is_told_with_the_line(how: str) -> None:
    top, body, line = ASKS[how]
    result = checked(top, body)
    assert result.status == "unsupported", result.message
    assert (result.line or 0) == line and not result.cases
    assert "not supported without a GPU" in result.message


@pytest.mark.parametrize(
    "top",
    [
        "#ifdef __CUDA_ARCH__\n#define ON_GPU 1\n#endif",
        "// __CUDA_ARCH__ >= 800\n#include <cuda_fp16.h>\n__device__ __half h;",
        "#include <cooperative_groups.h>\nnamespace cg = cooperative_groups;\n"
        "template <class T> __global__ void ranks(T* x) {\n"
        "    auto block = cg::this_thread_block(); block.sync();\n"
        "    *x = block.thread_rank();\n}\n"
        "template __global__ void ranks<int>(int*);",
        "#define BOTH(a, b) a##b\nstatic __device__ int BOTH(co, unt);",
        "namespace { __device__ int counted; }",
    ],
)
def test_who_does_not_is_checked_as_ever(top: str) -> None:
    result = checked(top, "")
    assert result.status == "passed", (result.message, result.log)


def test_for_a_gpu_the_same_source_is_compiled_for_that_gpu() -> None:
    top, body, _ = ASKS["a condition"]
    source = KERNEL.replace("TOP", top).replace("BODY", body)
    for architecture, is_wrong in (("sm_80", True), ("sm_90", False)):
        job = Compile(source, architecture, headers=headers_for(source))
        compiled = parent.run(job).result
        assert isinstance(compiled, Compiled)
        assert ("1109917696" in compiled.ptx) == is_wrong
