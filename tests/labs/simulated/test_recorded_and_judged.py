"""What learners write, recorded as in the jail and judged as in the parent."""

from __future__ import annotations

import textwrap

import numpy as np
import pytest

from tests.labs.simulated.learner_file import Done, judged_file, kinds
from warpbook_labs.engines.simulated.program import Place

N, CALLS = 4096, 3


def judged(
    body: str,
    prepare: str = "return None",
    place: Place = "device",
) -> tuple[Done, list[np.ndarray]]:
    """Record `run` with zeros, and judge it with other numbers."""
    source = "import torch\ndef prepare(n):\n"
    source += textwrap.indent(textwrap.dedent(prepare).strip("\n"), "    ")
    source += "\ndef run(state, x, out):\n"
    source += textwrap.indent(textwrap.dedent(body).strip("\n"), "    ")
    rng = np.random.default_rng(7)
    given = [rng.standard_normal(N, np.float32) for _ in range(CALLS)]
    return judged_file(source, given, place), given


def test_ordinary_pytorch_is_right() -> None:
    done, given = judged(
        """
        y = torch.relu(x) * 2 + x.sum()
        y[:100] -= 1
        out.copy_(y.view(64, 64).t().contiguous().view(-1))
        """,
    )
    assert kinds(done) == []
    for x, outputs in zip(given, done.outputs, strict=True):
        y = np.maximum(x, 0) * 2 + x.sum()
        y[:100] -= 1
        np.testing.assert_allclose(
            outputs["out"], y.reshape(64, 64).T.reshape(-1), rtol=1e-5, atol=1e-4
        )


PIPELINE = """
    streams, there = state
    current = torch.cuda.current_stream()
    for stream in streams:
        stream.wait_stream(current)
    size = x.numel() // 8
    for chunk in range(8):
        part = slice(chunk * size, chunk * size + size)
        with torch.cuda.stream(streams[chunk % len(streams)]):
            there[part].copy_(x[part], non_blocking=True)
            there[part].mul_(2)
            out[part].copy_(there[part], non_blocking=True)
    for stream in streams:
        current.wait_stream(stream)
"""
PREPARED = """
    streams = [torch.cuda.Stream() for _ in range(3)]
    return streams, torch.empty(n, device="cuda")
"""


def test_a_pipeline_of_chunks_is_right() -> None:
    done, given = judged(PIPELINE, PREPARED, "pinned")
    assert kinds(done) == []
    for x, outputs in zip(given, done.outputs, strict=True):
        np.testing.assert_array_equal(outputs["out"], 2 * x)
    assert done.counts[-1].copies == 16
    assert done.counts[-1].device_bytes == 0


def test_one_staging_buffer_for_all_streams_is_a_race() -> None:
    body = PIPELINE.replace("there[part]", "there[:size]")
    done, _ = judged(body, PREPARED, "pinned")
    assert set(kinds(done)) == {"race"}


def test_reading_a_copy_at_once_is_too_early() -> None:
    done, _ = judged(
        """
        host = x.to("cpu", non_blocking=True)
        out.copy_(host + 1)
        """,
    )
    assert kinds(done) == ["host read too early"]
    assert done.findings[0].line == 6


def test_memory_of_a_loop_that_another_stream_uses() -> None:
    body = """
        main = torch.cuda.current_stream()
        for part, result in zip(x.chunk(8), out.chunk(8)):
            doubled = part * 2
            state.wait_stream(main)
            with torch.cuda.stream(state):
                result.copy_(doubled + 1)
            TELL
        main.wait_stream(state)
    """
    prepare = "return torch.cuda.Stream()"
    bad, _ = judged(body.replace("TELL", "pass"), prepare)
    assert set(kinds(bad)) == {"released too early"}
    good, given = judged(body.replace("TELL", "doubled.record_stream(state)"), prepare)
    assert kinds(good) == []
    np.testing.assert_array_equal(good.outputs[-1]["out"], given[-1] * 2 + 1)


