"""Copies come first in the ranking, and what everybody writes counts little."""

from __future__ import annotations

import random

import pytest
from sqlalchemy import update

from tests.hub.core.course import FOREVER, Classroom, facts, publish_lab
from warpbook_hub.course.courses import Course, add_staff, create_course, person_of
from warpbook_hub.database.tables import PUBLICATIONS
from warpbook_hub.similarity import process
from warpbook_hub.similarity.process import (
    REFERENCE,
    NoRanking,
    rank_apart,
    works_elsewhere,
    works_of,
)
from warpbook_hub.similarity.ranking import Work, rank, structure_tokens, wording_tokens
from warpbook_hub.work.submissions import receive

STARTER = """
// launch: add<<<ceil_div(n, 256), 256>>>(x, y, out, n)
__global__ void add(const float* x, const float* y, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    // TODO
}
"""
#: ways to write the steps of one kernel
STEPS = [
    [
        "if (i < n) {{ {v}[i] = x[i] + y[i]; }}",
        "if (i >= n) return; {v}[i] = y[i] + x[i];",
    ],
    [
        "for (int {k} = i; {k} < n; {k} += gridDim.x * blockDim.x) s += x[{k}];",
        "int {k} = i; while ({k} < n) {{ s = s + x[{k}]; {k} = {k} + blockDim.x; }}",
        "for (int {k} = 0; {k} < 4; ++{k}) s += i + {k} < n ? x[i + {k}] : 0.0f;",
    ],
    [
        "__shared__ float {t}[256]; {t}[threadIdx.x] = s; __syncthreads();",
        "extern __shared__ float {t}[]; {t}[threadIdx.x] = s; __syncthreads();",
        "float {t} = __shfl_down_sync(0xffffffff, s, 16); s += {t};",
    ],
    [
        """for (int h = 128; h > 0; h >>= 1) {{
        if (threadIdx.x < h) s += {t}[threadIdx.x + h];
        __syncthreads();
    }}""",
        """for (int h = 1; h < 256; h *= 2) {{
        if (threadIdx.x % (2 * h) == 0) s += {t}[threadIdx.x + h];
        __syncthreads();
    }}""",
        """int h = 128;
    while (h) {{
        __syncthreads();
        if (threadIdx.x < h) {{ s += {t}[h + threadIdx.x]; }}
        h /= 2;
    }}""",
    ],
    [
        "if (threadIdx.x == 0) atomicAdd(out, s);",
        "if (!threadIdx.x) {{ out[blockIdx.x] = s; }}",
    ],
]


def solution(rng: random.Random) -> str:
    names = {key: f"{key}{rng.randrange(1000)}" for key in "vkt"}
    steps = [rng.choice(ways).format(**names) for ways in STEPS]
    extra = []
    for number in range(rng.randrange(4)):
        first, second = rng.choice("+-*"), rng.choice("+-*/")
        operand = rng.choice(["y[i]", "s", "n"])
        index = f"i {first} {rng.randrange(9)}"
        extra.append(f"float e{number} = x[{index}] {second} {operand};")
    lines = steps + extra
    rng.shuffle(lines[1:])
    body = "\n    ".join(["float s = 0.0f;", *lines])
    return STARTER.replace("// TODO", body)


def disguised(source: str, rng: random.Random) -> str:
    """Rename, comment and space a copy, as somebody does who has ten minutes."""
    for name in ("s", "i", "h"):
        for sign in " ([+=;<>,":
            for after in " )]+=;<>,[":
                source = source.replace(
                    f"{sign}{name}{after}", f"{sign}my_{name}{after}"
                )
    lines = source.splitlines()
    for _ in range(4):
        lines.insert(rng.randrange(2, len(lines)), "    // all my own work")
    return "\n".join(lines).replace(" + ", "+").replace("    ", "\t")


def test_disguised_copies_come_first() -> None:
    rng = random.Random(11)
    works = [Work(f"s{n}", f"p{n}", solution(rng)) for n in range(60)]
    # each of these has something of its own
    own = "float q = rsqrtf(x[i] * x[i] + 3.0f * y[i]) - fmaf(s, 2.0f, y[n - i - 1]);"
    for n in range(4):
        source = works[n].source.replace(
            "float s = 0.0f;", f"float s = 0.0f; {own * (n + 1)}"
        )
        works[n] = Work(f"s{n}", f"p{n}", source)
        works.append(Work(f"copy{n}", f"c{n}", disguised(source, rng)))
    pairs = rank(works, [STARTER], most=12)
    first = [{pair.first, pair.second} for pair in pairs]
    assert all({f"s{n}", f"copy{n}"} in first for n in range(4))
    assert [pair.rank for pair in pairs] == list(range(1, 13))
    assert all(0 <= pair.structure <= 1 and pair.wording_rank >= 1 for pair in pairs)
    top = pairs[0]
    assert top.first_lines and top.second_lines


