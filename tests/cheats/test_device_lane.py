"""What of the GPU's lane can be tried without one: its compiler, and its checker.

The sources are those of tests/gpu/test_labs_cheats.py, which runs them on a GPU.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.gpu import cheats
from tests.lab_checks import check_all
from warpbook_labs.cases.comparison import first_wrong
from warpbook_labs.cases.sampling import hidden_cases, public_cases
from warpbook_labs.compiler.jobs import Compile, Compiled
from warpbook_labs.course.session import find
from warpbook_labs.sandbox import parent
from warpbook_labs.sandbox.work import Limits, Refused

ARCHITECTURE = "sm_90"
FAR = {
    **cheats.HONEST,
    **cheats.GAIN_NOTHING,
    **cheats.END_CLEARLY,
    **{name: text for name, (text, _) in cheats.CAUGHT_AS_A_WHOLE.items()},
    **{name: cheats.source(body) for name, body in cheats.CAUGHT_WHEN_TIMED.items()},
    **{
        name: cheats.source(body)
        for name, (body, _) in {
            **cheats.CAUGHT_BY_THE_GPU,
            **cheats.CAUGHT_BY_THE_INTERPRETER,
        }.items()
    },
}


@pytest.mark.parametrize("name", cheats.NOT_COMPILED)
def test_for_a_real_gpu_too_no_file_is_read(name: str) -> None:
    job = Compile(cheats.NOT_COMPILED[name], ARCHITECTURE)
    outcome = parent.run(job, Limits(processor_s=10))
    assert not isinstance(outcome.result, Compiled)
    assert isinstance(outcome.result, Refused) or outcome.status != "crashed"
    shown = str(outcome)
    assert (
        "root:" not in shown and "PATH=" not in shown and "warpbook_labs/" not in shown
    )


def test_those_that_the_gpu_has_to_catch_compile() -> None:
    # one program: kernels of many names
    parts = []
    for number, text in enumerate(FAR.values()):
        names = ("add_relu", "deep", "calls", "kept", "first")
        for symbol in names:
            text = text.replace(symbol, f"{symbol}_{number}")
        parts.append(text)
    outcome = parent.run(Compile("\n".join(parts), ARCHITECTURE), Limits())
    assert isinstance(outcome.result, Compiled), outcome.result
    assert outcome.result.cubin[:4] == b"\x7fELF"


@pytest.mark.parametrize("name", cheats.CAUGHT_BY_THE_INTERPRETER)
def test_what_is_right_by_luck_on_a_gpu_is_found(name: str) -> None:
    lab = find("vector-add")
    body, why = cheats.CAUGHT_BY_THE_INTERPRETER[name]
    cases = public_cases(lab.lab) + hidden_cases(lab.lab, 3)[:4]
    result = check_all(lab, cheats.source(body), cases)
    assert result.status == "failed"
    assert why in " ".join(case.message for case in result.cases)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32", "uint8"])
def test_one_wrong_element_is_found_at_each_place(dtype: str) -> None:
    right = np.random.default_rng(5).integers(1, 100, 260).astype(dtype)
    bound = 0.25 if right.dtype.kind == "f" else 0.0
    wrongs = [right + 1, right - 1]
    if right.dtype.kind == "f":
        wrongs += [right + right.dtype.type(0.3), np.full_like(right, np.nan)]
        wrongs += [np.full_like(right, np.inf), np.full_like(right, -np.inf), -right]
    assert first_wrong("out", right, right, bound) is None
    for wrong in wrongs:
        for at in range(len(right)):
            got = right.copy()
            got[at] = wrong[at]
            wrong_element = first_wrong("out", got, right, bound)
            assert wrong_element is not None and (
                wrong_element.index,
                wrong_element.wrong,
            ) == ((at,), 1)


def test_one_element_that_nobody_wrote_is_found_at_each_place() -> None:
    right = np.arange(260, dtype=np.float32)
    for at in range(len(right)):
        wrong_element = first_wrong("out", right, right, 0.0, first_unwritten=4 * at)
        assert wrong_element is not None and (
            wrong_element.index,
            wrong_element.got,
        ) == ((at,), "nothing")


@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf])
def test_where_nothing_finite_is_right_a_number_is_wrong(special: float) -> None:
    right = np.full(4, special, np.float32)
    assert first_wrong("out", right, right, 1e30) is None
    for value in {np.nan, np.inf, -np.inf, 0.0, 3e38} - {special}:
        got = right.copy()
        got[2] = value
        if np.isnan(special) and np.isnan(value):
            continue
        wrong_element = first_wrong("out", got, right, 1e30)
        assert wrong_element is not None and wrong_element.index == (2,)
