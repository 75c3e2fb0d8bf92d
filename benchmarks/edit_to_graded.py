"""From a changed source to its card, by language; of CUDA beside `load_inline`.

    python benchmarks/edit_to_graded.py [--repeats 3] [--write docs/benchmarks.md]

Wants a GPU, nvcc, Triton and PyTorch. The source of a lab's reference is changed each
time, within its functions, so that nothing has been compiled before. Ours is timed from
the source to the card: for `check` with the public cases, for `submit` with hidden and
large ones and with its speed, both with the interpreter beside the GPU. What the GPU
reaches was measured before, once for a sitting. The peer's time is that of one call of
`torch.utils.cpp_extension.load_inline` with the same kernel: nothing is run of it. It
comes last, since a call can take a minute: ours is complete where it is cut off.
"""

from __future__ import annotations

import ast
import re
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "labs"), str(ROOT / "monitors")]

from torch.utils.cpp_extension import load_inline

from benchmarks.report import ask, spread, tell
from warpbook_labs.course.session import check_public, find, submit
from warpbook_labs.course.store import Store

_KERNEL = re.compile(
    r"__global__\s+void\s+(?:__launch_bounds__\([^)]*\)\s*)?(\w+)\(([^)]*)\)"
)
CUDA = ("vector-add", "matmul")
PYTHON = (
    "fused-norm",
    "flash-attention",
    "mixed-precision",
    "cuda-graphs",
    "int8-linear",
)


def changed(language: str, source: str, number: int) -> str:
    """Give the source with another text in each function: what it computes stays."""
    if language == "cuda":
        return f"{source}\n__device__ int edit_{number}() {{ return {number}; }}\n"
    lines = source.splitlines()
    functions = [
        n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.FunctionDef)
    ]
    for function in sorted(functions, key=lambda n: -n.body[0].lineno):
        first = function.body[0]
        lines.insert(first.lineno - 1, f"{' ' * first.col_offset}# edit {number}")
    return "\n".join(lines) + "\n"


def compiled_s(lab: str, source: str, number: int) -> float:
    """Have PyTorch compile the kernel, with a function in C++ that launches it."""
    kernel = _KERNEL.search(source)
    if kernel is None:
        raise SystemExit(f"{lab}: there is no kernel in its reference.")
    names = [word.split()[-1].lstrip("*") for word in kernel[2].split(",")]
    given = [
        f"{name}.data_ptr<float>()" if "*" in whole else name
        for name, whole in zip(names, kernel[2].split(","), strict=True)
    ]
    parameters = [
        f"torch::Tensor {name}" if "*" in whole else f"int64_t {name}"
        for name, whole in zip(names, kernel[2].split(","), strict=True)
    ]
    call = f"void run({', '.join(parameters)})"
    host = f"{call} {{ {kernel[1]}<<<1, 32>>>({', '.join(given)}); }}"
    with tempfile.TemporaryDirectory() as folder:
        begun_s = time.perf_counter()
        load_inline(
            name=f"edited_{lab.replace('-', '_')}_{number}",
            cpp_sources=f"{call};",
            cuda_sources=f"#include <torch/extension.h>\n{source}\n{host}",
            functions=["run"],
            build_directory=folder,
        )
        return time.perf_counter() - begun_s


def main() -> None:
    """Measure ours in every lab, then compile by the peer; print each row at once."""
    options = ask(__doc__, repeats=3)
    lines = [
        "| lab | language | `check` to its card, s | `submit` to its card, s |",
        "|---|---|---|---|",
    ]
    submits_s: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder) / "labs.db")
        for lab in (*CUDA, *PYTHON):
            loaded = find(lab)
            language = loaded.lab.language
            # the limits of the GPU are measured here, and kept for the sitting
            first = submit(store, loaded, changed(language, loaded.reference, 0))
            print(lab, first.result.message, flush=True)
            checks_s, submits_s[lab] = [], []
            for number in range(1, options.repeats + 1):
                source = changed(language, loaded.reference, number)
                begun_s = time.perf_counter()
                check_public(loaded, source)
                checks_s.append(time.perf_counter() - begun_s)
                begun_s = time.perf_counter()
                card = submit(store, loaded, source)
                submits_s[lab].append(time.perf_counter() - begun_s)
                device = card.result.device
                if device is None or (loaded.lab.speed and device.speed is None):
                    raise SystemExit(f"It was not graded: {card.result.message}")
            cells = [spread(samples, 2) for samples in (checks_s, submits_s[lab])]
            lines.append(f"| {lab} | {language} | {' | '.join(cells)} |")
            print(lines[-1], flush=True)
    intro = f"Median (lowest to highest) of {options.repeats} changes of a reference."
    tell(options, "From a changed source to its card", "\n".join([intro, "", *lines]))

    lines = ["| lab | `load_inline`, s | times `submit` |", "|---|---|---|"]
    for lab in CUDA:
        peer_s = compiled_s(lab, changed("cuda", find(lab).reference, 1), 1)
        ratios = spread([peer_s / ours_s for ours_s in submits_s[lab]], 1)
        lines.append(f"| {lab} | {peer_s:.1f} | {ratios} |")
        print(lines[-1], flush=True)
    intro = (
        "`load_inline` compiles the same kernel, called once: the ranges are of the "
        f"{options.repeats} `submit` above."
    )
    tell(options, "The same kernels by `load_inline`", "\n".join([intro, "", *lines]))


if __name__ == "__main__":
    main()