def test_the_starter_and_ones_own_work_count_nothing() -> None:
    works = [Work(f"s{n}", "same", STARTER + f"int a{n};") for n in range(3)]
    assert rank(works, [STARTER]) == []
    works = [Work(f"s{n}", f"p{n}", STARTER) for n in range(3)]
    assert rank(works, [STARTER]) == []
    assert rank([], []) == []


def test_names_and_comments_count_only_for_the_wording() -> None:
    first = "int total = count + 1; // the sum"
    second = "int x=y+2;"
    assert [t.text for t in structure_tokens(first)] == [
        t.text for t in structure_tokens(second)
    ]
    assert "sum" in [t.text for t in wording_tokens(first)]
    lines = [t.line for t in structure_tokens("a\n/* b\n c */ d\n'''e\nf''' g")]
    assert lines == [1, 3, 4, 5]


@pytest.mark.parametrize(
    "source", ["", "\0", '"' * 5000, "/*" * 5000, "'''" * 3000, "("]
)
def test_any_text_is_split(source: str) -> None:
    structure_tokens(source)
    wording_tokens(source)


def test_a_class_is_ranked_in_a_process_of_its_own(
    room: Classroom, monkeypatch: pytest.MonkeyPatch
) -> None:
    grader = room.grader()
    rng = random.Random(3)
    copied = solution(rng)
    room.submit("ada", copied)
    room.grade(grader)
    room.submit("ada", "// worse, and later")
    room.grade(grader, facts("wrong", 0))
    room.submit("bob", disguised(copied, rng))
    room.submit("cyd", solution(rng))
    with room.database.read() as connection:
        works = works_of(connection, room.lab)
    assert len(works) == 3 and copied in [work.source for work in works]
    pairs = rank_apart(works, [STARTER])
    assert pairs == rank(works, [STARTER])
    by_id = {work.submission: work.party for work in works}
    pair = {by_id[pairs[0].first], by_id[pairs[0].second]}
    assert pair == {f"person:{room.people[name]}" for name in ("ada", "bob")}
    monkeypatch.setattr(process, "_WALL_S", 0.001)
    with pytest.raises(NoRanking):
        rank_apart(works)


def test_lines_that_do_nothing_hide_no_copy() -> None:
    rng = random.Random(8)
    works = [Work(f"s{n}", f"p{n}", solution(rng)) for n in range(30)]
    filler = "\n".join(
        f"__device__ int unused{n}(int a) {{ return {'(' * n}a{f' % {n + 2})' * n}; }}"
        for n in range(60)
    )
    works.append(Work("padded", "copier", works[0].source + filler))
    first = rank(works, [STARTER], most=10)
    assert {"s0", "padded"} in [{pair.first, pair.second} for pair in first]


def test_earlier_terms_and_the_reference_are_compared_too(room: Classroom) -> None:
    """Zed teaches both; a course of which he is no instructor stays unseen."""
    rng = random.Random(5)
    old, secret = solution(rng), solution(rng)
    room.submit_elsewhere(old)
    room.submit("ada", disguised(old, rng))
    room.submit("bob", solution(rng))
    with room.database.write() as connection:
        who = (connection, room.now_ms, "hub")
        add_staff(*who, "gpu101", "zed", "instructor")
        create_course(*who, Course("third", "Of others"))
        yan = add_staff(*who, "third", "yan", "instructor")
        third = publish_lab(connection, "third", windows={"": FOREVER})
        receive(connection, room.now_ms, third, yan, secret)
        connection.execute(update(PUBLICATIONS).values(reference=solution(rng)))
    with room.database.read() as connection:
        zed = person_of(connection, "zed")
        works = works_of(connection, room.lab)
        elsewhere = works_elsewhere(connection, room.lab, zed)
        assert not any(
            work.source in (old, secret)
            for work in works_elsewhere(connection, room.lab, room.instructor)
        )
    assert [work.source == old for work in elsewhere] == [False, True]
    pairs = rank_apart(works, [STARTER], elsewhere)
    own = {work.submission for work in works}
    top = {pairs[0].first, pairs[0].second}
    assert elsewhere[1].submission in top and len(top & own) == 1
    # two of other terms are nobody's business here
    assert all({pair.first, pair.second} & own for pair in pairs)
    assert any(REFERENCE in (pair.first, pair.second) for pair in pairs)
