"""The attention of the lab's reference beside PyTorch's flash attention.

pytest -m gpu -s tests/gpu/test_labs_attention.py

Both take turns in one process on the same tensors: reference, PyTorch twice, reference.
"""

from __future__ import annotations

import importlib.util
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from warpbook_labs.lab.expressions import value
from warpbook_labs.lab.files import CATALOGUE
from warpbook_labs.lab.triton.rule import read_triton_rule

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.gpu

REFERENCE = CATALOGUE / "attention" / "flash_attention" / "reference.py"
WIDTH = 64
#: heads and rows, the largest last
SIZES = ((64, 2048), (64, 4096), (32, 8192), (16, 16384))
#: at the largest sizes
OF_FLASH = 0.5
ROUNDS = 15
#: what else would do: rows of a program, keys at a time, warps and stages. The last has
#: more shared memory than a lab's launch
TILES = ((128, 64, 8, 2), (64, 64, 4, 2), (128, 32, 4, 3), (128, 64, 4, 3))

Attend = Callable[[Any, Any, Any, Any], None]


def attention(folder: Path, tiles: tuple[int, int, int, int] | None = None) -> Attend:
    """Give the reference as its launch rule launches it, or with other tiles."""
    text = REFERENCE.read_text(encoding="utf-8")
    (launch,) = read_triton_rule(text).launches
    grid, constants = launch.grid, {name: int(v) for name, v in launch.constants}
    if tiles is not None:
        rows, keys, warps, stages = tiles
        text = text.replace("M = tl.constexpr(128)", f"M = tl.constexpr({rows})")
        text = text.replace("\nN = tl.constexpr(64)", f"\nN = tl.constexpr({keys})")
        grid = (f"ceil_div(n, {rows})", "heads")
        constants = {"num_warps": warps, "num_stages": stages}
    file = folder / f"attention_{'_'.join(map(str, tiles or ('own',)))}.py"
    file.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    def attend(q: Any, k: Any, v: Any, out: Any) -> None:
        heads, n, _ = q.shape
        sides = tuple(value(side, {"heads": heads, "n": n}) for side in grid)
        module.attend[sides](q, k, v, out, n, **constants)

    return attend


def flash(q: Any, k: Any, v: Any) -> Any:
    backend = torch.nn.attention.SDPBackend.FLASH_ATTENTION
    with torch.nn.attention.sdpa_kernel(backend):
        return torch.nn.functional.scaled_dot_product_attention(
            q[None], k[None], v[None], is_causal=True
        )[0]


def taken_ms(call: Callable[..., Any], *arguments: Any) -> float:
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    call(*arguments)
    end.record()
    end.synchronize()
    return float(begin.elapsed_time(end))


def drawn(heads: int, n: int) -> list[Any]:
    shape = (heads, n, WIDTH)
    return [torch.randn(shape, device="cuda", dtype=torch.float16) for _ in range(3)]


def test_the_reference_is_at_least_half_as_fast_as_flash_attention(
    tmp_path: Path,
) -> None:
    torch.manual_seed(0)
    named = {"the lab's": attention(tmp_path)}
    named |= {
        "{} x {}, {} warps, {} stages".format(*tiles): attention(tmp_path, tiles)
        for tiles in TILES
    }
    print(f"\n{torch.cuda.get_device_name()}, torch {torch.__version__}")
    print("\n| heads x rows | tiles | ms | TFLOP/s | flash, ms | of flash |")
    print("|---|---|---|---|---|---|")
    ratios = {}
    for heads, n in SIZES:
        q, k, v = drawn(heads, n)
        out = torch.empty_like(q)
        for name, attend in named.items():
            out.zero_()
            attend(q, k, v, out)
            apart = (out.float() - flash(q, k, v).float()).abs().max().item()
            assert apart < 0.01, (heads, n, name, apart)
            own_ms, flash_ms, rounds = [], [], []
            for _ in range(ROUNDS):
                own = [taken_ms(attend, q, k, v, out)]
                other = [taken_ms(flash, q, k, v) for _ in range(2)]
                own.append(taken_ms(attend, q, k, v, out))
                rounds.append(sum(other) / sum(own))
                own_ms += own
                flash_ms += other
            ratios[heads, n, name] = statistics.median(rounds)
            flops = 128 * heads * n * (n + 1)
            ms = statistics.median(own_ms)
            print(
                f"| {heads} x {n:,} | {name} | {ms:.3f} | {flops / ms / 1e9:,.0f} | "
                f"{statistics.median(flash_ms):.3f} | "
                f"{ratios[heads, n, name]:.3f} |"
            )
    for heads, n in SIZES[-2:]:
        assert ratios[heads, n, "the lab's"] >= OF_FLASH


def test_the_reference_is_right_at_lengths_of_every_kind(tmp_path: Path) -> None:
    torch.manual_seed(1)
    attend = attention(tmp_path)
    for heads, n in ((1, 1), (3, 2), (2, 127), (2, 129), (5, 1021), (2, 4099)):
        q, k, v = drawn(heads, n)
        out = torch.full_like(q, float("nan"))
        attend(q, k, v, out)
        scores = q.double() @ k.double().transpose(1, 2) / 8
        mask = torch.ones(n, n, device="cuda", dtype=torch.bool).tril()
        weights = scores.masked_fill(~mask, -torch.inf).softmax(2)
        right = weights @ v.double()
        # weights and result are rounded to FP16
        allowed = 2**-10 * (weights @ v.double().abs()) + 2**-11 * right.abs() + 1e-6
        assert ((out.double() - right).abs() <= allowed).all(), (heads, n)
