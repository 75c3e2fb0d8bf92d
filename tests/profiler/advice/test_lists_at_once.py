"""Liberal edits of lists that become tensors one by one: one tensor, and its parts."""

from __future__ import annotations

import pytest

from tests.profiler.advice.test_rewriting import agree, edits

LISTS = (
    "lists = [list(range(n % 4 + 1)) for n in range(9)]\n"
    "keyed = {f'k{n}': {'a': one, 'n': n} for n, one in enumerate(lists)}\n"
)


@pytest.mark.parametrize(
    "source",
    [
        "kept = []\nfor n, one in enumerate(lists):\n"
        "    row = torch.tensor(one, dtype=torch.long)\n"
        "    kept.append(w[0][row].sum() + n)\n",
        "kept = {k: w[0][torch.LongTensor(v['a']).to('cpu')].sum()\n"
        "        for k, v in keyed.items()}\n",
        # in a function, for another one
        "def at(ids):\n    return w[0][ids].mean()\n"
        "def all_of(rows):\n    return torch.stack([\n"
        "        at(torch.tensor(rows[i], device='cpu').long())\n"
        "        for i in range(len(rows))])\nkept = all_of(lists)\n",
        # of pairs, and of as many places as there are
        "kept = []\nfor one in lists:\n"
        "    pair = torch.as_tensor([[a, a + 1] for a in one])\n"
        "    kept.append(pair.sum(0) / len(one))\n",
        # under a name of the turn
        "kept = []\nfor t in keyed.values():\n    ids = t['a']\n"
        "    kept.append(w[0][torch.tensor(\n        ids\n    )].sum() * len(ids))\n",
        "kept = [torch.tensor(t, dtype=torch.float64) @ torch.tensor(t).double()\n"
        "        for t in lists]\n",
        "kept = [torch.tensor(one).float() for one in lists]\n",
    ],
)
def test_parts_of_one_tensor_are_the_same(source: str) -> None:
    found = edits(LISTS + source, "tensor-once")
    assert found and all(agree(LISTS + source, one, "kept") for one in found), found


@pytest.mark.parametrize(
    "source",
    [
        # a turn makes the list, or reads what it is made of otherwise
        "for n in range(9):\n    lists.append([n])\n    y = torch.tensor(lists[n])\n",
        "for one in lists:\n    n += len(one)\n    y = torch.tensor([n] * len(one))\n",
        "for one in lists:\n    y = torch.tensor(one, dtype=kinds[len(one)])\n",
        # not each turn comes to it
        "for one in lists:\n    if one:\n        y = torch.tensor(one)\n",
        "for one in lists:\n    y = len(one) > 2 and torch.tensor(one)\n",
        "y = [torch.tensor(one) for one in lists if one]\n",
        "for one in lists:\n    y = torch.tensor(one)\n    if n:\n        break\n",
        # the same list each time
        "for one in lists:\n    y = torch.tensor([1, 2])\n",
    ],
)
def test_other_lists_stay(source: str) -> None:
    assert not edits(source, "tensor-once")
