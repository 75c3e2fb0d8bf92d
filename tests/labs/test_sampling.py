"""Cases: what must be tried is tried, and hidden ones can't be foretold."""

from __future__ import annotations

import re

import pytest

from warpbook_labs.cases.fitting import fitted
from warpbook_labs.cases.sampling import hidden_cases, public_cases
from warpbook_labs.course.session import find
from warpbook_labs.lab.launch_rule import read_rule
from warpbook_labs.lab.spec import Lab

SEEDS = range(40)


@pytest.fixture(scope="module")
def lab() -> Lab:
    return find("vector-add").lab


def test_every_size_and_kind_that_must_be_tried_is_in_every_draw(lab: Lab) -> None:
    for seed in SEEDS:
        cases = hidden_cases(lab, seed)
        assert set(lab.hidden.sizes["n"].always) <= {case.sizes["n"] for case in cases}
        assert {case.values for case in cases} == set(lab.hidden.values)
        assert all(case.is_hidden for case in cases)


def test_a_seed_gives_the_same_cases_again_and_another_gives_others(lab: Lab) -> None:
    draws = [hidden_cases(lab, seed) for seed in SEEDS]
    assert draws == [hidden_cases(lab, seed) for seed in SEEDS]
    of_values = {tuple(case.seed for case in draw) for draw in draws}
    assert len(of_values) == len(SEEDS)


def test_drawn_sizes_keep_to_their_bounds_and_differ(lab: Lab) -> None:
    sizes = lab.hidden.sizes["n"]
    drawn = {case.sizes["n"] for seed in SEEDS for case in hidden_cases(lab, seed)}
    # one of each submission has more than 16 bits count
    large = {size for size in drawn if size > sizes.most}
    assert len(large) > 1 and min(large) >= 1 << 16
    drawn -= large
    assert drawn - set(sizes.always) and min(drawn) >= 1
    assert all(sizes.least <= size <= sizes.most for size in drawn - set(sizes.always))


def test_what_is_told_of_a_hidden_case_names_neither_its_size_nor_a_seed(
    lab: Lab,
) -> None:
    for seed in SEEDS:
        for case in hidden_cases(lab, seed):
            numbers = {int(number) for number in re.findall(r"\d+", case.about)}
            # a kind of size may be told, and 1 to 3, which have no kind
            assert case.seed not in numbers and seed not in numbers - {1, 2, 3, 16, 32}
            if case.sizes["n"] > 3:
                assert case.sizes["n"] not in numbers


def test_public_cases_are_those_of_the_file_in_their_order(lab: Lab) -> None:
    assert [case.sizes["n"] for case in public_cases(lab)] == [256, 1000, 77]
    assert not any(case.is_hidden for case in public_cases(lab))


@pytest.mark.parametrize(
    ("grid", "rest"),
    [("(n + 190) / 192", 1), ("ceil_div(n, 192)", 0), ("n / 192 + 1", 191)],
)
def test_every_other_drawn_case_fills_the_grid_of_the_source(
    lab: Lab, grid: str, rest: int
) -> None:
    rule = read_rule(f"// launch: add<<<{grid}, 192>>>(x, y, out, n)")
    for seed in SEEDS:
        cases = hidden_cases(lab, seed)
        fit = fitted(lab, rule, cases)
        differ = [
            (case, other)
            for case, other in zip(cases, fit, strict=True)
            if case != other
        ]
        free = sum(case.is_free for case in cases)
        assert len(differ) <= free - free // 2 < free
        for case, other in differ:
            assert case.is_free and (case.seed, case.values) == (
                other.seed,
                other.values,
            )
            assert other.sizes["n"] % 192 == rest
            assert lab.hidden.sizes["n"].least <= other.sizes["n"]
            assert other.sizes["n"] <= lab.hidden.sizes["n"].most
        # what is fitted stays as it is
        assert fitted(lab, rule, fit) == fit


def test_of_several_launches_each_fills_its_own_grid() -> None:
    groupby = find("groupby-join").lab
    first, other = (
        "build<<<ceil_div(n, 192), 192>>>(n)",
        "find<<<ceil_div(m, 96), 96>>>(m)",
    )
    rule = read_rule(
        f"// launch: none<<<1, 1>>>()\n// launch: {first}\n// launch: {other}"
    )
    for seed in SEEDS:
        fit = fitted(groupby, rule, hidden_cases(groupby, seed))
        free = [case.sizes for case in fit if case.is_free]
        assert any(sizes["n"] % 192 == 0 for sizes in free)
        assert any(sizes["m"] % 96 == 0 for sizes in free)


def test_a_grid_that_is_the_same_for_all_sizes_leaves_all_cases(lab: Lab) -> None:
    rule = read_rule("// launch: add<<<8, 256>>>(x, y, out, n)")
    cases = hidden_cases(lab, 3)
    assert [case.sizes for case in fitted(lab, rule, cases)] == [
        case.sizes for case in cases
    ]


def test_a_grid_that_grows_no_more_is_asked_for_more_than_it_has(lab: Lab) -> None:
    cases = hidden_cases(lab, 3)
    for blocks, is_larger in ((512, True), (4096, False)):
        grid = f"min(ceil_div(n, 256), {blocks})"
        rule = read_rule(f"// launch: add<<<{grid}, 256>>>(x, y, out, n)")
        last = fitted(lab, rule, cases)[-1]
        assert (last.sizes["n"] > 256 * blocks) == is_larger
        assert (last == cases[-1]) != is_larger
        # another launch of the rule that goes on to grow changes nothing
        rule = read_rule(
            f"// launch: add<<<{grid}, 256>>>(n)\n// launch: a<<<n, 1>>>(n)"
        )
        assert fitted(lab, rule, cases)[-1] == last


def test_a_grid_that_grows_with_a_square_gets_sizes_that_the_cpu_runs() -> None:
    tiles = find("tiled-transpose").lab
    side = "ceil_div(max(w, h), 32)"
    rule = read_rule(f"// launch: t<<<({side}, {side}), (32, 32)>>>(x, out, w, h)")
    cases = hidden_cases(tiles, 3)
    for case, fit in zip(cases[-2:], fitted(tiles, rule, cases)[-2:], strict=True):
        assert 4096 < max(fit.sizes.values()) < max(case.sizes.values())
        assert min(fit.sizes.values()) == min(case.sizes.values())
