"""Recurrent cells that a loop writes out, gate by gate."""

from __future__ import annotations

import pytest

from tests.profiler.advice.styles.harness import Program, advised

_SETUP = (
    "W, U, R = (torch.randn(n * H, H, device=dev) / 8 for n in (4, 4, 1))\n"
    "b, norm = torch.zeros(4 * H, device=dev), nn.LayerNorm(H, device=dev)\n"
    "norm.requires_grad_(False)\n"
    "x = torch.randn(T, 8, H, device=dev)\n"
    "h, c = torch.zeros(2, 8, H, device=dev)\nout = []\n"
)
_LSTM = (
    "for t in range(T):\n"
    "    i, f, g, o = (x[t] @ W.T + h @ U.T + b).chunk(4, 1)\n"
    "    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)\n"
    "    h = torch.sigmoid(o) * torch.tanh(c)\n"
    "    out.append(h)\n"
)
_OF_EACH_GATE = (
    "for row in x:\n"
    "    keep = torch.sigmoid(row @ W[:H].T + h @ U[:H].T)\n"
    "    take = torch.sigmoid(row @ W[H : 2 * H].T + h @ U[H : 2 * H].T)\n"
    "    new = torch.tanh(row @ W[2 * H : 3 * H].T + h @ U[2 * H : 3 * H].T)\n"
    "    shown = torch.sigmoid(row @ W[3 * H :].T + h @ U[3 * H :].T)\n"
    "    c = keep * c + take * new\n"
    "    h = shown * torch.tanh(c)\n"
)
_GRU = (
    "for row in x:\n"
    "    z, r, n, _ = F.linear(row, W, b).chunk(4, -1)\n"
    "    hz, hr, hn, _ = F.linear(h, U).chunk(4, -1)\n"
    "    z, r = torch.sigmoid(z + hz), torch.sigmoid(r + hr)\n"
    "    h = (1 - z) * torch.tanh(n + r * hn) + z * h\n"
)


def _named(source: str) -> list[str]:
    sizes = {"T": 40, "H": 64}
    program = Program("cell", "", _SETUP, f"{source}y = h\n", large=sizes, small=sizes)
    return [one.name for one in advised(program)[0]]


@pytest.mark.parametrize(
    ("source", "name"),
    [
        (_LSTM, "whole-lstm"),
        (_OF_EACH_GATE, "whole-lstm"),
        (_GRU, "whole-gru"),
    ],
)
def test_gates_that_a_loop_computes_are_a_cell(source: str, name: str) -> None:
    assert name in _named(source)[:2]


@pytest.mark.parametrize(
    "source",
    [
        # the next input is made of the output
        _LSTM.replace("x[t]", "q").replace("for t", "q = x[0]\nfor t")
        + "    q = h @ R.T\n",
        # no network of torch normalizes its state
        _LSTM.replace("    out", "    h = norm(h)\n    out"),
        "for row in x:\n    h = torch.tanh(row @ R.T + h @ R.T)\n",
        "for row in x:\n    h = torch.tanh(h @ R.T) * torch.sigmoid(row @ R.T)\n",
        _LSTM.replace("range(T)", "range(4)"),
    ],
)
def test_another_recurrence_is_none(source: str) -> None:
    assert not {"whole-lstm", "whole-gru"} & {*_named(source)}
