"""Edits of a cell's source: what they change, what stays, and what is not edited."""

from __future__ import annotations

import ast
from collections.abc import Callable

import pytest

from warpbook_profiler.advice.code.cell_code import CellCode
from warpbook_profiler.advice.code.source_edit import SourceEdit, changed_lines

Body = list[ast.stmt]
WITH = (
    "for x in xs:\n"
    "    with a(), b():  # two\n"
    "        y = '''\n   kept'''\n"
    "    with a():\n"
    "        # said\n"
    "        z = f(\n          y)\n"
    "    with a(): v = y\n"
)


def edited(source: str, change: Callable[[SourceEdit, Body], None]) -> str:
    code = CellCode(source)
    edit = SourceEdit(code)
    change(edit, code.tree.body)
    return edit.source()


def unwrap(edit: SourceEdit, body: Body, *numbers: int) -> None:
    (loop,) = body
    assert isinstance(loop, ast.For)
    for number in numbers:
        statement = loop.body[number]
        assert isinstance(statement, ast.With)
        edit.unwrap(statement, statement.items[-1])


def test_all_other_text_stays() -> None:
    source = "%%time\n!ls\nimport os\nx = a  @ b # é\r\ny = x;  z = y\nz"

    def change(edit: SourceEdit, body: Body) -> None:
        product, named = body[3], body[4]
        assert isinstance(product, ast.Assign) and isinstance(named, ast.Assign)
        edit.at_start("n = 1")
        edit.replace(product.value, "max(a, b)")
        edit.after(named, "w = n")

    assert edited(source, change) == (
        "%%time\n!ls\nimport os\nn = 1\nx = max(a, b) # é\r\ny = x; w = n;  z = y\nz"
    )


def test_what_has_decorators_begins_with_them() -> None:
    source = "class A:\n    @ f(1)\n    @g\n    def m(self): pass\n"

    def change(edit: SourceEdit, body: Body) -> None:
        (owner,) = body
        assert isinstance(owner, ast.ClassDef)
        edit.before(owner.body[0], "n = 1\n\nm = 2")

    changed = source.replace("    @ f", "    n = 1\n\n    m = 2\n    @ f")
    assert edited(source, change) == changed
    source = "@dataclass\nclass A: pass\n"
    assert edited(source, lambda edit, _: edit.at_start("n = 1")) == f"n = 1\n{source}"


def test_torch_is_imported_where_the_cell_has_it_not() -> None:
    for source, text in {
        "y = x": "import torch\ntorch.f(x)\ny = x",
        "y = torch.g(x)": "torch.f(x)\ny = torch.g(x)",
        "import torch\ny = x": "import torch\ntorch.f(x)\ny = x",
        "y = x\nimport torch": "import torch\ntorch.f(x)\ny = x\nimport torch",
    }.items():
        done = edited(source, lambda edit, _: edit.at_start(f"{edit.torch}.f(x)"))
        assert done == text


def test_managers_are_taken_away() -> None:
    assert edited(WITH, lambda edit, body: unwrap(edit, body, 0, 2)) == (
        WITH.replace("a(), b()", "a()").replace("with a(): v", "v")
    )
    bare = WITH.replace("        # said\n", "")
    assert edited(bare, lambda edit, body: unwrap(edit, body, 1)) == bare.replace(
        "    with a():\n        z = f(\n          y)", "    z = f(\n      y)"
    )
    # nobody's comment is lost
    assert not edited(WITH, lambda edit, body: unwrap(edit, body, 1))


@pytest.mark.parametrize(
    ("source", "number", "text"),
    [
        ("a = 1\nb()  # why\nc = 2", 1, "a = 1\n# why\nc = 2"),
        ("a = 1; b(); c = 2", 1, "a = 1; c = 2"),
        ("a = 1\nc = 2; b()\nd = 3", 2, "a = 1\nc = 2\nd = 3"),
        ("b()", 0, "pass"),
        # it would show another value
        ("a\nb()", 1, ""),
        ("a = 1\nb()", 1, "a = 1\n"),
    ],
)
def test_statements_are_deleted(source: str, number: int, text: str) -> None:
    done = edited(source, lambda edit, body: edit.delete(body[number]))
    assert done == text


def test_statements_of_one_line_are_deleted_together() -> None:
    def change(edit: SourceEdit, body: Body) -> None:
        edit.delete(body[0])
        edit.delete(body[1])

    assert edited('a = "1;"; b = 2; c = 3', change) == "c = 3"


def test_a_block_is_never_empty() -> None:
    def change(edit: SourceEdit, body: Body) -> None:
        (loop,) = body
        assert isinstance(loop, ast.For)
        for statement in loop.body:
            edit.delete(statement)

    assert edited("for x in xs:\n    f(x)\n    g(x)", change) == (
        "for x in xs:\n    pass\n"
    )


def test_statements_are_put_under_a_manager() -> None:
    source = "if x:\n    y = '''\n'''\n\n    # so\n    z = (y +\nx)\n    print(z)"

    def change(edit: SourceEdit, body: Body) -> None:
        (test,) = body
        assert isinstance(test, ast.If)
        edit.under(test.body[:2], "x")

    assert edited(source, change) == (
        "if x:\n    with x:\n        y = '''\n'''\n\n        # so\n"
        "        z = (y +\n    x)\n    print(z)"
    )


@pytest.mark.parametrize(
    ("source", "text"),
    [
        # a name that the cell does not have
        ("y = x", "model"),
        ("y = x", "("),
        # what is displayed stays so
        ("x", "y = x"),
        ("y = f'{x}'", "x"),
        ("y = x\n" * 1_001, "x"),
        ("y = " + "x + " * 3_000 + "x", "x"),
        ("y = (", "x"),
    ],
)
def test_what_is_not_sure_is_not_written(source: str, text: str) -> None:
    def change(edit: SourceEdit, body: Body) -> None:
        for node in ast.walk(ast.Module(body, [])):
            if isinstance(node, ast.Name) and node.id == "x":
                edit.replace(node, text)
                return

    assert not edited(source, change)


def test_only_changed_lines_are_shown() -> None:
    lines = changed_lines("a\nb\nc\nd\ne\nf", "a\nb\nc\nd\nE\nf")
    assert lines == "@@ -3,4 +3,4 @@\n c\n d\n-e\n+E\n f"
    assert not changed_lines("a", "") and not changed_lines(None, "a")


@pytest.mark.parametrize(
    ("call", "changed"),
    [
        ("f()", "f(z=1)"),
        ("f((a), )", "f((a), z=1)"),
        ("f(\n  a,\n  b,  # c)\n)", "f(\n  a,\n  b, z=1,  # c)\n)"),
        ("f(a, z=(2))", "f(a, z=(1))"),
        ("f(*a, **k)", "f(*a, **k, z=1)"),
        ("f(x for x in a)", ""),
    ],
)
def test_a_call_is_given_an_argument(call: str, changed: str) -> None:
    code = CellCode(call)
    edit = SourceEdit(code)
    (node,) = [one for one in ast.walk(code.tree) if isinstance(one, ast.Call)]
    edit.arguments(node, {"z": "1"})
    assert edit.source() == changed
