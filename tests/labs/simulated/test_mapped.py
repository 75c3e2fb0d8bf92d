"""Page-locked memory of the host that kernels read and write themselves."""

from __future__ import annotations

import re
import textwrap
from typing import Any

import numpy as np
import pytest
import torch

from tests.labs.simulated.learner_file import Done, Failed, judged_file, kinds
from warpbook_labs.engines.simulated.judging.calls import rates
from warpbook_labs.engines.simulated.program import Place

ROWS, WIDTH = 512, 64
ROW_BYTES = 4 * WIDTH
SEEN = """
import torch

class Address:
    def __init__(self, pinned, **changed):
        self.__cuda_array_interface__ = {
            "version": 3,
            "shape": tuple(pinned.shape),
            "typestr": "<f4",
            "data": (pinned.data_ptr(), False),
            **changed,
        }

def seen_by_gpu(pinned, **changed):
    return torch.as_tensor(Address(pinned, **changed), device="cuda")

def prepare(n):
    return None

def run(state, x, out):
"""


def judged(
    body: str,
    place: Place = "pinned",
    out_place: Place = "pinned",
) -> tuple[Done, np.ndarray]:
    """Record `run` with zeros, and judge it with other numbers."""
    text = textwrap.indent(textwrap.dedent(body).strip("\n"), "    ")
    x = np.random.default_rng(3).standard_normal((ROWS, WIDTH), np.float32)
    return judged_file(SEEN + text, [x], place, out_place), x


def test_a_kernel_reads_and_writes_memory_of_the_host() -> None:
    body = """
    seen = seen_by_gpu(x)
    assert seen.is_cuda and not seen.is_pinned() and x.is_pinned()
    assert seen.data_ptr() == x.data_ptr()
    torch.add(seen, 1, out=seen_by_gpu(out))
    torch.cuda.synchronize()
    """
    done, x = judged(body)
    assert kinds(done) == []
    np.testing.assert_array_equal(done.outputs[0]["out"], x + 1)
    counts = done.counts[0]
    assert counts.h2d_bytes == counts.d2h_bytes == x.nbytes
    assert (counts.copies, counts.launches) == (0, 1)
    assert counts.compute_ns >= x.nbytes / rates.MAPPED_READ_BYTES_PER_S * 1e9


