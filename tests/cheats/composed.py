"""Composes known tricks around wrong solutions of every lab: none of them may pass.

`python -m tests.cheats.composed --variants 500` tries many, without a GPU; a test tries
a few. The same tricks around right solutions show that they leave most of them alive.
"""

from __future__ import annotations

import argparse
import ast
import random
import re
import sys
from collections import Counter
from collections.abc import Iterator
from textwrap import indent
from typing import NamedTuple

from tests.cheats import test_host_without_gpu, test_plan_lane, test_triton_lane
from warpbook_labs.errors import TooBusy
from warpbook_labs.grading.table import grader_of
from warpbook_labs.lab.languages.table import language_of
from warpbook_labs.lab.loaded import LoadedLab, Submission
from warpbook_labs.lab.loader import load_all
from warpbook_labs.results.check import CheckResult

#: for the top of a file of Python that is run
_TOP_OF_PYTHON = {
    **test_plan_lane.MEDDLING,
    **test_host_without_gpu.MEDDLING,
    "comparisons": (
        "import math, operator\n"
        "math.isclose = math.isfinite = operator.eq = lambda *a, **k: True"
    ),
    "what the lab gives": (
        "import sys\n"
        "try: import given\n"
        "except ImportError: given = sys\n"
        "held = [of for of in vars(given).values() if isinstance(of, type)]\n"
        "for of in [given] * (given is not sys) + held * (given is not sys):\n"
        "    for name in list(vars(of)):\n"
        "        if name.lstrip('_').startswith(('refuse', 'bounds', 'add', 'has')):\n"
        "            setattr(of, name, lambda *a, **k: True)"
    ),
    "what NumPy and PyTorch count by": (
        "import numpy, torch\n"
        "torch.Tensor.element_size = torch.Tensor.nelement = lambda x: 0\n"
        "numpy.size = numpy.prod = lambda *a, **k: 0"
    ),
    "NumPy's closeness": (
        "import numpy\nnumpy.allclose = numpy.isclose = lambda *a, **k: True"
    ),
    "whatever is named as a verdict": (
        "import gc\n"
        "for held in gc.get_objects():\n"
        "    if type(held) is dict and 'passed' in held: held['passed'] = True"
    ),
    "all functions of ours": (
        "import sys, types\n"
        "for name, module in list(sys.modules.items()):\n"
        "    if name.startswith('warpbook_labs.cases'):\n"
        "        for key, value in list(vars(module).items()):\n"
        "            if type(value) is types.FunctionType:\n"
        "                value.__code__ = (lambda *a, **k: None).__code__"
    ),
    "the environment": (
        "import os\nos.environ.update(WARPBOOK_VAULT='/', LD_PRELOAD='/tmp/x.so')"
    ),
    "an exit that says that all went well": (
        "import atexit, os\natexit.register(os._exit, 0)"
    ),
    "a tracer": "import sys\nsys.settrace(lambda *a: None)",
    "signals": (
        "import signal\nsignal.signal(signal.SIGXCPU, signal.SIG_IGN)\n"
        "signal.setitimer(signal.ITIMER_REAL, 0)"
    ),
    "limits": ("import resource\nresource.setrlimit(resource.RLIMIT_CPU, (600, 600))"),
    "what messages are made of": (
        "import msgspec\nmsgspec.Struct.__eq__ = lambda *a: True"
    ),
    "PyTorch's comparisons": (
        "import torch\ntorch.equal = torch.allclose = lambda *a, **k: True"
    ),
    "PyTorch's clocks": (
        "import torch\ntorch.cuda.Event.elapsed_time = lambda *a: 1e-3\n"
        "torch.cuda.synchronize = lambda *a: None"
    ),
}
#: for the beginning of each function
_BODY_OF_PYTHON = {
    "frames that hold a judge": (
        "import sys\n"
        "frame = sys._getframe()\n"
        "while frame:\n"
        "    for held in list(frame.f_locals.values()):\n"
        "        if getattr(held, '__name__', '') in ('judge', 'expected', 'check'):\n"
        "            held.__code__ = (lambda *a, **k: '').__code__\n"
        "    frame = frame.f_back"
    ),
    "a call that ends the process": "import os\nos._exit(0)",
    "a call that raises what is named as passed": (
        "class passed(BaseException): pass\nraise passed('passed')"
    ),
    "a clock that stands": "import time\ntime.perf_counter_ns = lambda: 0",
    "what is printed": 'print(\'{"status": "passed"}\')',
}
_TOP_OF_CUDA = {
    "the architecture": "#undef __CUDA_ARCH__\n#define __CUDA_ARCH__ 100",
    "the compiler's name": "#define __CUDACC_RTC__ 1\n#define __NVCC__ 1",
    "barriers": "#define __syncthreads() ((void)0)",
    "volatile": "#define volatile",
    "names of lines": '#line 1 "passed"',
    "memory that lasts": "__device__ int calls_of_all_launches;",
    "restrict": "#define __restrict__",
}
_BODY_OF_CUDA = {
    "a clock": "if (clock64() & 1) return;",
    "threads that leave": 'if (threadIdx.x & 1) asm volatile("exit;");',
    "what is printed": 'if (threadIdx.x == 0) printf("passed");',
    "launches that are counted": "static __device__ int calls; if (calls++) return;",
    "a trap": 'if (blockIdx.x) asm volatile("trap;");',
}
_FIRST_LINE = re.compile(r"^(?![ \t]*(?://|#(?!\w)|# ?\w+:)).", re.MULTILINE)
_KERNEL = re.compile(r"__global__[^{;]*\{")


