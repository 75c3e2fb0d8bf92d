"""Litmus tests: what orders memory on a GPU, and what only seems to."""

from __future__ import annotations

import numpy as np
import pytest

from tests.labs.ptx.kernels import machine
from warpbook_labs.results.findings import Report

FENCE = "__threadfence();"

MESSAGE = """
extern "C" __global__ void message(int* data, FLAG* flag, int* out) {
    if (blockIdx.x == 0) {
        data[0] = 42;
        WRITER
        TELL
    } else {
        WAIT
        READER
        out[0] = data[0];
    }
}"""
#: by the kind of flag: its type, how it is told and waited for
FLAGS = {
    "volatile": ("volatile int", "*flag = 1;", "while (*flag == 0) ;"),
    "atomic": ("int", "atomicExch(flag, 1);", "while (atomicAdd(flag, 0) == 0) ;"),
}


def kinds(report: Report) -> list[str]:
    return [finding.kind for finding in report.findings]


def run(source: str, blocks: int, threads: int, **buffers: object) -> Report:
    """Launch the only kernel on int32 buffers of these values."""
    m = machine(source)
    held = [
        m.put(name, np.asarray(values, np.int32)) for name, values in buffers.items()
    ]
    return m.run(m.kernels[0], (blocks, 1, 1), (threads, 1, 1), held)


def message(flag: str, writer: str, reader: str, **other: str) -> Report:
    type_, tell, wait = FLAGS[flag]
    source = MESSAGE
    for name, text in {
        "FLAG": type_, "TELL": tell, "WAIT": wait, "WRITER": writer, "READER": reader,
    }.items():  # fmt: skip
        source = source.replace(name, other.get(name, text))
    return run(source, 2, 1, data=[0], flag=[0], out=[0])


@pytest.mark.parametrize("flag", FLAGS)
def test_a_message_needs_a_fence_of_who_writes_and_of_who_reads(flag: str) -> None:
    assert message(flag, FENCE, FENCE).findings == []
    assert kinds(message(flag, "", FENCE)) == ["race"]
    unfenced = message(flag, FENCE, "")
    assert kinds(unfenced) == ["race"]
    assert "does no `__threadfence()` after it" in unfenced.findings[0].message


def test_a_fence_for_the_block_tells_other_blocks_nothing() -> None:
    block = "__threadfence_block();"
    assert kinds(message("atomic", block, FENCE)) == ["race"]
    assert kinds(message("atomic", FENCE, block)) == ["race"]


def test_a_fence_whose_flag_nobody_reads_orders_nothing() -> None:
    assert kinds(message("atomic", FENCE, FENCE, WAIT="")) == ["race"]


def test_releases_and_acquires_need_no_fence_beside_them() -> None:
    store = "__nv_atomic_store_n(flag, 1, __NV_ATOMIC_{}, __NV_THREAD_SCOPE_DEVICE);"
    load = (
        "while (!__nv_atomic_load_n(flag, __NV_ATOMIC_{}, __NV_THREAD_SCOPE_DEVICE)) ;"
    )
    for store_kind, load_kind, expected in (
        ("RELEASE", "ACQUIRE", []),
        ("RELAXED", "ACQUIRE", ["race"]),
        ("RELEASE", "RELAXED", ["race"]),
    ):
        report = message(
            "atomic", "", "", TELL=store.format(store_kind), WAIT=load.format(load_kind)
        )
        assert kinds(report) == expected


STORE_BUFFER = """
extern "C" __global__ void both(int* x, int* y, int* out) {
    if (blockIdx.x == 0) { WRITE_X FENCE out[0] = READ_Y; }
    else { WRITE_Y FENCE out[1] = READ_X; }
}"""


