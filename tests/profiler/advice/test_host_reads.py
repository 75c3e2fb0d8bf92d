"""Liberal edits of what loops read, print and collect: copied once, after the loop."""

from __future__ import annotations

import pytest

from tests.profiler.advice.test_rewriting import agree, edits, named
from warpbook_profiler.advice.candidates import liberal_edits
from warpbook_profiler.advice.code.cell_code import CellCode
from warpbook_profiler.advice.translation.element_reads import listed_elements


@pytest.mark.parametrize(
    ("name", "source", "results"),
    [
        # several reads of a turn, of values of several kinds and shapes
        (
            "read-once",
            "table = []\nfor name, p in parts.items():\n"
            "    low, high = p.amin(), p.amax(0, keepdim=True)\n"
            "    table.append((name, low.item(), int(p.argmax()), high.tolist(),\n"
            "                  bool((p > 2).any()), f'{low * 2:.2f}', len(p)))\n",
            ["table"],
        ),
        (
            "read-once",
            "def told(parts):\n    lines = []\n    for name in parts:\n"
            "        p = parts[name]\n        mean, text = p.mean(), name.upper()\n"
            "        lines += [f'{text} {mean:.3f} {float(p.std()):.1e}']\n"
            "    return lines\nlines = told(parts)\n",
            ["lines"],
        ),
        (
            "stack-results",
            "from types import SimpleNamespace as Row\nkept = {'a': []}\n"
            "for n in range(9):\n    y = x[: n % 2 + 3].T\n    z = y @ y.T\n"
            "    kept['a'].append(Row(y=(y * 2).cpu(), z=z.to('cpu').numpy()))\n"
            "rows = [(one.y, one.y.stride(), one.z) for one in kept['a']]\n",
            ["rows"],
        ),
        # tensors that are printed as they are
        (
            "print-once",
            "y = x.clone()\nfor step in range(6):\n    norm = y.norm()\n"
            "    print('step', step, 'norm', norm, y[0, :2] * 2, sep=' | ')\n"
            "    y = y @ w\n",
            ["y", "step", "norm"],
        ),
        (
            "print-once",
            "def fit(y):\n    for step, row in enumerate(x):\n        y = y + row\n"
            "        gap = (y - row).abs().max()\n        if step % 3 == 0:\n"
            "            print(step, gap)\n    return y\ny = fit(x[0])\n",
            ["y"],
        ),
        # what a function reads for a turn
        (
            "read-once",
            "def told(p, scale=2.0):\n    high = p.max() * scale\n"
            "    return {'mean': p.mean().item(), 'high': float(high)}\n"
            "summary = {name: told(p) for name, p in parts.items()}\n",
            ["summary"],
        ),
        (
            "read-once",
            "def rate(p):\n    return (p @ w).sum().item()\n"
            "high = max([rate(p) for p in parts.values() if len(p) > 4])\n",
            ["high"],
        ),
        (
            "stack-results",
            "def rate(p, by):\n    p = p @ by\n    return p.mean(0).cpu()\n"
            "rates = []\nfor n in parts:\n    rates.append(rate(by=w, p=parts[n]))\n"
            "rates = torch.stack(rates)\n",
            ["rates"],
        ),
        # it gives no value, or branches
        (
            "read-once",
            "kept = []\ndef f(p):\n    kept.append(p.sum().item())\n"
            "for p in x:\n    f(p)\n",
            ["kept"],
        ),
        (
            "read-once",
            "def f(p):\n    if len(p):\n        p = -p\n    return p.sum().item()\n"
            "kept = []\nfor p in x:\n    kept.append(f(p))\n",
            ["kept"],
        ),
        # under a manager of torch
        (
            "read-once",
            "total, right = 0.0, 0\nfor n, row in enumerate(x):\n"
            "    with torch.no_grad():\n        out = layer(row)\n"
            "        total += out.square().sum().item()\n"
            "        right += (out.argmax() == n % 3).sum().item()\n",
            ["total", "right"],
        ),
        # each of what a generator gives is of its own, in its order
        (
            "read-once",
            "kept = []\nfor p in x:\n    q = p * 2\n"
            "    kept.append(sum((q * torch.rand(())).sum().item() for _ in x))\n",
            ["kept"],
        ),
        # elements of what no turn changes
        (
            "read-once",
            "scores, kept, worst = (x @ w).sum(1), [], -1e9\n"
            "for i in range(len(scores)):\n    if scores[i].item() > 0.5:\n"
            "        kept.append(i)\n    if float(scores[i]) > worst:\n"
            "        worst = scores[i].item()\n",
            ["kept", "worst"],
        ),
        (
            "read-once",
            "near, t = [], torch.cdist(x, x).half()\nfor i in range(12):\n"
            "    for j in range(i):\n"
            "        if t[i, j].item() < 3 and int(t[i][j]) % 2:\n"
            "            near.append(f'{i}-{j}: {t[i, j].item():.3f} {t[i][j]:.1f}')\n",
            ["near"],
        ),
        (
            "read-once",
            "high, t = {}, (x @ w).amax(1, keepdim=True)\n"
            "for n, row in enumerate(t):\n    if row.item() > 1:\n"
            "        high[n] = row, round(float(row), 3)\n",
            ["high", "row"],
        ),
        (
            "read-once",
            "def f(y):\n    order = y[:, 0].argsort()\n    i, s = 0, 0.0\n"
            "    while i < len(y) and y[order[i].item(), 1].item() < 1:\n"
            "        s += y[int(order[i]), 1].item()\n        i += 1\n"
            "    return i, s\nkept = f(x)\n",
            ["kept"],
        ),
        (
            "print-once",
            "t = (x @ w).sum(1)\n"
            "kept = [i for i in range(len(t)) if t[i].item() > 0]\n",
            ["kept"],
        ),
    ],
)
def test_what_was_read_is_the_same(name: str, source: str, results: list[str]) -> None:
    found = [one for one in edits(source, name) if "vmap" not in one]
    assert found and all(agree(source, one, *results) for one in found), found


