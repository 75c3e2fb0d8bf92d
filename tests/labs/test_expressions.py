"""Expressions of labs and launch rules: whole numbers, and nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warpbook_labs.lab.expressions import BadExpression, ceil_div, value

NAMES = {"n": 1000, "m": 7, "k": -3}
LEAVES = st.sampled_from([*NAMES, "1", "2", "256", "1021"])


def deeper(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    pair = st.tuples(inner, inner)
    return st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*", "//", "%"]), inner).map(
            lambda parts: f"({' '.join(parts)})"
        ),
        st.tuples(st.sampled_from(["ceil_div", "min", "max"]), pair).map(
            lambda parts: f"{parts[0]}({', '.join(parts[1])})"
        ),
        inner.map(lambda operands: f"(-{operands})"),
    )


@given(st.recursive(LEAVES, deeper, max_leaves=8))
def test_an_expression_is_what_python_makes_of_it(text: str) -> None:
    try:
        right = eval(text, {"ceil_div": ceil_div}, dict(NAMES))
    except ZeroDivisionError:
        with pytest.raises(BadExpression, match="divides by zero|characters"):
            value(text, NAMES)
        return
    if len(text) <= 200 and abs(right) < 1 << 40:
        assert value(text, NAMES) == right


def test_a_slash_divides_as_c_does_for_sizes() -> None:
    assert value("n / 256", NAMES) == 3
    assert value(" ceil_div(n, 256) ", NAMES) == 4


def test_numbers_and_names_may_be_spelled_as_in_cpp() -> None:
    assert value("(n + 511u) / 0x200UL", NAMES) == 2
    assert value("std::min(n >> 3, 1'024) << 2", NAMES) == 500
    assert value("au + 1", {"au": 2}) == 3


def test_the_next_power_of_two_is_that_of_triton() -> None:
    numbers = ("1", "2", "3", "n", "1024", "1025")
    powers = [value(f"next_power_of_2({number})", NAMES) for number in numbers]
    assert powers == [1, 2, 4, 1024, 1024, 2048]


@pytest.mark.parametrize(
    "hostile",
    [
        "9**9**9**9",
        "1 << 99999999",
        "n * " * 30 + "n",
        "9" * 100,
        "9" * 5000,
        "(" * 300 + "1" + ")" * 300,
        "n.__class__",
        "__import__('os').system('true')",
        "min(*[n, m])",
        "min(n)",
        "next_power_of_2(n, m)",
        "max(n, m, key=n)",
        "[n for n in (1, 2)][0]",
        "lambda: n",
        "(n := 3)",
        "n if m else k",
        "1.5",
        "1j",
        "'n'",
        "f'{n}'",
        "nobody",
        "n; m",
        "n\nm",
        "n\0",
        "\udcff",
        "",
        "#",
        "n % (m - 7)",
    ],
)
def test_what_is_no_arithmetic_of_known_names_is_refused(hostile: str) -> None:
    with pytest.raises(BadExpression):
        value(hostile, NAMES)


def test_what_is_nested_deep_is_computed_or_refused_and_nothing_worse() -> None:
    assert value("-" * 199 + "n", NAMES) == -1000
    assert value("(" * 99 + "1" + ")" * 99, NAMES) == 1


def test_a_name_that_is_not_there_is_told_with_those_that_are() -> None:
    with pytest.raises(BadExpression, match=r"no `rows` here, only: k, m, n\."):
        value("rows + 1", NAMES)
