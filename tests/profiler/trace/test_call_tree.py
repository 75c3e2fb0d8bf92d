"""Who called whom: the tree of a trace with stacks, by module and by function."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import msgspec
import pytest

from tests.programs import ROOT
from warpbook_profiler.files.chrome import read_chrome_trace
from warpbook_profiler.model.cell_profile import CallNode, CellProfile
from warpbook_profiler.verdict.analysis import analyse

TRACES = ROOT / "tests" / "data" / "traces"
#: three steps of a small model on a CPU, with stacks and modules: torch 2.13
WITH_STACK = ROOT / "tests" / "data" / "stacks" / "with_stack.json.gz"
OF_CALLS = ("call_tree", "modules", "functions")


def profile(path: Path) -> CellProfile:
    return analyse(*read_chrome_trace(str(path)))


def chain(tree: tuple[CallNode, ...], node: CallNode) -> list[str]:
    names = [node.name]
    while node.parent != -1:
        node = tree[node.parent]
        names.insert(0, node.name)
    return names


@pytest.fixture(scope="module")
def stacked() -> CellProfile:
    return profile(WITH_STACK)


def test_a_call_stands_below_its_caller_and_takes_no_longer(
    stacked: CellProfile,
) -> None:
    tree = stacked.call_tree
    below: dict[int, int] = {}
    for place, node in enumerate(tree):
        assert node.parent < place
        # nobody recorded a GPU: its time is not known, and not 0
        assert node.host_ns > 0 and node.gpu_ns is None
        below[node.parent] = below.get(node.parent, 0) + node.host_ns
    for parent, host_ns in below.items():
        assert parent == -1 or host_ns <= tree[parent].host_ns
    linear = next(node for node in tree if node.name == "aten::linear")
    names = chain(tree, linear)
    # from the program through its modules to the operator
    assert names[0] == "mkstack.py(24): <module>"
    wanted = ["mkstack.py(18): train_step", "nn.Module: Net_0", "nn.Module: Block_0"]
    places = [names.index(name) for name in wanted]
    assert places == sorted(places)
    # three steps, and objects at other addresses in each, are one
    assert linear.calls == 3


def test_modules_and_functions_have_what_was_called_in_them(
    stacked: CellProfile,
) -> None:
    modules = {row.name: row for row in stacked.modules}
    assert {"Net_0", "Block_0", "Block_2", "Linear_5"} <= modules.keys()
    assert all(row.calls == 3 for row in modules.values())
    assert all(row.gpu_ns is None for row in stacked.modules)
    functions = {row.name: row.calls for row in stacked.functions}
    # neither torch's own nor Python's
    assert functions == {
        "mkstack.py(24): <module>": 1,
        "mkstack.py(18): train_step": 3,
        "mkstack.py(14): forward": 3,
        "mkstack.py(8): forward": 9,
    }


def test_steps_of_a_schedule_are_listed(stacked: CellProfile) -> None:
    assert [step.number for step in stacked.steps] == [1, 2, 3]
    assert all(step.time_ns > 0 and step.busy_ns is None for step in stacked.steps)
    assert profile(TRACES / "train_fp32.json.gz").steps == ()


def test_stacks_change_nothing_else(stacked: CellProfile, tmp_path: Path) -> None:
    content = json.loads(gzip.decompress(WITH_STACK.read_bytes()))
    content["traceEvents"] = [
        event
        for event in content["traceEvents"]
        if event.get("cat") != "python_function"
    ]
    plain = tmp_path / "plain.json"
    plain.write_text(json.dumps(content))
    without = profile(plain)
    for name in CellProfile.__struct_fields__:
        if name not in OF_CALLS:
            assert getattr(without, name) == getattr(stacked, name), name


def test_gpu_work_belongs_to_the_operators_that_launched_it() -> None:
    trained = profile(TRACES / "train_fp32.json.gz")
    tops = [node for node in trained.call_tree if node.parent == -1]
    assert trained.kernel_time_ns is not None and trained.copy_time_ns is not None
    launched_ns = sum(row.time_ns for row in trained.paths if row.path[0] != "(")
    # without the parts that are too small to see
    gpu_ns = sum(node.gpu_ns or 0 for node in tops)
    assert 0.99 * launched_ns <= gpu_ns <= launched_ns
    assert any(node.name == "aten::addmm" for node in trained.call_tree)


def test_deep_and_many_chains_are_bounded(tmp_path: Path) -> None:
    events = [
        {
            "ph": "X",
            "cat": "python_function",
            "name": f"deep.py({depth}): call",
            "ts": depth,
            "dur": 2_000 - 2 * depth,
            "pid": 1,
            "tid": 1,
        }
        for depth in range(900)
    ]
    operator = {"cat": "cpu_op", "name": "aten::add", "ts": 950, "dur": 10}
    events.append({"ph": "X", "pid": 1, "tid": 1, **operator})
    path = tmp_path / "deep.json"
    path.write_text(json.dumps({"traceEvents": events}))
    tree = profile(path).call_tree
    assert len(tree) <= 200
    assert len(msgspec.json.encode(tree)) < 40_000
