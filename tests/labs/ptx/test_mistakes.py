"""What the interpreter finds wrong with kernels, right though their results may be."""

from __future__ import annotations

import numpy as np
import pytest

from tests.labs.ptx.kernels import machine
from warpbook_labs.results.findings import Report


def kinds(report: Report) -> list[str]:
    return [finding.kind for finding in report.findings]


def tree_sum(first_barrier: str, barrier: str) -> tuple[Report, float]:
    """Sum 64 numbers in shared memory."""
    m = machine(f"""
extern "C" __global__ void tree(const float* x, float* out) {{
    __shared__ float part[64];
    int t = threadIdx.x;
    part[t] = x[t];
    {first_barrier}
    for (int step = 32; step > 0; step /= 2) {{
        if (t < step)
            part[t] += part[t + step];
        {barrier}
    }}
    if (t == 0) out[0] = part[0];
}}""")
    x, out = m.put("x", np.arange(64, dtype=np.float32)), m.empty("out", 4)
    report = m.run("tree", (1, 1, 1), (64, 1, 1), [x, out])
    return report, float(m.read(out, np.float32)[0])


def test_a_kernel_without_mistakes_is_told_none() -> None:
    report, total = tree_sum("__syncthreads();", "__syncthreads();")
    assert (report.findings, total) == ([], 2016.0)


@pytest.mark.parametrize(
    ("first", "later"), [("", "__syncthreads();"), ("__syncthreads();", "")]
)
def test_a_missing_barrier_is_a_race_with_its_lines(first: str, later: str) -> None:
    report, _ = tree_sum(first, later)
    races = [finding for finding in report.findings if finding.kind == "race"]
    assert races
    assert "of the shared `part`" in races[0].message
    assert "on line 9" in races[0].message
    assert all(race.line in (5, 9, 12) for race in races)


def test_a_barrier_of_the_warp_is_enough_within_a_warp() -> None:
    source = """
extern "C" __global__ void swap(int* x) {
    __shared__ int held[32];
    held[threadIdx.x] = x[threadIdx.x];
    BARRIER
    x[threadIdx.x] = held[31 - threadIdx.x];
}"""
    for barrier, expected in (("__syncwarp();", []), ("", ["race"])):
        m = machine(source.replace("BARRIER", barrier))
        x = m.put("x", np.arange(32, dtype=np.int32))
        report = m.run("swap", (1, 1, 1), (32, 1, 1), [x])
        assert kinds(report)[:1] == expected
    # two warps need the block's
    m = machine(
        source.replace("BARRIER", "__syncwarp();")
        .replace("31 -", "63 -")
        .replace("[32]", "[64]")
    )
    x = m.put("x", np.arange(64, dtype=np.int32))
    assert kinds(m.run("swap", (1, 1, 1), (64, 1, 1), [x]))[0] == "race"


def test_blocks_that_write_the_same_cell_race_unless_they_do_it_atomically() -> None:
    m = machine("""
extern "C" __global__ void plain(int* x) { x[threadIdx.x] += 1; }
extern "C" __global__ void atomic(int* x) { atomicAdd(x + threadIdx.x, 1); }
extern "C" __global__ void same(int* x) { x[0] = 7; }""")
    x = m.put("x", np.zeros(32, np.int32))
    report = m.run("plain", (2, 1, 1), (32, 1, 1), [x])
    assert "race" in kinds(report)
    assert "byte 0 of `x`" in report.findings[0].message
    assert m.run("atomic", (3, 1, 1), (32, 1, 1), [x]).findings == []
    assert m.run("same", (3, 1, 1), (32, 1, 1), [x]).findings == []


def test_the_last_block_may_read_what_others_have_told_all() -> None:
    source = """
extern "C" __global__ void total(const int* x, int* parts, unsigned* done, int* out) {
    __shared__ bool last;
    parts[blockIdx.x] = x[blockIdx.x];
    FENCE
    if (threadIdx.x == 0)
        last = atomicAdd(done, 1u) == gridDim.x - 1;
    __syncthreads();
    if (last) {
        int sum = 0;
        for (int i = 0; i < gridDim.x; i++) sum += ((volatile int*)parts)[i];
        *out = sum;
    }
}"""
    for fence, expected in (("__threadfence();", []), ("", ["race"])):
        m = machine(source.replace("FENCE", fence))
        x = m.put("x", np.arange(5, dtype=np.int32))
        parts, done = m.empty("parts", 20), m.put("done", np.zeros(1, np.uint32))
        out = m.empty("out", 4)
        report = m.run("total", (5, 1, 1), (1, 1, 1), [x, parts, done, out])
        assert kinds(report)[:1] == expected
        assert m.read(out, np.int32)[0] == 10