@pytest.mark.parametrize(
    ("rows", "read_bytes"),
    [
        ("seen[:100]", 100 * ROW_BYTES),
        ("seen[::2]", ROWS // 2 * ROW_BYTES),
        # a sector of the cache for four bytes of each row
        ("seen[:, 3]", ROWS * 32),
        ("seen[:, ::4]", ROWS * ROW_BYTES),
        ("seen.index_select(0, torch.arange(7, device='cuda') * 9)", 7 * ROW_BYTES),
        ("seen.index_select(1, torch.arange(7, device='cuda') * 9)", 7 * ROWS * 32),
        # neighbours come together, as in a slice
        ("seen.index_select(1, torch.arange(7, device='cuda'))", ROWS * 32),
        ("seen.view(-1)[torch.arange(70, device='cuda')]", 288),
        ("seen[torch.zeros(7, dtype=torch.int64, device='cuda')]", 7 * ROW_BYTES),
        ("seen[torch.zeros(0, dtype=torch.int64, device='cuda')]", 0),
        ("seen[0, 0].expand(9, 9)", 32),
        # of rows in a part of their columns, that part
        ("seen[i * 9, 8:24]", 7 * 64),
        ("seen[i * 9, 8]", 7 * 32),
        ("seen[i * 9, i]", 7 * 32),
        ("seen[3, i[:4]]", 32),
        ("seen[i - 7]", 7 * ROW_BYTES),
        ("seen.take(torch.arange(70, device='cuda') + i[0])", 288),
        ("seen.take(i * 2)", 7 * 32),
        ("seen.gather(0, i[:, None].expand(7, 64))", 7 * ROW_BYTES),
        ("seen.gather(1, i[:2].expand(512, 2))", 512 * 32),
        ("seen.gather(1, (i[:2] * 5).expand(9, 2))", 18 * 32),
        ("seen.take_along_dim(i[:, None], 0)", 7 * ROW_BYTES),
        ("torch.embedding(seen, i)", 7 * ROW_BYTES),
        ("torch.nn.Embedding.from_pretrained(seen)(i)", 7 * ROW_BYTES),
    ],
)
def test_what_crosses_the_link_is_what_a_kernel_reads_in_whole_sectors(
    rows: str, read_bytes: int
) -> None:
    body = f"seen = seen_by_gpu(x)\nhere = {rows}\nhere = here + 0"
    if "arange" in rows or "zeros" in rows or re.search(r"\bi\b", rows):
        numbers = "i = torch.arange(7, device='cuda')"
        body = f"seen = seen_by_gpu(x)\n{numbers}\nhere = {rows}"
    done, _ = judged(body + "\nout.zero_()")
    assert done.counts[0].h2d_bytes == read_bytes


def test_what_is_read_twice_crosses_twice_and_short_rows_take_as_long_as_longer() -> (
    None
):
    body = "seen = seen_by_gpu(x)\n{}\nout.zero_()"
    once, x = judged(body.format("seen.abs()"))
    twice, _ = judged(body.format("seen.abs()\nseen.abs()"))
    assert once.counts[0].h2d_bytes == x.nbytes
    assert twice.counts[0].h2d_bytes == 2 * x.nbytes
    many = "which = torch.zeros(40000, dtype=torch.int64, device='cuda')\n"
    rows = many + "seen[:, :{}].index_select(0, which)"
    short, longer = (
        judged(body.format(rows.format(width)))[0].counts[0].kernel_ns
        for width in (1, 32)
    )
    assert short == pytest.approx(longer, rel=0.05)
    assert short > 40_000 * rates.MAPPED_ROW_NS


def test_the_host_may_not_touch_what_a_kernel_still_reads_or_writes() -> None:
    writes = """
    torch.add(seen_by_gpu(x), 1, out=seen_by_gpu(out))
    {wait}
    out.mul_(2)
    """
    wait = "torch.cuda.synchronize()"
    early, _ = judged(writes.format(wait=""))
    assert kinds(early) == ["host read too early"]
    assert "nobody waits for a kernel" in early.findings[0].message
    late, x = judged(writes.format(wait=wait))
    assert kinds(late) == []
    np.testing.assert_array_equal(late.outputs[0]["out"], (x + 1) * 2)
    reads = """
    staged = torch.empty(512, 64, pin_memory=True)
    staged.copy_(x)
    here = seen_by_gpu(staged) + 0
    {wait}
    staged.zero_()
    out.copy_(here)
    """
    early, _ = judged(reads.format(wait=""))
    assert len(kinds(early)) == 1
    assert kinds(judged(reads.format(wait=wait))[0]) == []


@pytest.mark.parametrize(
    "chosen",
    [
        "seen[which]",
        "seen[which, :]",
        "seen[which, ...]",
        "seen[which.view(7, 1)].view(7, 64)",
        "torch.nn.functional.embedding(which, seen)",
        "torch.embedding(seen, which)",
        "torch.nn.Embedding.from_pretrained(seen)(which)",
        "seen[which, 0:64]",
        "seen[which - 512]",
        "seen.gather(0, which[:, None].expand(-1, 64))",
        "torch.take_along_dim(seen, which[:, None], 0)",
        "seen.take(which[:, None] * 64 + torch.arange(64, device='cuda'))",
        "torch.nn.functional.embedding(which.view(7, 1), seen).view(7, 64)",
        "seen.view(-1)[which[:, None] * 64 + torch.arange(64, device='cuda')]",
    ],
)
def test_rows_are_chosen_in_many_ways_and_cross_once(chosen: str) -> None:
    body = f"""
    which = torch.arange(7, device="cuda") * 9
    seen = seen_by_gpu(x)
    out.zero_()
    out[:7].copy_({chosen})
    """
    done, x = judged(body)
    assert kinds(done) == []
    np.testing.assert_array_equal(done.outputs[0]["out"][:7], x[:63:9])
    assert done.counts[0].h2d_bytes == 7 * ROW_BYTES


@pytest.mark.parametrize(
    ("put", "written_bytes"),
    [
        ("there[which] = seen[:7]", 7 * ROW_BYTES),
        ("there.index_copy_(0, which, seen[:7])", 7 * ROW_BYTES),
        ("there[which, 8:24] = seen[:7, 8:24]", 7 * 64),
        ("there[which, which] = seen[0, :7]", 7 * 32),
    ],
)
def test_what_is_put_into_memory_of_the_host_crosses_alone(
    put: str, written_bytes: int
) -> None:
    body = f"""
    which = torch.arange(7, device="cuda") * 9
    seen, there = seen_by_gpu(x), seen_by_gpu(out)
    out.zero_()
    {put}
    torch.cuda.synchronize()
    """
    done, x = judged(body)
    assert kinds(done) == []
    assert done.counts[0].d2h_bytes == written_bytes
    there, which = torch.zeros(ROWS, WIDTH), torch.arange(7) * 9
    exec(put, {"there": there, "seen": torch.from_numpy(x), "which": which})
    np.testing.assert_array_equal(done.outputs[0]["out"], there.numpy())


def test_an_address_may_have_strides() -> None:
    body = """
    whole = seen_by_gpu(x, strides=(256, 4))
    turned = seen_by_gpu(x, shape=(64, 512), strides=(4, 256), version=2, stream=None)
    torch.add(whole, turned.t(), out=seen_by_gpu(out, data=(out.data_ptr(), False)))
    """
    done, x = judged(body)
    assert kinds(done) == []
    np.testing.assert_array_equal(done.outputs[0]["out"], 2 * x)


def test_a_graph_reads_the_host_at_each_replay() -> None:
    body = """
    graph, there = torch.cuda.CUDAGraph(), torch.empty(512, 64, device="cuda")
    with torch.cuda.graph(graph):
        torch.add(seen_by_gpu(x), 1, out=there)
    graph.replay()
    graph.replay()
    out.copy_(there)
    """
    done, x = judged(body)
    assert kinds(done) == []
    assert done.counts[0].h2d_bytes == 2 * x.nbytes
    np.testing.assert_array_equal(done.outputs[0]["out"], x + 1)


def refused(body: str, **places: Any) -> str:
    with pytest.raises(Failed) as caught:
        judged(body, **places)
    return str(caught.value)


def test_memory_that_is_not_page_locked_is_not_seen() -> None:
    words = "not registered with any CUDA device"
    assert words in refused("seen_by_gpu(x)", place="pageable")
    assert words in refused("seen_by_gpu(x, data=(0, False))")
    assert "beyond" in refused("seen_by_gpu(x, shape=(513, 64))")
    assert "beyond" in refused("seen_by_gpu(x, shape=(-1, 64))")
    assert "beyond" in refused("seen_by_gpu(x, strides=(260, 4))")
    # PyTorch refuses it too, where it was not asked to see it
    words = "same device"
    assert words in refused("torch.add(x, 1, out=x.to('cuda'))")
    words = "Copy the tensor of the host"
    assert words in refused("out.copy_(seen_by_gpu(x))")


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("torch.as_tensor(Address(x))", "Say device='cuda'"),
        ("torch.as_tensor(Address(x), device='cpu')", "Say device='cuda'"),
        ("torch.tensor(Address(x), device='cuda')", "torch.as_tensor copies nothing"),
        ("seen_by_gpu(x, data=(x.data_ptr(), True))", "read only flag"),
        ("seen_by_gpu(x, data=[x.data_ptr(), False])", "must be a 2-tuple"),
        ("seen_by_gpu(x, shape=None)", "attribute `shape` must exist"),
        ("seen_by_gpu(x, typestr=torch.float32)", "`typestr` must be a string"),
        ("seen_by_gpu(x, strides=(256,))", "same length as shape"),
        ("seen_by_gpu(x, strides=(256, 2))", "not a multiple of the element byte size"),
        ("seen_by_gpu(x, strides=(256, -4))", "that go back"),
    ],
)
def test_an_address_that_pytorch_takes_otherwise_is_refused(
    source: str, words: str
) -> None:
    assert words in refused(source)