@pytest.mark.parametrize("fence", ["", FENCE])
def test_store_buffering_by_plain_accesses_is_a_race_with_a_fence_too(
    fence: str,
) -> None:
    plain = STORE_BUFFER.replace("WRITE_X", "*x = 1;").replace("WRITE_Y", "*y = 1;")
    plain = plain.replace("READ_X", "*x").replace("READ_Y", "*y")
    report = run(plain.replace("FENCE", fence), 2, 1, x=[0], y=[0], out=[0, 0])
    assert kinds(report)[:1] == ["race"]


def test_store_buffering_by_atomics_with_fences_is_no_race() -> None:
    atomic = STORE_BUFFER
    for name in "xy":
        atomic = atomic.replace(f"WRITE_{name.upper()}", f"atomicExch({name}, 1);")
        atomic = atomic.replace(f"READ_{name.upper()}", f"atomicAdd({name}, 0)")
    report = run(atomic.replace("FENCE", FENCE), 2, 1, x=[0], y=[0], out=[0, 0])
    assert report.findings == []


LOCK = """
extern "C" __global__ void count(int* lock, int* total) {
    bool done = false;
    while (!done)
        if (atomicCAS(lock, 0, 1) == 0) {
            ENTER
            *total = *total + 1;
            LEAVE
            atomicExch(lock, 0);
            done = true;
        }
}"""


@pytest.mark.parametrize(
    ("enter", "leave", "expected"),
    [(FENCE, FENCE, []), (FENCE, "", ["race"]), ("", FENCE, ["race"])],
)
def test_a_lock_needs_a_fence_where_it_is_taken_and_where_it_is_freed(
    enter: str, leave: str, expected: list[str]
) -> None:
    source = LOCK.replace("ENTER", enter).replace("LEAVE", leave)
    report = run(source, 4, 2, lock=[0], total=[0])
    assert kinds(report)[:1] == expected


LAST = """
__device__ unsigned done = 0;
extern "C" __global__ void total(const int* x, KIND int* part, int* out) {
    __shared__ int held[64];
    __shared__ bool last;
    int t = threadIdx.x;
    held[t] = x[blockIdx.x * 64 + t];
    __syncthreads();
    for (int half = 32; half; half /= 2) {
        if (t < half) held[t] += held[t + half];
        __syncthreads();
    }
    if (t == 0) {
        part[blockIdx.x] = held[0];
        FENCE
        last = atomicInc(&done, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (last) {
        held[t] = t < gridDim.x ? part[t] : 0;
        __syncthreads();
        if (t == 0) {
            int sum = 0;
            for (int i = 0; i < gridDim.x; i++) sum += held[i];
            *out = sum;
        }
    }
}"""


@pytest.mark.parametrize("kind", ["", "volatile"])
@pytest.mark.parametrize(("fence", "expected"), [(FENCE, []), ("", ["race"])])
def test_the_last_block_needs_a_fence_before_the_counter(
    kind: str, fence: str, expected: list[str]
) -> None:
    source = LAST.replace("KIND", kind).replace("FENCE", fence)
    report = run(source, 40, 64, x=np.ones(40 * 64), part=np.zeros(40), out=[0])
    assert kinds(report)[:1] == expected


def test_a_thread_s_fence_is_its_own_until_a_barrier_hands_it_on() -> None:
    source = """
extern "C" __global__ void total(int* data, int* flag, int* out) {
    int t = threadIdx.x;
    if (blockIdx.x == 0) {
        data[t] = t;
        BARRIER
        if (t == 0) { __threadfence(); atomicExch(flag, 1); }
    } else {
        if (t == 0) { while (atomicAdd(flag, 0) == 0) ; __threadfence(); }
        __syncthreads();
        out[t] = data[63 - t];
    }
}"""
    for barrier, expected in (("__syncthreads();", []), ("", ["race"])):
        report = run(
            source.replace("BARRIER", barrier),
            2, 64, data=np.zeros(64), flag=[0], out=np.zeros(64),
        )  # fmt: skip
        assert kinds(report)[:1] == expected


