"""The Triton that is checked without a GPU is a list; nothing else is reached."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from types import CodeType

import pytest

from tests.lab_checks import check
from warpbook_labs.cases.sampling import hidden_cases, public_cases
from warpbook_labs.errors import BadSource, NotHere
from warpbook_labs.lab.files import CATALOGUE
from warpbook_labs.lab.loaded import LoadedLab
from warpbook_labs.lab.triton import language
from warpbook_labs.lab.triton.source import translated
from warpbook_labs.lab.triton.tuning import configured

LAB = "thread-and-block"

_CORPUS = Path(__file__).parents[1] / "corpus" / "sources"
KERNEL = """# launch: f[ceil_div(n, 512)](x, y, out, n, SIZE=512)
import triton
import triton.language as tl

ONE = tl.constexpr(1)


@triton.jit
def plus(a, b):
    return a + b


@triton.jit
def f(x, y, out, n, SIZE: tl.constexpr):
    i = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    v = tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n)
    LINE
    tl.store(out + i, tl.where(v < 0, 0.0, v), mask=i < n)
"""


def sources() -> Iterator[Path]:
    for folder in (CATALOGUE, _CORPUS):
        for path in sorted(folder.rglob("*.py")):
            if "triton" in path.read_text() and "jit" in path.read_text():
                yield path


def codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes(constant)


@pytest.mark.parametrize("path", list(sources()), ids=lambda path: path.name)
def test_what_is_run_names_kernels_constants_and_what_it_is_given(path: Path) -> None:
    """Attributes and imports have names in Python's code, too: there are none."""
    for source in configured(path.read_text()):
        kernels, module, _ = translated(source)
        constants = {
            target.id
            for made in module.body
            if isinstance(made, ast.Assign)
            for target in made.targets
            if isinstance(target, ast.Name)
        }
        for code in codes(compile(module, "made", "exec")):
            names = {name for name in code.co_names if not name.startswith(".")}
            assert names <= kernels.keys() | constants
            assert not code.co_freevars and not code.co_cellvars


#: what would tell the interpreter from the compiler, or reach what is not Triton's
REFUSED = [
    *("v = tl.constexpr(5) is not 5", "v = n is SIZE", "v = n in (1, 2)"),
    *("t = tl", "t = triton", "t = tl.load", "plus(tl, v)", "plus(tl.math, v)"),
    *("t = tl.math", "t = tl.math.wraps(v)", "t = tl.math.inspect", "tl.wraps(v)"),
    *("t = tl.core.tensor", "t = tl.semantic", "t = tl.tensor", "t = tl.builtins"),
    *("t = v.handle", "t = v.__class__", "t = v.to.__self__", "t = plus.fn"),
    *("t = isinstance(v, int)", "t = type(v)", "t = id(v)", "t = hash(v)"),
    *("t = getattr(tl, 'load')", "t = hasattr(v, 'handle')", "t = bool(v)"),
    *("t = str(v)", "t = repr(v)", "t = 'a'.join(v)", "t = f'{v}'", "t = b'a'"),
    *("t = '{}'.format(v)", "t = dir()", "t = globals()", "t = vars(tl)"),
    *("(t := v)", "t = [a for a in v]", "t = lambda: v", "t = {1: v}", "t = {v}"),
    *("t = v @ v", "t = ...", "t = 1j", "t = print", "t = range(3)", "t = min"),
    *("v.data = v", "v[0] = 1.0", "tl.load = v", "del v", "global v", "nonlocal v"),
    *("t, *u = v", "plus(*v)", "plus(**v)", "tl.load(x, _semantic=v)"),
    *("for t in v: pass", "for t in (1, 2): pass", "for t in plus(v, v): pass"),
    *("while n > 0: break", "raise v", "assert_ = __name__", "t = __builtins__"),
    *(
        "with v: pass",
        "import os",
        "def g(): pass",
        "class g: pass",
        "return lambda: 1",
    ),
    *("match n:\n        case 1: pass", "try: pass\n    except: pass", "yield v"),
    *("t: print('run') = v", "t = (lambda: v)()", "(plus)(v)(v)", "v.to(tl)(v)"),
]


@pytest.mark.parametrize("line", REFUSED)
def test_what_is_not_on_the_list_is_refused_before_anything_runs(line: str) -> None:
    with pytest.raises(BadSource):
        translated(KERNEL.replace("LINE", line))


@pytest.mark.parametrize(
    "line",
    [
        *("t = plus.value", "t = 'a'.shape", "t = (1, 2).T", "t = (1, 2).sum(0)"),
        *("t = '%s' % n", "t = 'a' + 'b'", "t = plus", "t = 'a' * 9", "v(n)"),
        *("t = (1, 2)('a')", "t = plus == plus", "t = -plus", "t = len('ab')"),
        *("t = 7 ** 99999999", "t = 1 << 99999999999"),
    ],
)
def test_a_value_of_another_kind_is_refused_when_it_is_met(
    lab: LoadedLab, line: str
) -> None:
    result = check(lab, KERNEL.replace("LINE", line))
    assert result.status in ("compile error", "failed") and not result.right