def test_functions_of_other_cells_are_looked_into() -> None:
    rate = "def rate(p):\n    high = (p @ w).amax()\n    return high.item()\n"
    source = "rates = {}\nfor name, p in parts.items():\n    rates[name] = rate(p)\n"
    found = liberal_edits(source, (named("read-once"),), True, {"rate": rate})
    (edited, *_) = [one.code for one in found if "vmap" not in one.code]
    assert "rate(" not in edited and agree(rate + source, edited, "rates")


@pytest.mark.parametrize(
    "source",
    [
        # it returns early, or is given what has no name
        "def f(p):\n    if n:\n        return 0\n    return p.sum().item()\n"
        "for p in x:\n    kept.append(f(p))\n",
        "def f(*p):\n    return p[0].sum().item()\n"
        "for p in x:\n    kept.append(f(*p))\n",
        # names of the function around the loop are none of those that it reads
        "def f(p):\n    return (p * scale).sum().item()\n"
        "def g(x, scale):\n    for p in x:\n        kept.append(f(p))\n",
        # a manager that does more
        "for p in x:\n    with timed():\n        kept.append(p.sum().item())\n",
        # a generator that may not be asked for all its values
        "for p in x:\n    q = p * 2\n"
        "    kept.append(any((q * torch.rand(())).sum().item() > 4 for _ in x))\n",
    ],
)
def test_other_functions_stay(source: str) -> None:
    assert not edits(source, "print-once")


@pytest.mark.parametrize(
    "source",
    [
        # elements that a turn changes: itself, by another name, an item, a function
        "t = x[:, 0].clone()\nfor i in range(11):\n    if t[i].item() > 0:\n"
        "        t[i + 1] = 0\n",
        "t = x[:, 0].clone()\nu = t.view(-1)\nfor i in range(11):\n"
        "    if t[i].item() > 0:\n        u[i + 1] = 0\n",
        "t = x.clone()\nfor row in t:\n    if row[0].item() > t[0, 1].item():\n"
        "        row += 1\n",
        "t = x[:, 0].clone()\ndef f(i):\n    t[i + 1] -= 1\n"
        "for i in range(11):\n    if t[i].item() > 0:\n        f(i)\n",
        "for i in range(5):\n    if w[0, i].item() > 0:\n        opt.step()\n",
        # its memory in a tuple, a list, a dictionary, or either of two; what a function
        # writes to without a name that tells so
        *(
            "t = x[:, 0].clone()\nu = x[:, 1].clone()\ng = iter(t.view_as(t))\n"
            f"{before}\ns = 0\n"
            f"for i in range(11):\n    s += t[i].item()\n    {change}\n"
            for before, change in (
                ("a, b = t[:2], t[2:]", "b[b < 0] = 0"),
                ("a, (b, c) = u, t.chunk(2)", "c[c < 0] = 0"),
                ("both = [u, t]", "both[1][t < 0] = 0"),
                ("both = {'t': t}", "both['t'][i] = 0"),
                ("a = u if len(u) > 20 else t", "a[i] = 0"),
                ("", "F.relu(t, inplace=True)"),
                ("", "F.relu(t, True)"),
                ("", "F.leaky_relu(t, 0.1, True)"),
                ("a = t.numpy()", "np.add(a, 1, a)"),
                ("a = t.numpy()", "np.copyto(a, 0)"),
                ("a = t.numpy()", "random.shuffle(a)"),
                ("", "next(g)"),
            )
        ),
        # those of a list
        "t = [one.sum() for one in x]\nfor i in range(11):\n"
        "    if t[i].item() > 0:\n        kept.append(i)\n",
        # what only a condition makes a tensor
        "t = x[:, 0].clone() if len(x) else None\ns = 0\nfor i in range(11):\n"
        "    if t is not None:\n        s += t[i].item()\n",
        # what may run after its statement
        "t = x[:, 0].clone()\nkept = (t[i].item() for i in range(11))\nt += 1\n",
    ],
)
def test_elements_that_may_change_are_read_in_their_turns(source: str) -> None:
    assert not [*listed_elements(CellCode(source))]


def test_elements_beside_what_changes_others_are_listed() -> None:
    source = "a, b = x[0], w.clone()\nfor i in range(11):\n    b[i] = a[i].item()\n"
    calm = "    F.relu(a, inplace=False)\n    np.add(b, 1)\n"
    assert [*listed_elements(CellCode(source + calm))]


def test_elements_are_let_be_in_a_cell_with_many() -> None:
    reads = "".join(f"    s += x[i + {k}].item()\n" for k in range(400))
    assert not [*listed_elements(CellCode(f"for i in range(9):\n{reads}"))]


@pytest.mark.parametrize(
    "source",
    [
        "kept = []\nfor i in range(11):\n    kept.append(losses[i].item())\n",
        "kept = {}\nfor n in parts:\n    kept[n] = parts[n][0, 1].item()\n",
    ],
)
def test_runs_refuse_elements_of_no_tensor(source: str) -> None:
    found = [*listed_elements(CellCode(source))]
    assert found and not any(agree(source, one, "kept") for one in found)