WARP_SUM = """
extern "C" __global__ void sum(const int* x, int* out) {
    __shared__ KIND int part[64];
    int t = threadIdx.x;
    part[t] = x[t];
    __syncthreads();
    if (t < 32) {
        int v = part[t];
        STEP(32) STEP(16) STEP(8) STEP(4) STEP(2) STEP(1)
    }
    if (t == 0) *out = part[0];
}"""
CAREFUL = "#define STEP(n) v += part[t + n]; __syncwarp(); part[t] = v; __syncwarp();"


def test_volatile_puts_no_lanes_of_a_warp_in_an_order() -> None:
    careless = "#define STEP(n) part[t] = v = v + part[t + n];"
    for kind in ("", "volatile"):
        source = WARP_SUM.replace("KIND", kind)
        x = np.arange(64)
        assert run(CAREFUL + source, 1, 64, x=x, out=[0]).findings == []
        report = run(careless + source, 1, 64, x=x, out=[0])
        assert kinds(report)[:1] == ["race"]
    assert "`volatile` does not" in report.findings[0].message


def test_a_shuffle_orders_no_memory() -> None:
    source = """
extern "C" __global__ void swap(int* x) {
    __shared__ int held[32];
    held[threadIdx.x] = x[threadIdx.x];
    int zero = __shfl_sync(~0u, 0, 0) + __any_sync(~0u, 0);
    BARRIER
    x[threadIdx.x] = held[31 - threadIdx.x] + zero;
}"""
    for barrier, expected in (("", ["race"]), ("__syncwarp();", [])):
        report = run(source.replace("BARRIER", barrier), 1, 32, x=np.arange(32))
        assert kinds(report)[:1] == expected


def test_a_barrier_of_some_lanes_orders_these_alone() -> None:
    source = """
extern "C" __global__ void some(int* x) {
    __shared__ int held[32];
    int t = threadIdx.x;
    held[t] = x[t];
    if (t < 16) { __syncwarp(0xffff); x[t] = held[FROM]; }
}"""
    x = np.arange(32)
    assert run(source.replace("FROM", "15 - t"), 1, 32, x=x).findings == []
    assert kinds(run(source.replace("FROM", "31 - t"), 1, 32, x=x))[:1] == ["race"]


def test_a_shuffle_from_a_lane_that_gives_nothing_is_told_if_it_matters() -> None:
    source = """
extern "C" __global__ void sum(int* x, int* out) {
    int t = threadIdx.x, v = t < 20 ? x[t] : 0;
    if (t >= LIVE) return;
    for (int by = FROM; by; by /= 2) v += __shfl_down_sync(MASK, v, by);
    if (t == 0) *out = v;
}"""

    def shuffled(live: str, begin: str, mask: str) -> Report:
        text = source.replace("LIVE", live).replace("FROM", begin)
        return run(text.replace("MASK", mask), 1, 32, x=np.arange(20), out=[0])

    assert shuffled("32", "16", "~0u").findings == []
    # lanes 16 to 19 have ended, and their numbers are missing
    (finding,) = shuffled("16", "16", "~0u").findings
    assert (finding.kind, finding.line) == ("inactive lane", 5)
    assert "takes by a shuffle on line 5 the number of lane 16" in finding.message
    # what the upper lanes take from nobody does not come to lane 0
    assert shuffled("8", "4", "0xff").findings == []


def test_an_atomic_for_the_block_is_none_for_others() -> None:
    source = 'extern "C" __global__ void count(int* x) { ATOMIC(x, 1); }'
    assert run(source.replace("ATOMIC", "atomicAdd"), 3, 8, x=[0]).findings == []
    report = run(source.replace("ATOMIC", "atomicAdd_block"), 3, 8, x=[0])
    assert kinds(report)[:1] == ["race"]
    assert "(`_block`)" in report.findings[0].message


