"""A Triton file may say kernels and constants; what else it says is told by line."""

from __future__ import annotations

import pytest

from warpbook_labs.engines.interpreter.triton.compiling import own_lines_alone
from warpbook_labs.errors import BadRule, BadSource
from warpbook_labs.lab.triton.rule import read_triton_rule
from warpbook_labs.lab.triton.source import read_kernels

HEAD = "import triton\nimport triton.language as tl\n"
SOURCE = (
    HEAD
    + """LIMIT = tl.constexpr(4)

@triton.jit
def helper(v):
    return tl.where(v < LIMIT, 0.0, v)

@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.load(x + i, mask=i < n).to(tl.float32) + tl.load(y + i, mask=i < n)
    for step in range(0, 2):
        total += helper(total) * step
    tl.store(out + i, total, mask=i < n)
"""
)
RULE = "# launch: add[ceil_div(n, 64)](x, y, out, n, BLOCK=64, num_warps=2)\n"


def test_kernels_are_found_with_their_parameters() -> None:
    kernels = read_kernels(SOURCE)
    assert list(kernels) == ["helper", "add"]
    assert kernels["add"].parameters == ("x", "y", "out", "n", "BLOCK")
    assert kernels["add"].constants == ("BLOCK",) and kernels["add"].line == 10


def test_names_may_be_imported_one_by_one_and_under_others() -> None:
    imports = "import triton.language as T, triton as tr\nfrom triton import jit\n"
    imports += "from triton.language import constexpr, load as get, math, range\n"
    spelled = (
        SOURCE.replace(HEAD, imports)
        .replace("tl.constexpr", "constexpr")
        .replace("tl.load", "get")
        .replace("tl.", "T.")
        .replace("@triton.jit", "@jit")
        .replace("n, BLOCK: constexpr", "n, math, BLOCK: constexpr")
        .replace("helper(total)", "helper(math)")
    )
    assert read_kernels(spelled)["add"].constants == ("BLOCK",)
    # what a function gives a value is no imported name there, and a file imports tl
    with pytest.raises(BadSource, match="there is no `exp` in a kernel|not for kernel"):
        read_kernels(spelled.replace("T.where(v < LIMIT", "tr.exp(v < LIMIT"))
    with pytest.raises(BadSource, match="Line 3: `tl` is not imported: write `import"):
        read_kernels(SOURCE.replace("import triton.language as tl", ""))


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("import os", "imports only `triton`"),
        ("import triton.runtime", "`triton.runtime` can't be checked here"),
        ("from triton import runtime as tr", "`triton.runtime` can't be checked here"),
        ("from triton.language import core", "`triton.language.core` can't be"),
        ("from triton.language import make_block_ptr", "can't be checked here"),
        ("from triton.language import *", r"`triton.language.\*` can't be checked"),
        ("from triton.language import sum\nsum = 3", "`sum` can't be the name"),
        ("print('here')", "outside of kernels stand only constants"),
        ("N = 2 * 4", r"a constant is written NAME = tl.constexpr\(128\)"),
        ("N: print() = 4", "outside of kernels stand only constants"),
        ("N: tl.constexpr = open('/etc/passwd')", "a constant is written"),
        ("N: tl.constexpr", "outside of kernels stand only constants"),
        ("tl: tl.constexpr = 4", "`tl` can't be the name"),
        ("LIMIT.x = 4", "outside of kernels stand only constants"),
        ("N = tl.constexpr(open('/etc/passwd'))", "a constant is written"),
        ("tl = tl.constexpr(1)", "`tl` can't be the name"),
        ("x, y = 1, 2", "outside of kernels stand only constants"),
        ("if True:\n    pass", "outside of kernels stand only constants"),
        ("class Mine: pass", "outside of kernels stand only constants"),
        ("def plain(x): pass", "@triton.jit, and nothing else"),
        (
            "@triton.heuristics({})\n@triton.jit\ndef f(x): pass",
            "can't be checked here",
        ),
        ("@triton.jit\ndef helper(x): pass", "there is another `helper` above"),
        ("@triton.jit\ndef __f(x): pass", "names begin with a letter"),
        ("@triton.jit\ndef f(*x): pass", "parameters are plain names"),
        ("@triton.jit\ndef f(x=print()): pass", "a default must be a plain number"),
        ("@triton.jit\ndef f(x=helper): pass", "a default must be a plain number"),
        ("@triton.jit\ndef f(x=N): pass\nN = 4", "a default must be a plain number"),
        ("@triton.jit\ndef f(x: print()): pass", "only `tl.constexpr` may stand"),
        ("x = = 3", "invalid syntax"),
    ],
)
def test_what_stands_outside_of_kernels_is_refused(line: str, words: str) -> None:
    with pytest.raises(BadSource, match=words) as refused:
        read_kernels(f"{SOURCE}\n{line}\n")
    assert str(refused.value).startswith("Line ")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("import os", "Imports stand at the top"),
        ("total = x.__class__", "what begins with _"),
        ("total = tl._module", "what begins with _"),
        ("total = x.handle.data", "`x.handle.data` is not for kernels"),
        ("total = tl.core.os", "`tl.core.os` is not for kernels"),
        ("total = tl.core", "`tl.core` is not for kernels"),
        ("total = tl.make_block_ptr(1)", "can't be checked here"),
        ("total = triton.runtime", "is not for kernels"),
        ("total = eval('1')", "there is no `eval` in a kernel"),
        ("total = np.zeros(3)", "there is no `np`|`np.zeros` is not for kernels"),
        ("total = __import__('os')", "names begin with a letter"),
        ("total = (lambda: 3)()", "only functions that have a name"),
        ("total = [each for each in x]", "a list's comprehension is not supported"),
        ("total = {each for each in x}", "A comprehension is no Triton"),
        ("tl.load = total", "`tl.load` is not for kernels"),
        ("tl = x", "`tl` can't be the name of a value"),
        ("range = x", "`range` can't be the name of a value"),
        ("total = PLAIN", r"no plain number from outside: write PLAIN = tl.constexpr"),
        ("total = NOTED", r"no plain number from outside: write NOTED = tl.constexpr"),
        ("total = abs(total)", r"no `abs` in a kernel: write tl.abs"),
        ("total = other = n", "Triton has no `a = b = value`"),
        ("global n", "`global` is no Triton"),
        ("try:\n        pass\n    except: pass", "`try` is no Triton"),
        ("def inner(): pass", "A function inside another is no Triton"),
        ("total = helper(**x)", r"`\*\*` before a name is no Triton"),
        ("total = f'{x}'", "an f-string is not supported without a GPU"),
    ],
)
def test_what_is_no_triton_is_refused_in_a_kernel(line: str, words: str) -> None:
    at = "    tl.store(out"
    with pytest.raises(BadSource, match=words) as refused:
        constants = "PLAIN = 4\nNOTED: tl.constexpr = 4\n"
        read_kernels(SOURCE.replace(at, f"    {line}\n{at}") + constants)
    assert str(refused.value).startswith("Line ")