def test_threads_at_different_barriers_are_told() -> None:
    m = machine("""
extern "C" __global__ void apart(int* x) {
    if (threadIdx.x < 32) { x[threadIdx.x] = 1; __syncthreads(); }
    else { x[threadIdx.x] = 2; __syncthreads(); x[threadIdx.x] = 3; }
}""")
    x = m.put("x", np.zeros(64, np.int32))
    apart = m.run("apart", (1, 1, 1), (64, 1, 1), [x])
    assert kinds(apart) == ["divergent barrier"]
    assert "line 3" in apart.findings[0].message
    assert "line 4" in apart.findings[0].message


def test_threads_that_returned_are_not_waited_for_and_those_that_went_on_are_told() -> (
    None
):
    source = """
extern "C" __global__ void part(int* x, int n) {
    __shared__ int held[64];
    int t = threadIdx.x;
    if (t >= n) return;
    held[t] = x[t];
    __syncthreads();
    for (int turn = 0; turn < TURNS; turn++) {
        x[t] += held[n - 1 - t];
        __syncthreads();
    }
    x[t] += 1;
}"""
    m = machine(source.replace("TURNS", "3"))
    x = m.put("x", np.zeros(64, np.int32))
    assert m.run("part", (1, 1, 1), (64, 1, 1), [x, 40]).findings == []
    m = machine(source.replace("TURNS", "(t & 32 ? 1 : 3)"))
    x = m.put("x", np.zeros(64, np.int32))
    (finding,) = m.run("part", (1, 1, 1), (64, 1, 1), [x, 64]).findings[:1]
    assert (finding.kind, finding.line) == ("divergent barrier", 10)
    assert "32 of the 64 threads of block (0, 0, 0) have gone past" in finding.message


def test_named_barriers_wait_for_as_many_warps_as_they_name() -> None:
    source = """
extern "C" __global__ void hand_over(int* x) {
    __shared__ int held[64];
    int t = threadIdx.x;
    if (t < 64) {
        held[t] = x[t] + 1;
        asm volatile("bar.arrive 1, 128;" ::: "memory");
    } else if (t < 128) {
        asm volatile("BARRIER" ::: "memory");
        x[t] = held[127 - t];
    }
    if (t < 64) asm volatile("bar.sync 2, 64;");
}"""
    for barrier, expected in (("bar.sync 1, 128;", []), ("bar.sync 3, 64;", ["race"])):
        m = machine(source.replace("BARRIER", barrier))
        x = m.put("x", np.arange(160, dtype=np.int32))
        report = m.run("hand_over", (2, 1, 1), (160, 1, 1), [x])
        # the second block reads what the first has written
        races = [finding for finding in report.findings if "shared" in finding.message]
        assert [race.kind for race in races][:1] == expected


@pytest.mark.parametrize("number", ["1 + t / 64", "1"])
def test_a_barrier_at_which_more_wait_than_it_counts_may_mix_them(number: str) -> None:
    source = f"""
extern "C" __global__ void halves(int* out) {{
    __shared__ int held[128];
    int t = threadIdx.x, number = {number};
    held[t] = t;
    asm volatile("bar.sync %0, 64;" ::"r"(number) : "memory");
    out[t] = held[t ^ 32];
}}"""
    m = machine(source)
    report = m.run("halves", (1, 1, 1), (128, 1, 1), [m.empty("out", 512)])
    assert set(kinds(report)) == ({"race"} if number == "1" else set())
    for finding in report.findings:
        assert "barrier on line 6 more threads wait than it counts" in finding.message


def test_an_access_beyond_a_buffer_names_thread_buffer_and_line() -> None:
    m = machine("""
extern "C" __global__ void copy(const float* from, float* to) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    to[i] = from[i];
}""")
    source = m.put("from", np.ones(100, np.float32))
    target = m.empty("to", 400)
    report = m.run("copy", (1, 1, 1), (128, 1, 1), [source, target])
    (finding,) = report.findings
    assert (finding.kind, finding.line) == ("out of bounds", 4)
    assert "thread (100, 0, 0)" in finding.message
    assert "0 bytes past the end of `from` (400 bytes)" in finding.message
    assert "27 more threads" in finding.message


def test_an_access_beyond_shared_memory_and_an_odd_address_are_told() -> None:
    m = machine("""
extern "C" __global__ void beyond(int* x, int at) {
    __shared__ int held[9];
    held[threadIdx.x] = 1; held[8] = 2; __syncthreads();
    x[threadIdx.x] = held[at];
}
extern "C" __global__ void odd(const char* x, int* y) {
    y[0] = *(const int*)(x + 2);
}""")
    x = m.put("x", np.zeros(8, np.int32))
    # memory is kept in pieces of 16 bytes
    for at in (9, 1000):
        beyond = m.run("beyond", (1, 1, 1), (8, 1, 1), [x, at])
        assert kinds(beyond) == ["out of bounds"]
        words = f"byte {4 * at:,} of shared memory, of which there are 36"
        assert words in beyond.findings[0].message
    odd = m.run("odd", (1, 1, 1), (1, 1, 1), [x, x])
    assert kinds(odd) == ["misaligned"]
    assert "byte 2 of `x`, which is no multiple of 4" in odd.findings[0].message