def test_blocks_look_back_along_a_chain_of_flags() -> None:
    source = """
extern "C" __global__ void scan(const int* x, int* prefix, int* flag, int* out) {
    int b = blockIdx.x;
    if (threadIdx.x == 0) {
        int before = 0;
        if (b > 0) {
            while (((volatile int*)flag)[b - 1] == 0) ;
            __threadfence();
            before = prefix[b - 1];
        }
        prefix[b] = before + x[b];
        FENCE
        ((volatile int*)flag)[b] = 1;
    }
    __syncthreads();
    out[b] = prefix[b];
}"""
    for fence, expected in ((FENCE, []), ("", ["race"])):
        zeros = np.zeros(200)
        report = run(
            source.replace("FENCE", fence),
            200, 32, x=np.ones(200), prefix=zeros, flag=zeros, out=zeros,
        )  # fmt: skip
        assert kinds(report)[:1] == expected


@pytest.mark.parametrize("takes_a_ticket", [True, False])
def test_a_block_may_wait_only_for_blocks_that_have_begun(takes_a_ticket: bool) -> None:
    ticket = "if (threadIdx.x == 0) b = atomicAdd(next, 1);" if takes_a_ticket else ""
    source = f"""
extern "C" __global__ void pass_on(int* flag, int* next) {{
    int b = blockIdx.x;
    {ticket}
    if (threadIdx.x == 0) {{
        if (b > 0)
            while (((volatile int*)flag)[b - 1] == 0) ;
        __threadfence();
        ((volatile int*)flag)[b] = 1;
    }}
}}"""
    report = run(source, 300, 32, flag=np.zeros(300), next=np.zeros(1))
    assert kinds(report) == ([] if takes_a_ticket else ["deadlock"])
    for finding in report.findings:
        assert "waits on line 7" in finding.message and "on line 3" in finding.message


def test_threads_that_wait_for_nobody_are_told_at_once() -> None:
    source = """
extern "C" __global__ void wait(int* flag) {
    while (((volatile int*)flag)[0] == 0) ;
}"""
    report = run(source, 1, 32, flag=np.zeros(1))
    assert kinds(report) == ["deadlock"]
    assert "on line 3" in report.findings[0].message


def test_a_value_that_comes_with_its_flag_may_be_waited_for_by_volatile_reads() -> None:
    source = """
extern "C" __global__ void scan(const int* x, long long* status, int* out) {
    volatile long long* all = status;
    int b = blockIdx.x, sum = x[b];
    all[b] = 1ll << 62 | sum;
    for (int p = b - 1; p >= 0;) {
        long long got = all[p];
        GUARD
        sum += (int)got;
        if (got < 0) break;
        p--;
    }
    all[b] = 1ll << 63 | sum;
    out[b] = sum;
}"""
    for guard, expected in (("if (got == 0) continue;", []), ("", ["race"])):
        m = machine(
            source.replace("GUARD", guard).replace("if (got < 0) break;", guard)
        )
        x, out = m.put("x", np.ones(50, np.int32)), m.empty("out", 200)
        status = m.put("status", np.zeros(50, np.int64))
        report = m.run("scan", (50, 1, 1), (1, 1, 1), [x, status, out])
        assert kinds(report)[:1] == expected


@pytest.mark.parametrize(("fence", "expected"), [(FENCE, []), ("", ["race"])])
def test_a_fence_of_the_turn_before_is_none_of_this_turn(
    fence: str, expected: list[str]
) -> None:
    source = """
extern "C" __global__ void turns(int* data, int* flag, int* out) {
    volatile int* held = data;
    for (int turn = 1; turn < 4; turn++)
        if (blockIdx.x == 0) {
            held[turn] = turn;
            if (turn < 2) __threadfence();
            FENCE
            atomicExch(flag, turn);
        } else {
            while (atomicAdd(flag, 0) < turn) ;
            __threadfence();
            out[turn] = held[turn];
        }
}"""
    report = run(
        source.replace("FENCE", fence),
        2,
        1,
        data=np.zeros(4),
        flag=[0],
        out=np.zeros(4),
    )
    assert kinds(report)[:1] == expected