def test_a_file_without_a_kernel_or_far_too_large_is_refused() -> None:
    with pytest.raises(BadSource, match="There is no kernel"):
        read_kernels(HEAD)
    with pytest.raises(BadSource, match="far larger"):
        read_kernels(SOURCE + "    x + y\n" * 10_000)
    with pytest.raises(BadSource, match=r"no Python|Line|too many"):
        read_kernels(SOURCE + "    x = " + "(" * 5_000 + ")" * 5_000)


def test_a_rule_gives_grid_arguments_constants_and_warps() -> None:
    (launch,) = read_triton_rule(RULE + SOURCE).launches
    assert (launch.kernel, launch.arguments) == ("add", ("x", "y", "out", "n"))
    assert launch.sides({"n": 100}) == ((2, 1, 1), (64, 1, 1), 0)
    assert dict(launch.constants) == {
        "BLOCK": "64",
        "num_warps": "2",
        "num_stages": "3",
    }
    pair = RULE.replace("[ceil_div(n, 64)]", "[(2, min(n, 3))]")
    assert read_triton_rule(pair + SOURCE).launches[0].grid == ("2", "min(n, 3)")
    rule = read_triton_rule(f"# scratch: part float32[n]\n{RULE}{SOURCE}")
    assert rule.scratch[0].name == "part"
    named = RULE.replace("(n, 64)", "(n, LIMIT)")
    (launch,) = read_triton_rule(named + SOURCE).launches
    assert launch.sides({"n": 100})[0] == (25, 1, 1)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (RULE, "", r"Add a comment such as # launch: my_kernel\["),
        ("add[", "sub[", "there is no kernel `sub`, only `helper`, `add`"),
        ("add[ceil_div(n, 64)]", "add<<<1, 2>>>", r"written kernel\[grid\]"),
        ("[ceil_div(n, 64)]", "[1, 1, 1, 1]", "one to three sides"),
        ("BLOCK=64, ", "", "`BLOCK` is a tl.constexpr of `add`: give it a number"),
        ("out, n, B", "out, B", r"takes 4 arguments \(x, y, out, n\).*3 are given"),
        ("BLOCK=64", "BLOCK=64, SIZE=3", "has no parameter `SIZE`"),
        ("BLOCK=64", "BLOCK=64, BLOCK=3", "`BLOCK` is given twice"),
        ("num_warps=2", "num_warps=3", "num_warps is one of 1, 2, 4"),
        ("num_warps=2", "num_stages=n", "num_stages is one of 1, 2"),
        ("BLOCK=64, num_warps=2", "BLOCK=64, n", "`n` must stand before"),
    ],
)
def test_a_rule_that_does_not_fit_the_kernel_is_told(
    old: str, new: str, words: str
) -> None:
    text = RULE + SOURCE
    with pytest.raises(BadRule, match=words):
        read_triton_rule(text.replace(old, new, 1))


def test_assembly_of_thousands_of_empty_lines_is_read_at_once() -> None:
    """Patterns that try each run of them again would take hours."""
    empty = ".version 8.4\n" + "\n" * 1_000_000 + "}\n"
    assert own_lines_alone(empty) == empty