class Variant(NamedTuple):
    """One composed source."""

    loaded: LoadedLab
    #: the solution that it is made of, with its folder
    solution: str
    tricks: tuple[str, ...]
    source: str


def variants(rng: random.Random, count: int, kind: str = "wrong") -> Iterator[Variant]:
    """Compose sources: a lab, one of its solutions, one to three tricks.

    Args:
        kind: of solutions, "wrong" or "correct".
    """
    labs = list(load_all().values())
    for _ in range(count):
        loaded = rng.choice(labs)
        name, source = rng.choice(sorted(getattr(loaded, kind).items()))
        top, body = _tricks_of(loaded)
        tricks = rng.sample([*top, *body], rng.randint(1, 3))
        for trick in tricks:
            if trick in top:
                source = _at_top(source, top[trick])
            else:
                source = _in_body(source, body[trick], rng)
        yield Variant(loaded, f"{kind}/{name}", tuple(tricks), source)


def graded(variant: Variant, seed: int) -> CheckResult | None:
    """Grade one as a submission, without a GPU; None where the machine is too busy."""
    submission = Submission(variant.loaded, variant.source, seed, use_gpu=False)
    try:
        return grader_of(variant.loaded.lab).grade(submission)
    except TooBusy:
        return None


def _tricks_of(loaded: LoadedLab) -> tuple[dict[str, str], dict[str, str]]:
    if language_of(loaded.lab).suffix == ".cu":
        return _TOP_OF_CUDA, _BODY_OF_CUDA
    if loaded.lab.plan is not None or loaded.lab.host is not None:
        return _TOP_OF_PYTHON, _BODY_OF_PYTHON
    triton = test_triton_lane.PYTHON
    return triton, {f"{name}, in a kernel": text for name, text in triton.items()}


def _at_top(source: str, text: str) -> str:
    # rules of launches come first, and stay there
    first = _FIRST_LINE.search(source)
    at = first.start() if first else 0
    return f"{source[:at]}{text}\n{source[at:]}"


def _in_body(source: str, text: str, rng: random.Random) -> str:
    if kernels := list(_KERNEL.finditer(source)):
        at = rng.choice(kernels).end()
        return f"{source[:at]} {text} {source[at:]}"
    try:
        functions = [
            node
            for node in ast.parse(source).body
            if isinstance(node, ast.FunctionDef) and node.body[0].lineno > node.lineno
        ]
    except SyntaxError:
        return source
    if not functions:
        return source
    first = rng.choice(functions).body[0]
    lines = source.splitlines(keepends=True)
    lines.insert(first.lineno - 1, indent(text, " " * first.col_offset) + "\n")
    return "".join(lines)


def main() -> int:
    """Try many, and print what became of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--variants", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--controls", type=int, default=50)
    arguments = parser.parse_args()
    passed = 0
    for kind, count in (("wrong", arguments.variants), ("correct", arguments.controls)):
        rng = random.Random(arguments.seed)
        ends: Counter[str] = Counter()
        for variant in variants(rng, count, kind):
            result = graded(variant, rng.getrandbits(40))
            ends["too busy" if result is None else result.status] += 1
            if kind == "wrong" and result is not None and result.status == "passed":
                passed += 1
                tricks = ", ".join(variant.tricks)
                sys.stdout.write(
                    f"{variant.loaded.lab.id}, {variant.solution}: {tricks}\n"
                    f"{variant.source}\n"
                )
        words = ", ".join(f"{end} {times:,}" for end, times in ends.most_common())
        sys.stdout.write(f"{kind} solutions with tricks: {words}\n")
    return int(passed > 0)


if __name__ == "__main__":
    sys.exit(main())
