"""The lab on CUDA graphs: each mistake is told as what it is."""

from __future__ import annotations

import pytest

from tests.lab_checks import check_all
from warpbook_labs.cases.preparation import OwnPython
from warpbook_labs.cases.sampling import public_cases
from warpbook_labs.lab.files import CATALOGUE
from warpbook_labs.lab.loader import load
from warpbook_labs.lab.shown_cases import calls_of, generator_of

LAB = load(CATALOGUE / "streams" / "cuda_graphs")
ONLY_COPIES = "Beside graphs, only copies into and out of their memory"
ONCE = "To capture takes longer than to launch"

#: a wrong solution, and words of what is told
MISTAKES = [
    ("captures_in_each_call", ONCE),
    ("captures_on_the_default_stream", "must be captured on a non-default stream"),
    ("captures_the_buffers_of_a_call", "In call 2: out["),
    ("captures_the_first_batch", "out["),
    ("forgets_the_graph_before", ONCE),
    ("graph_for_each_layer", "One graph for each batch should have the whole step"),
    ("keeps_the_first_inputs", "stale graph: "),
    ("launches_for_show", "In call 2: out["),
    ("lets_the_weights_go", "released too early: "),
    ("looks_while_it_captures", "item() makes the host wait for the GPU"),
    ("new_batch_is_another_tensor", "out["),
    ("one_graph_for_both_shapes", "out["),
    ("reads_the_result_too_late", "out["),
    ("replays_on_another_stream", "race: "),
    ("waits_after_each_replay", "a host that waits launches nothing"),
    ("warms_up_without_waiting", "race: "),
]


def test_every_wrong_solution_has_its_mistake_listed() -> None:
    assert {f"{name}.py" for name, _ in MISTAKES} == set(LAB.wrong)


@pytest.mark.parametrize(("name", "words"), MISTAKES)
def test_a_mistake_is_told_as_what_it_is(name: str, words: str) -> None:
    shown = public_cases(LAB.lab)[:1]
    [case] = check_all(LAB, LAB.wrong[f"{name}.py"], shown).cases
    assert words in case.message


def test_launching_each_kernel_is_told_to_be_too_many_launches() -> None:
    shown = public_cases(LAB.lab)[:1]
    [case] = check_all(LAB, LAB.starter, shown).cases
    assert ONLY_COPIES in case.message


def test_calls_of_a_shown_case_begin_at_rows_of_their_own() -> None:
    python = OwnPython(LAB)
    for case in public_cases(LAB.lab):
        begins = {
            python.inputs(case.sizes, case.values, generator_of(case.seed, call))[
                "begin"
            ]
            for call in range(calls_of(LAB.lab))
        }
        assert len(begins) == calls_of(LAB.lab)
