"""A real decoder with a paged cache, served by the learner's scheduler on the CPU."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.labs.given_cells import ran

pytest.importorskip("torch")

CELL = """
import given, json, torch

def written_alone(model, request):
    def mix(_, *tensors):
        return given.attention(*(t[None] for t in tensors), is_causal=True)[0]

    tokens = list(request.prompt)
    for _ in range(request.output_tokens):
        places = torch.arange(len(tokens))
        tokens += model(torch.tensor(tokens), places, places[-1:], mix).tolist()
    return tokens[len(request.prompt):]

torch.set_num_threads(1)
size = given.ON_CPU | {"hidden": 32, "vocabulary": 64, "requests": 12,
                       "blocks": {blocks}, "output": (2, 24)}
measured = given.measure(size=size, device="cpu", dtype=torch.float64)
model = given.made_model(size, "cpu", torch.float64)
server = given.Server(model, measured["engine"])
requests = given.drawn(size, measured["engine"])
schedule = given.runpy.run_path("answers.py")["schedule"]
server.serve(requests, schedule)
alone = [written_alone(model, request) for request in requests]
print(given.table(measured))
print(json.dumps([measured, alone, [r.generated for r in requests]]))
"""
BROKEN = """
import given, json
size = given.ON_CPU | {"requests": 2, "hidden": 32}
model = given.made_model(size, "cpu", given.torch.float32)
engine, said = given.calibrated(model, size), []
for decision in ({"nobody": 1}, {"r0": 99}, {"r0": -2}, {"r0": 0}):
    try:
        server = given.Server(model, engine)
        server.serve(given.drawn(size, engine), lambda *_: decision)
    except ValueError as problem:
        said.append(str(problem))
print(json.dumps(said))
"""


@pytest.mark.parametrize("blocks", [256, 18])
def test_every_scheduler_writes_what_a_request_alone_does(
    tmp_path: Path, blocks: int
) -> None:
    cell = CELL.replace("{blocks}", str(blocks))
    measured, alone, generated = ran("continuous-batching", tmp_path, cell)
    assert generated == alone
    assert measured["same"] == 1
    for run in measured["runs"].values():
        assert run["tokens"] == sum(map(len, alone))
        assert run["free_blocks"] == blocks
        assert run["tokens_per_s"] > 0 and run["gap_p99_s"] > 0


def test_a_broken_rule_is_named(tmp_path: Path) -> None:
    said = ran("continuous-batching", tmp_path, BROKEN)
    assert said[0] == "nobody is not here."
    assert said[1].startswith("r0 needs ") and said[1].endswith(" tokens, not 99.")
    assert said[2] == "r0: -2 is no number of tokens."
    assert said[3] == "Nothing is computed, and nobody else is to come."