def test_blocks_meet_at_a_barrier_of_the_grid_again_and_again() -> None:
    source = """
__device__ unsigned arrived = 0;
__device__ volatile unsigned phase = 0;
__device__ void meet() {
    __syncthreads();
    if (threadIdx.x == 0) {
        unsigned before = phase;
        FENCE
        if (atomicAdd(&arrived, 1) == gridDim.x - 1) {
            arrived = 0;
            FENCE
            phase = before + 1;
        } else
            while (phase == before) ;
        __threadfence();
    }
    __syncthreads();
}
extern "C" __global__ void blur(int* a, int* b, int* c, int* d) {
    int n = gridDim.x * blockDim.x, i = blockIdx.x * blockDim.x + threadIdx.x;
    b[i] = a[(i + 1) % n] + a[(i + n - 1) % n];
    meet();
    c[i] = b[(i + 1) % n] + b[(i + n - 1) % n];
    meet();
    d[i] = c[(i + 1) % n] + c[(i + n - 1) % n];
}"""
    for fence, expected in ((FENCE, []), ("", ["race"])):
        zeros = np.zeros(256)
        report = run(
            source.replace("FENCE", fence), 8, 32, a=zeros, b=zeros, c=zeros, d=zeros
        )
        assert kinds(report)[:1] == expected


SHIFTED = """
#define AT(p) ((unsigned)__cvta_generic_to_shared(p))
__device__ void arrive(void* barrier) {
    asm volatile("mbarrier.arrive.shared.b64 _, [%0];" :: "r"(AT(barrier)) : "memory");
}
__device__ void wait(void* barrier, unsigned parity) {
    unsigned over = 0;
    while (!over)
        asm volatile("{ .reg .pred p;"
            "mbarrier.test_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
            : "=r"(over) : "r"(AT(barrier)), "r"(parity) : "memory");
}
extern "C" __global__ void shifted(int* out) {
    __shared__ int held[256];
    __shared__ unsigned long long place;
    int t = threadIdx.x;
    if (t == 0)
        asm volatile("mbarrier.init.shared.b64 [%0], COUNT;" :: "r"(AT(&place)));
    held[t] = t;
    __syncthreads();
    for (int round = 0; round < 4; round++) {
        int next = held[(t + 1) % 256];
        FIRST
        held[t] = next;
        SECOND
    }
    out[blockIdx.x * 256 + t] = held[t];
}"""
#: all arrive, or one for its warp
ALL = "arrive(&place); wait(&place, {0});"
LEADER = "{1} if (t % 32 == 0) arrive(&place); wait(&place, {0});"


@pytest.mark.parametrize(
    ("how", "count", "is_right"),
    [
        (ALL, 256, True),
        (LEADER.replace("{1}", "__syncwarp();"), 8, True),
        (LEADER.replace("{1}", ""), 8, False),
        ("arrive(&place);", 256, False),
    ],
)
def test_phases_of_an_mbarrier_put_in_order_who_arrives_and_who_waits(
    how: str, count: int, is_right: bool
) -> None:
    first, second = how.replace("{0}", "0"), how.replace("{0}", "1")
    source = SHIFTED.replace("COUNT", str(count))
    m = machine(source.replace("FIRST", first).replace("SECOND", second))
    out = m.empty("out", 4 * 2048)
    # as many threads as would take minutes if each had a clock of its own
    report = m.run("shifted", (8, 1, 1), (256, 1, 1), [out])
    kinds = {finding.kind for finding in report.findings}
    assert kinds == (set() if is_right else {"race"})
    if is_right:
        want = np.tile((np.arange(256) + 4) % 256, 8)
        np.testing.assert_array_equal(m.read(out, np.int32), want)
