"""Operations of CuPy and JAX that run one by one, though each could fuse them.

CuPy's kernels say operation and dtypes, and their threads how many elements there are.
Which array goes into which kernel is in no trace: kernels of one size that follow
one another are taken as a chain.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from warpbook_monitors import units
from warpbook_profiler.advice.chip import Span
from warpbook_profiler.advice.code.library_code import cupy_code, jax_code
from warpbook_profiler.advice.evidence import Evidence
from warpbook_profiler.advice.kernel_runs import drop, launched, runs
from warpbook_profiler.advice.proposal import Proposal
from warpbook_profiler.advice.ways import Ways
from warpbook_profiler.events.columns import NONE, Int64s, distinct
from warpbook_profiler.facts.array_names import is_xla
from warpbook_profiler.techniques.gpu.pointwise import FUSION
from warpbook_profiler.techniques.technique import ChangeKind, Technique

_UFUNC = re.compile(r"cupy_(\w+?)__(\w+)$")
#: in a name, what is an array; "float" and "int" are Python's numbers
_ARRAY = re.compile(r"(bool|u?int|float|complex)(8|16|32|64|128)?$")
_NUMBERS = ("float", "int", "complex")
#: two that follow one another may have nothing to do with each other
_LEAST_CHAIN = 3
_LEAST_SHARE = 0.05
#: of JAX's operations, below which nobody waits for them
_LEAST_EAGER = 16
#: kernels of one compiled function are numbered, and launched fast
_LEAST_UNNUMBERED, _LEAST_GAP_NS = 0.9, 8_000
_NUMBERED = re.compile(r".*[._]\d+$")
JAX_JIT = "jax-jit"


def library_chains(evidence: Evidence) -> Iterator[Proposal]:
    """Propose to fuse CuPy's operations, and to compile JAX's."""
    yield from _of_cupy(evidence)
    yield from _of_jax(evidence)


def _of_cupy(evidence: Evidence) -> Iterator[Proposal]:
    gpu = evidence.gpu
    is_ufunc = np.array([bool(_UFUNC.match(name)) for name in gpu.names] or [False])
    order = evidence.once(launched)
    chosen = is_ufunc[gpu.name]
    chains = runs(evidence, order, chosen, _LEAST_CHAIN, _threads(evidence))
    time_ns = sum(evidence.time_ns(chain) for chain in chains)
    if evidence.share(time_ns) < _LEAST_SHARE:
        return
    ways = Ways(evidence)
    for chain in chains:
        span = _fused(evidence, chain).at_most(evidence.time_ns(chain))
        ways.resize(chain[:1], span)
    drop(evidence, ways, np.concatenate([chain[1:] for chain in chains]))
    longest = chains[0]
    names = [gpu.names[at] for at in gpu.name[longest].tolist()]
    done = [match[1] for name in names if (match := _UFUNC.match(name))]
    shown = ", ".join(done[:5]) + (", …" if len(done) > 5 else "")
    kernels = sum(map(len, chains))
    source = cupy_code(evidence.code, done)
    yield Proposal(
        name="cupy-fuse",
        title="Fuse the operations into one kernel with cupy.fuse.",
        evidence=(
            f"{kernels:,} CuPy kernels pass over arrays of one size one after the "
            f"other ({shown}), which takes {units.share(evidence.share(time_ns))} of "
            "the bare run."
        ),
        ways=ways,
        reason="This holds if each step uses the result of the one before.",
        line=None if source is None else source.line,
        code="" if source is None else source.code,
    )


def _of_jax(evidence: Evidence) -> Iterator[Proposal]:
    gpu = evidence.gpu
    made = [is_xla(name) for name in gpu.names]
    numbered = [bool(_NUMBERED.match(name)) for name in gpu.names]
    order = evidence.once(launched)
    of_xla = np.array(made or [False])[gpu.name]
    ours = order[of_xla[order]]
    if len(ours) < _LEAST_EAGER or len(distinct(gpu.name[ours])) < 2:
        return
    if 1 - np.array(numbered)[gpu.name[ours]].mean() < _LEAST_UNNUMBERED:
        return
    api, launch = evidence.calls.api, evidence.calls.launch[ours]
    # all kernels of a compiled function may have one launch, that of a graph
    if len(distinct(launch)) < len(ours):
        return
    between_ns = api.start_ns[launch[1:]] - api.end_ns[launch[:-1]]
    if np.median(between_ns) < _LEAST_GAP_NS:
        return
    ways = Ways(evidence)
    rest = [np.zeros(0, np.int64)]
    for chain in runs(evidence, order, of_xla, 2):
        longest = int(np.argmax(gpu.duration_ns[chain]))
        rest.append(np.delete(chain, longest))
    drop(evidence, ways, np.concatenate(rest))
    source = jax_code(evidence.code)
    yield Proposal(
        name=JAX_JIT,
        title="Compile the operations as one function with jax.jit.",
        evidence=(
            f"{len(ours):,} JAX operations each run as a separate function, with "
            f"{np.median(between_ns) / 1e3:.0f} µs of host time between two."
        ),
        ways=ways,
        is_bound=True,
        reason="How much XLA fuses is known only after it has compiled the function.",
        line=None if source is None else source.line,
        code="" if source is None else source.code,
    )


def _threads(evidence: Evidence) -> Int64s:
    """Give each kernel's threads, which are as many as CuPy's arrays have elements."""
    threads = [shape.blocks * shape.threads_per_block for shape in evidence.gpu.shapes]
    # the last is that of kernels whose launch was not recorded
    return np.array([*threads, NONE], np.float64)[evidence.gpu.shape].astype(np.int64)


def _fused(evidence: Evidence, chain: Int64s) -> Span:
    """Give how long one kernel takes for a chain.

    CuPy gives each thread one element, whatever the kernel does: how fast that is on
    this GPU the kernels of the chain say.
    """
    gpu = evidence.gpu
    sizes = [_item_bytes(gpu.names[at]) for at in gpu.name[chain].tolist()]
    moved = np.array([max(sum(size), 1) for size in sizes], np.float64)
    took_ns = gpu.duration_ns[chain].astype(np.float64)
    # the last of each name is its result; of those before, one is an earlier result
    inputs = sum(sizes[0][:-1]) + sum(sum(size[1:-1]) for size in sizes[1:])
    most = inputs + (sizes[-1][-1] if sizes[-1] else 0)
    slowest = float(np.max(took_ns / moved))
    usual_ns = float(np.max(took_ns))
    return Span(0.9 * float(np.min(took_ns)), usual_ns, max(most * slowest, usual_ns))


def _item_bytes(name: str) -> list[int]:
    """Give the size of an element of each array of a kernel."""
    match = _UFUNC.match(name)
    words = match[2].split("_") if match else []
    sizes = []
    for word in words:
        if word not in _NUMBERS and (kind := _ARRAY.match(word)):
            sizes.append(int(kind[2] or 8) // 8)
    return sizes


TECHNIQUE = Technique(
    changes=(
        ChangeKind(
            names=("cupy-fuse",),
            what=(
                "three or more elementwise CuPy kernels over arrays of one size: "
                "`cupy.fuse`"
            ),
            time="predicted",
            answers=FUSION,
            lab="roofline",
        ),
        ChangeKind(
            names=(JAX_JIT,),
            what="JAX operations that each run as a separate function: `jax.jit`",
            time="a bound",
            answers=FUSION,
            lab="cuda-graphs",
        ),
    ),
    rule=library_chains,
    untried="The state of CuPy and JAX can't be restored after a run.",
)