def test_reading_what_nobody_has_written_is_told() -> None:
    m = machine("""
extern "C" __global__ void half(int* out) {
    __shared__ int held[64];
    if (threadIdx.x < 32) held[threadIdx.x] = 1;
    __syncthreads();
    out[threadIdx.x] = held[threadIdx.x] + out[threadIdx.x];
}""")
    out = m.empty("out", 256)
    report = m.run("half", (1, 1, 1), (64, 1, 1), [out])
    assert set(kinds(report)) == {"uninitialised read"}
    text = " ".join(finding.message for finding in report.findings)
    assert "byte 128 of shared memory" in text and "byte 0 of `out`" in text


def test_an_exchange_reads_only_if_its_old_number_is_wanted() -> None:
    m = machine("""
extern "C" __global__ void blind(int* out) { atomicExch(out + threadIdx.x, 7); }
extern "C" __global__ void curious(int* out, int* old) {
    old[threadIdx.x] = atomicExch(out + threadIdx.x, 7);
}
extern "C" __global__ void adds(int* out) { atomicAdd(out + threadIdx.x, 7); }""")
    out, fresh, old, left = (
        m.empty(name, 128) for name in ("out", "fresh", "old", "left")
    )
    assert m.run("blind", (1, 1, 1), (32, 1, 1), [out]).findings == []
    assert m.read(out, np.int32).tolist() == [7] * 32
    curious = m.run("curious", (1, 1, 1), (32, 1, 1), [fresh, old])
    assert kinds(curious) == ["uninitialised read"]
    adds = m.run("adds", (1, 1, 1), (32, 1, 1), [left])
    assert kinds(adds) == ["uninitialised read"]


def test_a_warp_that_waits_for_threads_that_never_come_is_told() -> None:
    m = machine("""
extern "C" __global__ void stuck(int* x) {
    if (threadIdx.x < 16) x[0] = __shfl_sync(0xffffffff, x[1], 0);
    else { while (((volatile int*)x)[2] == 0) __nanosleep(10); }
}
extern "C" __global__ void wrong(int* x) {
    if (threadIdx.x < 16) x[0] = __shfl_sync(0xffffffff, x[1], 0);
    __syncthreads();
}""")
    x = m.put("x", np.zeros(4, np.int32))
    forever = m.run("stuck", (1, 1, 1), (32, 1, 1), [x], max_steps=20_000)
    assert "deadlock" in kinds(forever)
    wrong = m.run("wrong", (1, 1, 1), (32, 1, 1), [x])
    assert "deadlock" in kinds(wrong)


def test_a_thread_that_its_own_mask_leaves_out_is_told() -> None:
    m = machine("""
extern "C" __global__ void half(int* x) {
    x[threadIdx.x] = __shfl_sync(0x0000ffff, x[threadIdx.x], 0);
}
extern "C" __global__ void halves(int* x) {
    unsigned mask = threadIdx.x < 16 ? 0x0000ffff : 0xffff0000;
    x[threadIdx.x] = __shfl_sync(mask, x[threadIdx.x], 0, 16);
    if (threadIdx.x < 16) x[threadIdx.x] += __shfl_sync(0x0000ffff, 1, 0);
}""")
    x = m.put("x", np.arange(32, dtype=np.int32))
    [finding] = m.run("half", (1, 1, 1), (32, 1, 1), [x]).findings
    assert "thread (16, 0, 0)" in finding.message and "its mask" in finding.message
    assert m.run("halves", (1, 1, 1), (32, 1, 1), [x]).findings == []
    assert m.read(x, np.int32).tolist() == [1] * 16 + [16] * 16


def test_an_assertion_that_does_not_hold_names_it() -> None:
    m = machine("""
#define assert(e) ((e) ? (void)0 : __assertfail(#e, "kernel.cu", __LINE__, "f", 1))
extern "C" __device__ void __assertfail(
    const char*, const char*, unsigned, const char*, size_t);
extern "C" __global__ void check(int* x) { assert(x[threadIdx.x] < 5); }""")
    x = m.put("x", np.array([1, 2, 9, 3], np.int32))
    (finding,) = m.run("check", (1, 1, 1), (4, 1, 1), [x]).findings
    assert finding.kind == "assertion"
    assert (
        "thread (2, 0, 0)" in finding.message
        and "x[threadIdx.x] < 5" in finding.message
    )


def test_an_end_that_early_and_late_threads_share_is_no_barrier_missed() -> None:
    m = machine("""
extern "C" __global__ void rows(const float* x, float* y, int n) {
    __shared__ float held[64];
    int t = threadIdx.x;
    if (t >= n) { y[t] = 0; return; }
    held[t] = x[t];
    __syncthreads();
    y[t] = held[n - 1 - t];
}""")
    x, y = m.put("x", np.ones(64, np.float32)), m.empty("y", 256)
    assert m.run("rows", (1, 1, 1), (64, 1, 1), [x, y, 40]).findings == []
    assert m.read(y, np.float32).sum() == 40
