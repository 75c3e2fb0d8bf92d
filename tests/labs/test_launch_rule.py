"""Launch rules: comments that look like CUDA's launches, read with care."""

from __future__ import annotations

import pytest

from warpbook_labs.errors import BadRule
from warpbook_labs.lab.entry_names import NoSuchKernel, entry_named
from warpbook_labs.lab.launch_rule import MOST_LAUNCHES, read_rule, split

SIZES = {"n": 1000, "m": 33}


def test_launches_and_scratch_memory_are_read_in_order_with_their_lines() -> None:
    rule = read_rule(
        "// scratch: part float32[ceil_div(n, 256)]\n"
        "int x;\n"
        "  //launch:  first<<<(ceil_div(n, 32), m), (32, 8), 4 * n>>>(x, part, n) ;\n"
        "// launch: second<<<1, 256>>>(part, min(n, 3))\n"
    )
    first, second = rule.launches
    assert (first.kernel, first.line) == ("first", 3)
    assert first.sides(SIZES) == ((32, 33, 1), (32, 8, 1), 4000)
    assert first.arguments == ("x", "part", "n")
    assert second.sides(SIZES) == ((1, 1, 1), (256, 1, 1), 0)
    assert second.arguments == ("part", "min(n, 3)")
    [scratch] = rule.scratch
    assert (scratch.name, scratch.dtype) == ("part", "float32")
    assert scratch.length == "(ceil_div(n, 256))"


def test_a_rule_may_name_an_instance_and_stand_in_a_block_comment() -> None:
    rule = read_rule(
        "launch: no_rule<<<1, 1>>>()\n"
        "/* launch: one<<<dim3(2, m), dim3(64), 4 * sizeof(float), stream>>>(x)\n"
        "   launch: a::two<float, B<4>><<<(int)(n + 31) / 32, 32>>>(1e-3f, true) */\n"
        "launch: no_rule<<<1, 1>>>()\n"
    )
    one, two = rule.launches
    assert one.sides(SIZES) == ((2, 33, 1), (64, 1, 1), 16)
    assert (two.kernel, two.line) == ("a::two<float,B<4>>", 3)
    assert two.sides(SIZES)[0] == (32, 1, 1)
    assert two.arguments == ("1e-3f", "true")


def test_a_rule_knows_constants_of_the_source_where_no_size_has_their_name() -> None:
    rule = read_rule(
        "// scratch: part uint64[n][SIDE + 1]\n"
        "// launch: f<<<ceil_div(n, BLOCK), dim3(SIDE, m), 2 * BYTES>>>(x, SIDE)\n"
        "#define SIDE 16u  // of a tile\n"
        "#define BYTES (SIDE * (SIDE + 1))\n"
        "static constexpr unsigned int BLOCK = SIDE * 4, m = 3;\n"
        "const int m = 5;\n#define ADD(a) (a)\nconstexpr float EPS = 1e-6f;\n"
    )
    [launch], [scratch] = rule.launches, rule.scratch
    assert launch.sides(SIZES) == ((16, 1, 1), (16, 33, 1), 544)
    assert launch.number(launch.arguments[1], SIZES) == 16
    assert (scratch.length, scratch.known["SIDE"]) == ("(n) * (SIDE + 1)", 16)
    assert not {"ADD", "EPS"} & scratch.known.keys()


def test_instances_are_told_apart() -> None:
    entries = ["_ZN1a2goIfLi4ELb1EEEvPT_", "_ZN1a2goIfLin4ELb0EEEvPT_", "_Z1gI1PEvPT_"]
    assert entry_named("a::go<float,-4,false>", entries) == entries[1]
    assert entry_named("g<P>", entries) == entries[2]
    with pytest.raises(NoSuchKernel, match="2 kernels are called `go<float,5,true>`"):
        entry_named("go<float,5,true>", entries)


def test_commas_in_brackets_do_not_split() -> None:
    assert split("a, f(b, c[d, e]), (g, h)") == ("a", "f(b, c[d, e])", "(g, h)")


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("int x;", "does not say how its kernel is launched"),
        ("// launch: f", "Line 1: a launch is written"),
        ("\n// launch: f<<<1>>>(x)", "Line 2: between <<< and >>>"),
        ("// launch: f<<<1, 2, 3, 4, 5>>>(x)", "between <<< and >>>"),
        ("// launch: f<<<(1, 1, 1, 1), 2>>>(x)", "three sides"),
        ("// launch: f<<<1, (1, 1, 1, 1)>>>(x)", "three sides"),
        ("// scratch: s object[3]", "with a type of float32"),
        ("// scratch: s float32", "Line 1: scratch memory is written"),
        ("// launch: f<<<1, 1>>>(x)\n" * (MOST_LAUNCHES + 1), "Line 65: 64 launches"),
        ("// scratch: s int32[1]\n" * 17, "Line 17: 16 scratch"),
        (f"// launch: f<<<{'1 + ' * 400}1, 1>>>(x)", "more than 1,000"),
    ],
)
def test_a_rule_that_makes_no_sense_is_told_with_its_line(
    source: str, words: str
) -> None:
    with pytest.raises(BadRule, match=words.replace("(", r"\(")):
        read_rule(source)


@pytest.mark.parametrize("numbers", ["nobody, 1", "1, 9**9", "1, 1, -5", "1, 1, n * x"])
def test_sides_that_cant_be_computed_are_told_with_their_line(numbers: str) -> None:
    [launch] = read_rule(f"\n\n// launch: f<<<{numbers}>>>()").launches
    with pytest.raises(BadRule, match="^Line 3: "):
        launch.sides(SIZES)


def test_a_text_made_to_keep_the_reader_busy_does_not() -> None:
    # the test's own time limit would tell
    for hostile in (
        "\n" * 190_000 + "x",
        "// launch: a" + " " * 190_000 + "b",
        " " * 190_000 + "// launch",
        "/*" * 60_000 + "\nlaunch" * 10_000,
        "//" * 95_000,
        "// launch: " + "a<<<>>>(" * 23_000,
        "// launch: a\n" * 15_000,
        "const " * 31_000,
        "const " * 10_000 + "a " * 60_000,
    ):
        with pytest.raises(BadRule):
            read_rule(hostile)