GRAPH = """
    static = torch.zeros(n, device="cuda")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            (static * 2).relu()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = (static * 2).relu() + 1
    return graph, static, result
"""


def test_a_graph_with_static_buffers_is_right() -> None:
    body = """
        graph, static, result = state
        static.copy_(x)
        graph.replay()
        out.copy_(result)
    """
    done, given = judged(body, GRAPH)
    assert kinds(done) == []
    for x, outputs in zip(given, done.outputs, strict=True):
        np.testing.assert_array_equal(outputs["out"], np.maximum(x * 2, 0) + 1)
    counts = done.counts[-1]
    assert (counts.graph_launches, counts.launches, counts.captures) == (1, 2, 0)


def test_a_graph_that_is_given_a_new_tensor_is_stale() -> None:
    body = """
        graph, static, result = state
        if not hasattr(graph, "has_run"):
            static.copy_(x)
            graph.has_run = True
        graph.replay()
        out.copy_(result)
    """
    done, _ = judged(body, GRAPH)
    assert kinds(done) == ["stale graph"]


def test_a_number_that_python_took_is_that_of_the_recording() -> None:
    done, given = judged("out.copy_(x - x.max().item())")
    assert done.counts[-1].synchronizations == 1
    assert done.first_look == 5
    assert not np.allclose(done.outputs[-1]["out"], given[-1] - given[-1].max())


#: with a number on the CPU, as a tensor of no dimensions
WITH_A_NUMBER = {
    "a product": "out.copy_(x * torch.tensor(2.5))",
    "a product into `out`": "torch.mul(x, torch.tensor(2.5), out=out)",
    "a quotient": "out.copy_(torch.div(x, torch.tensor(0.4)))",
    "a choice": (
        "factor = torch.where(x == x, torch.tensor(2.5), torch.tensor(0.0))\n"
        "torch.mul(factor, x, out=out)"
    ),
    "filled in": "out.fill_(torch.tensor(2.5))\nout.mul_(x)",
    "one of the GPU filled in": (
        "two = torch.tensor(2.5, device='cuda')\nout.fill_(two)\nout.mul_(x)"
    ),
    "no elements": "x[:0] * torch.tensor(2.5)\nout.copy_(x * 2.5)",
}


@pytest.mark.parametrize("name", WITH_A_NUMBER)
def test_a_number_of_the_processor_may_come_along(name: str) -> None:
    done, given = judged(WITH_A_NUMBER[name])
    assert kinds(done) == []
    expected = given[-1] * np.float32(2.5)
    np.testing.assert_allclose(done.outputs[-1]["out"], expected, rtol=1e-6)


def test_a_number_is_captured_as_it_was() -> None:
    prepare = """
        graph, number = torch.cuda.CUDAGraph(), torch.tensor(2.5)
        static = torch.zeros(n, device="cuda")
        with torch.cuda.graph(graph):
            result = static * number
        number.fill_(7)
        return graph, static, result
    """
    body = """
        graph, static, result = state
        static.copy_(x)
        graph.replay()
        out.copy_(result)
    """
    done, given = judged(body, prepare)
    assert kinds(done) == []
    expected = given[-1] * np.float32(2.5)
    np.testing.assert_allclose(done.outputs[-1]["out"], expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("end", "is_held"),
    [("pass", True), ("graphs[0].reset()", False), ("graphs.clear()", False)],
)
def test_a_graph_holds_its_memory_until_nobody_has_it(end: str, is_held: bool) -> None:
    prepare = """
        graphs = [torch.cuda.CUDAGraph()]
        with torch.cuda.graph(graphs[0]):
            torch.zeros(n, device="cuda").mul(2).add(1)
        return graphs
    """
    body = f"""
        graphs = state
        {end}
        out.copy_(x)
    """
    done, _ = judged(body, prepare)
    assert kinds(done) == []
    assert (done.counts[-1].held_bytes > 0) == is_held