def test_rows_do_not_go_where_they_are_chosen_from() -> None:
    body = """
    which = torch.arange(512, device="cuda")
    here = seen_by_gpu({})
    torch.index_select({}, 0, which, out=here)
    """
    words = "refer to a single memory location"
    assert words in refused(body.format("out", "here"))


KEPT = """
def filled():
    held = torch.empty(512, 64, pin_memory=True)
    held.copy_(x)
    return seen_by_gpu(held{keeps})
{body}
torch.cuda.synchronize()
"""


def test_memory_of_the_host_is_kept_by_who_names_its_address_or_not_at_all() -> None:
    body = "seen = filled()\ntorch.add(seen, 1, out=seen_by_gpu(out))"
    done, x = judged(KEPT.format(keeps=", tensor=held", body=body))
    assert kinds(done) == []
    np.testing.assert_array_equal(done.outputs[0]["out"], x + 1)
    assert "is gone" in refused(KEPT.format(keeps="", body=body))


def test_memory_of_the_host_is_kept_until_the_kernels_that_read_it_are_done() -> None:
    body = """
    held = torch.empty(512, 64, pin_memory=True)
    held.copy_(x)
    seen = seen_by_gpu(held, tensor=held)
    here = seen + 0
    {after}
    del held, seen
    out.zero_()
    """

    def messages_after(after: str) -> list[str]:
        done, _ = judged(body.format(after=after))
        return [finding.message for finding in done.findings]

    (message,) = messages_after("")
    assert (
        "tensor of line 21 is released while `add` of line 24 on the default stream"
        in message
    )
    assert "may still read it by its address" in message
    assert messages_after("torch.cuda.synchronize()") == []
    # PyTorch waits for a copy of its own, and so for what its stream did before
    assert messages_after("here.copy_(held, non_blocking=True)") == []
    assert len(messages_after("here.copy_(held, non_blocking=True); seen + 0")) == 1