@pytest.mark.parametrize("name", sorted(language.ELSEWHERE))
def test_what_needs_a_gpu_is_said_by_name(name: str) -> None:
    line = f"v = {name}(v)"
    if name == "triton.heuristics":
        source = KERNEL.replace("@triton.jit", f"@{name}({{}})\n@triton.jit", 1)
    else:
        source = KERNEL.replace("LINE", line)
    with pytest.raises(NotHere, match=re.escape("is not supported without a GPU")):
        translated(source)


#: usual Triton, each of which computes the same as the compiler makes of it
RIGHT = [
    "v = v + (-7 // 2 + 4)",
    "for k in range(-7, -6):\n        v += (k // 2 + 3).to(tl.float32)",
    "for k in tl.range(0, 1, num_stages=2):\n        v += k.to(tl.int64)",
    "for k in tl.static_range(0, 4, step=4):\n        v += k",
    "for k in range(3, 0, -3):\n        v += k - 3",
    "v = v if n > 0 and SIZE > 1 else 0.0 * v",
    "v += ((1 if n > 0 else 2) // -2).to(tl.float32)",
    "v += (1 if SIZE > 0 else 2) // -2 + 1",
    "v = tl.where((i < n) & (n > 0), v, 0.0)",
    "v = tl.where(not n > 0, 0.0, v)",
    "v = v + 0 if None is None else v",
    "t: tl.constexpr = SIZE // 2\n    v += t - 256",
    "a, (b, c) = v, (SIZE, 0)\n    v = a + c",
    "v = tl.reshape(tl.reshape(v, (SIZE // 2, 2)), v.shape)",
    "v = max(v, 2 * v - v)\n    v += min(n, 0) + len((1, 2)) - 2",
    "v += tl.log((i * 0 + 1).to(tl.float32))",
    "v += float('inf') if SIZE < 2 else int(0.5)",
    "tl.static_assert(SIZE == 512, 'the size')",
    "tl.device_assert(n > 0)\n    assert n > 0, 'none'",
    "v += triton.language.abs(i) * 0 + triton.cdiv(SIZE, 512) - ONE",
    "v += tl.reduce(i * 0, 0, plus).to(tl.float32)",
    "if 0 < n <= 100_000:\n        v = plus(b=v, a=0.0)\n    else:\n        v = -v",
    "v = tl.associative_scan(v, 0, plus) * 0 + v if SIZE == 1 else v",
    "v += (x.dtype.element_ty != tl.float32) + (v.dtype == tl.int8)",
    # a GPU gives the nearest whole number that there is
    *(
        f"t = tl.full((SIZE,), {given}, tl.float32).to(tl.{dtype})\n"
        f"    v = tl.where(t == {whole}, v, 0.0)"
        for given, dtype, whole in (
            ("1e20", "int32", 2**31 - 1),
            ("-1e20", "int64", "-9223372036854775807 - 1"),
            ("float('nan')", "int32", 0),
            ("-5.0", "uint32", 0),
            ("float('inf')", "uint64", "0xFFFFFFFFFFFFFFFF"),
        )
    ),
]


@pytest.mark.parametrize("line", RIGHT)
def test_usual_triton_computes_what_the_compiler_makes_of_it(
    lab: LoadedLab, line: str
) -> None:
    source = KERNEL.replace("LINE", line)
    cases = public_cases(lab.lab) + hidden_cases(lab.lab, 5)[:2]
    result = check(lab, source, cases)
    assert result.status == "passed", (result.message, result.log, result.cases[:1])


def test_usual_heads_of_kernels_change_nothing(lab: LoadedLab) -> None:
    heads = (
        '@triton.jit(do_not_specialize=["n"])',
        "@triton.jit(noinline=False, debug=True)",
        "@triton.jit()",
    )
    typed = "def _plus(a: tl.tensor, b: tl.float32 = 0.0) -> tl.tensor:"
    source = KERNEL.replace("def plus(a, b):", typed).replace("LINE", "v = _plus(v)")
    for head in heads:
        tried = head.join(source.rsplit("@triton.jit", 1))
        result = check(lab, tried)
        assert result.status == "passed", (head, result.message, result.log)


def test_usual_heads_of_files_are_what_the_compiler_makes_of_them(
    lab: LoadedLab,
) -> None:
    """Plain numbers stand there for defaults; a kernel itself reads none of them."""
    source = KERNEL.replace(
        "import triton.language as tl\n",
        "from triton import language as tl\n\nZERO: tl.constexpr = 0\nWIDE = -512\n",
    )
    source = source.replace("def plus(a, b):", "def plus(a, b=ZERO, c=WIDE, d=ONE):")
    line = "v = plus(v)\n    a, (b, c) = v, (n, 0)\n    a += c\n    v = max(a, a - 1)"
    source = source.replace("return a + b", "return a + b + (c + 512) + (d - 1)")
    result = check(lab, source.replace("LINE", line))
    assert result.status == "passed", (result.message, result.log)
