"""What of CUDA C++ and its headers the interpreter takes, and how it names the rest."""

from __future__ import annotations

import numpy as np
import pytest

from tests.labs.ptx.kernels import machine, ptx_of
from warpbook_labs.cases import execution
from warpbook_labs.engines.interpreter.jobs import Interpret, Interpreted, RunResult
from warpbook_labs.engines.interpreter.ptx.machine import running
from warpbook_labs.engines.interpreter.ptx.text.errors import PtxError, Unsupported

ASYNC = """
#include <cuda_pipeline.h>
extern "C" __global__ void tiles(const float4* x, float4* y, int n) {
    __shared__ float4 tile[2][32];
    int t = threadIdx.x;
    __pipeline_memcpy_async(&tile[0][t], x + t, 16);
    __pipeline_commit();
    for (int i = 0; i < n; i++) {
        if (i + 1 < n)
            __pipeline_memcpy_async(&tile[(i + 1) % 2][t], x + (i + 1) * 32 + t, 16);
        __pipeline_commit();
        WAIT
        BARRIER
        y[i * 32 + t] = tile[i % 2][31 - t];
        __syncthreads();
    }
}"""


def kinds_of_tiles(wait: str, barrier: str = "__syncthreads();") -> list[str]:
    m = machine(ASYNC.replace("WAIT", wait).replace("BARRIER", barrier))
    values = np.arange(4 * 32 * 5, dtype=np.float32).reshape(5, 32, 4)
    x, y = m.put("x", values), m.empty("y", values.nbytes)
    report = m.run("tiles", (1, 1, 1), (32, 1, 1), [x, y, 5])
    got = m.read(y, np.float32).reshape(5, 32, 4)
    assert np.array_equal(got, values[:, ::-1])
    return list(dict.fromkeys(finding.kind for finding in report.findings))


def test_an_asynchronous_copy_is_there_after_the_wait_and_a_barrier() -> None:
    assert kinds_of_tiles("__pipeline_wait_prior(1);") == []
    assert kinds_of_tiles("") == ["unfinished copy"]
    # the group that was begun last is left, and it is needed at the next turn only
    assert kinds_of_tiles("__pipeline_wait_prior(2);") == ["unfinished copy"]
    assert kinds_of_tiles("__pipeline_wait_prior(1);", "") == ["race"]
    # to wait after the barrier is too late for the other threads
    assert "race" in kinds_of_tiles("", "__syncthreads(); __pipeline_wait_prior(1);")


def test_a_copy_fills_up_with_zeros() -> None:
    m = machine("""
extern "C" __global__ void edge(const float* x, float* y, int n) {
    __shared__ float held[32];
    int t = threadIdx.x, bytes = t < n ? 4 : 0;
    unsigned at = __cvta_generic_to_shared(held + t);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;"
        :: "r"(at), "l"(x + t), "r"(bytes) : "memory");
    asm volatile("cp.async.wait_all;" ::: "memory");
    y[t] = held[t];
}""")
    x, y = m.put("x", np.ones(20, np.float32)), m.empty("y", 128)
    assert m.run("edge", (1, 1, 1), (32, 1, 1), [x, y, 20]).findings == []
    assert m.read(y, np.float32).sum() == 20


def test_cooperative_groups_and_half_precision_come_from_nvidia_s_headers() -> None:
    m = machine("""
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <stdint.h>
#include <assert.h>
namespace cg = cooperative_groups;
__global__ void sum(const __half* x, const __nv_bfloat16* y, float* out) {
    auto block = cg::this_thread_block();
    auto warp = cg::tiled_partition<32>(block);
    auto part = cg::tiled_partition<8>(warp);
    __shared__ float held[8];
    uint32_t t = block.thread_rank();
    float v = __half2float(__hadd(x[t], __float2half(1.0f))) + __bfloat162float(y[t]);
    v = cg::reduce(part, v, cg::plus<float>());
    if (part.thread_rank() == 0) held[part.meta_group_rank() + 4 * (t / 32)] = v;
    block.sync();
    assert(t < 64);
    if (t < 8) out[t] = held[t];
}""")
    x = (np.arange(64) / 4).astype(np.float16)
    y = (np.arange(64, dtype=np.float32).view(np.uint32) >> 16).astype(np.uint16)
    given, more, out = m.put("x", x), m.put("y", y), m.empty("out", 32)
    report = m.run("sum", (1, 1, 1), (64, 1, 1), [given, more, out])
    assert report.findings == []
    want = (x.astype(np.float32) + 1 + np.arange(64)).reshape(8, 8).sum(axis=1)
    assert m.read(out, np.float32).tolist() == want.tolist()


