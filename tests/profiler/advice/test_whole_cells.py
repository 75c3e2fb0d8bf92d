"""Liberal edits of recurrent cells that a loop steps: what they leave, and refuse."""

from __future__ import annotations

import pytest

from tests.profiler.advice.test_rewriting import agree, edits


@pytest.mark.parametrize(
    ("source", "results"),
    [
        # what is made of each output stays a loop
        (
            "cell, h, outs = torch.nn.GRUCell(6, 6), torch.zeros(4, 6), []\n"
            "for day in x.view(3, 4, 6):\n    h = cell(day, h)\n"
            "    outs.append(torch.tanh(h @ w))\nend = torch.stack(outs)\n",
            ["h", "day", "end"],
        ),
        # a module's two layers, of which one begins with nothing, by keywords
        (
            "class Net(torch.nn.Module):\n    def __init__(self):\n"
            "        super().__init__()\n        self.proj = torch.nn.Linear(6, 5)\n"
            "        self.cells = torch.nn.ModuleList([torch.nn.LSTMCell(5, 5),\n"
            "            torch.nn.LSTMCell(5, 4)])\n    def forward(self, x):\n"
            "        h = c = x.new_zeros(len(x), 5)\n        s, outs = None, []\n"
            "        for t in range(x.shape[1]):\n            a = self.proj(x[:, t])\n"
            "            h, c = self.cells[0](a, (h, c))\n"
            "            s = self.cells[1](input=h, hx=s)\n"
            "            outs.append(s[0] + a[:, :4])\n"
            "        return torch.stack(outs, 1), c, s\nnet = Net()\n"
            "end, c, s = net(x.view(4, 3, 6))\nend.sum().backward()\n"
            "steep = [one.grad for one in net.parameters()]\n"
            "end, c, s = end.detach(), c.detach(), [one.detach() for one in s]\n",
            ["end", "c", "s", "steep"],
        ),
        # outputs are stored backwards, with the number of the step
        (
            "cell = torch.nn.RNNCell(6, 3, bias=False, nonlinearity='relu')\n"
            "h, out = torch.zeros(12, 3), torch.zeros(5, 12, 3)\n"
            "for n, scale in enumerate(reversed([1, 2, 3, 4, 5])):\n"
            "    row = x * scale\n    h = cell(row, h)\n"
            "    out[n] = h.detach() + row[:, :3] * n\n",
            ["out", "row", "n", "scale"],
        ),
    ],
)
def test_steps_of_a_cell_are_one_call(source: str, results: list[str]) -> None:
    (edited,) = edits(source, "whole-gru")
    assert agree(source, edited, *results), edited
    assert edited.count("def all_steps") == 1


@pytest.mark.parametrize(
    "source",
    [
        # the next row comes of an output, also by way of a name
        "for _ in range(9):\n    h = cell(h, h)\n",
        "y = x[:3]\nfor _ in range(9):\n    h = cell(y, h)\n    y = h @ w\n",
        "for row in rows:\n    a = h @ w\n    h = cell(row + a, h)\n",
        # the state is reset, all of it is needed, or each turn has its own cell
        "for row in rows:\n    h = cell(row, h)\n    h = h * 0.5\n",
        "for row in rows:\n    h, c = cell(row, (h, c))\n    seen.append(c)\n",
        "for one in cells:\n    h = one(x, h)\n",
        "for row in rows:\n    h = cell(row, h)\n    if stops:\n        break\n",
    ],
)
def test_other_steps_stay(source: str) -> None:
    assert not edits(source, "whole-gru")


def test_what_is_no_cell_of_torch_is_refused_when_it_runs() -> None:
    source = (
        "def cell(row, h):\n    return row + h\nh = torch.zeros(4, 6)\n"
        "for row in x.view(3, 4, 6):\n    h = cell(row, h)\n"
    )
    (edited,) = edits(source, "whole-gru")
    with pytest.raises(KeyError):
        agree(source, edited, "h")