def test_atomics_of_the_standard_library_order_memory() -> None:
    source = """
#include <cuda/atomic>
__global__ void message(int* data, int* flag, int* out) {
    cuda::atomic_ref<int, cuda::thread_scope_SCOPE> seen(*flag);
    if (blockIdx.x == 0) { *data = 42; seen.store(1, cuda::memory_order_release); }
    else { while (seen.load(cuda::memory_order_ACQUIRE) == 0) ; *out = *data; }
}"""
    for scope, acquire, expected in (
        ("device", "acquire", []),
        ("block", "acquire", ["race"]),
        ("device", "relaxed", ["race"]),
    ):
        m = machine(source.replace("SCOPE", scope).replace("ACQUIRE", acquire))
        held = [m.put(name, np.zeros(1, np.int32)) for name in "abc"]
        report = m.run("message", (2, 1, 1), (1, 1, 1), held)
        assert [finding.kind for finding in report.findings][:1] == expected


def test_kernels_are_found_without_extern_c() -> None:
    m = machine("""
namespace mine { __global__ void inner(int* x) { *x = 2; } }
__global__ void outer(int* x) { *x = 1; }
__global__ void twice(int* x) { *x = 3; }
__global__ void twice(float* x) { *x = 4; }
template <int N> __global__ void fixed(int* x) { *x = N; }
template __global__ void fixed<5>(int*);""")
    x = m.empty("x", 4)
    for name, result in (("inner", 2), ("outer", 1), ("fixed", 5)):
        m.run(name, (1, 1, 1), (1, 1, 1), [x])
        assert m.read(x, np.int32)[0] == result
    with pytest.raises(PtxError, match="2 kernels are called `twice`.*extern"):
        m.run("twice", (1, 1, 1), (1, 1, 1), [x])
    with pytest.raises(PtxError, match="no kernel `other` here, only: .*inner"):
        m.run("other", (1, 1, 1), (1, 1, 1), [x])


def test_what_is_not_known_tells_what_it_is_where_and_what_would_do() -> None:
    m = machine("""
extern "C" __global__ void bulk(int* x) {
    asm volatile("cp.async.bulk.commit_group;");
}""")
    x = m.put("x", np.ones(1, np.int32))
    with pytest.raises(Unsupported) as bulk:
        m.run("bulk", (1, 1, 1), (1, 1, 1), [x])
    assert "`cp.async.bulk.commit_group` (line 3 " in str(bulk.value)
    assert bulk.value.line == 3
    assert bulk.value.way_on in str(bulk.value)
    assert bulk.value.way_on.startswith("Copy by `cp.async` of 4 to 16 bytes")


def test_a_run_tells_what_is_not_known_apart_from_what_is_wrong() -> None:
    ptx = ptx_of("""
extern "C" __global__ void bulk(int* x) {
    asm volatile("cp.async.bulk.commit_group;");
}
extern "C" __global__ void fine(int* x) { *x = 1; }""")

    def run(kernel: str, block: int) -> RunResult:
        argument = execution.BufferArgument("x")
        launch = execution.Launch(kernel, (1, 1, 1), (block, 1, 1), (argument,))
        ran = running.do(
            Interpret(ptx, (execution.Run((execution.Memory("x", 4),), (launch,)),))
        )
        assert isinstance(ran, Interpreted)
        return ran.runs[0]

    bulk = run("bulk", 1)
    assert (bulk.status, bulk.line) == ("unsupported", 3)
    assert "`cp.async.bulk.commit_group`" in bulk.refused
    assert run("fine", 1).status == "ran"
    assert run("fine", 4096).status == "refused"


PRODUCER = """
#include <cuda/barrier>
__global__ void hand_over(const int* x, int* y) {
    __shared__ cuda::barrier<cuda::thread_scope_block> full, empty;
    __shared__ int held[32];
    int t = threadIdx.x;
    if (t == 0) { init(&full, 64); init(&empty, 64); }
    __syncthreads();
    for (int i = 0; i < 4; i++)
        if (t < 32) {
            held[t] = x[i * 32 + t];
            (void)full.arrive();
            empty.arrive_and_wait();
        } else {
            FULL
            y[i * 32 + t - 32] = held[63 - t];
            EMPTY
        }
}"""


@pytest.mark.parametrize(
    ("full", "empty", "expected"),
    [
        ("full.arrive_and_wait();", "empty.arrive_and_wait();", []),
        # it does not wait for the numbers
        ("(void)full.arrive();", "empty.arrive_and_wait();", ["race"]),
        # it says that it is done before it is
        ("full.arrive_and_wait(); (void)empty.arrive();", "", ["race"]),
    ],
)
def test_barriers_in_shared_memory_hand_numbers_over(
    full: str, empty: str, expected: list[str]
) -> None:
    m = machine(PRODUCER.replace("FULL", full).replace("EMPTY", empty))
    values = np.arange(128, dtype=np.int32).reshape(4, 32)
    x, y = m.put("x", values), m.empty("y", 512)
    report = m.run("hand_over", (1, 1, 1), (64, 1, 1), [x, y])
    assert [finding.kind for finding in report.findings if finding.kind == "race"][
        :1
    ] == expected
    if not expected:
        assert report.findings == []
        assert np.array_equal(m.read(y, np.int32).reshape(4, 32), values[:, ::-1])
