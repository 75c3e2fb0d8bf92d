"""Whether two runs did the same work, on programs that no score was fitted to."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn

from tests.profiler.trace.stepped import stepped
from warpbook_profiler.compare.compare import Comparison, compare
from warpbook_profiler.files.file_profile import read_profile
from warpbook_profiler.model.cell_profile import CellProfile

TRACES = Path(__file__).parents[2] / "data" / "traces"


class Sequence(nn.Module):
    """What a recurrent layer makes of a sequence."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.LSTM(32, 48, batch_first=True)
        self.head = nn.Linear(48, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.head(self.layer(x)[0][:, -1])
        return out


def mlp(width: int = 48) -> nn.Module:
    return nn.Sequential(
        nn.Linear(32, width), nn.GELU(), nn.LayerNorm(width), nn.Linear(width, 8)
    )


def training(
    model: nn.Module, *sizes: int, clip: bool = False, fused: bool = False
) -> Callable[[], None]:
    optimizer = torch.optim.AdamW(model.parameters(), fused=fused)
    target = torch.zeros(sizes[0], dtype=torch.long)

    def step() -> None:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(torch.randn(*sizes)), target).backward()
        if clip:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    return step


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, CellProfile]:
    """Traces of torch.profiler, of programs on the CPU."""
    programs = {
        "mlp": training(mlp(), 16, 32),
        "mlp, other batch": training(mlp(), 64, 32),
        "mlp, wider": training(mlp(96), 16, 32),
        "mlp, edited": training(mlp(), 16, 32, clip=True, fused=True),
        "lstm": training(Sequence(), 16, 12, 32),
    }
    folder = tmp_path_factory.mktemp("traces")
    profiles = {}
    for name, step in programs.items():
        step()
        path = folder / f"{name}.json"
        with torch.profiler.profile(record_shapes=True) as profiler:
            step()
            step()
        profiler.export_chrome_trace(str(path))
        profiles[name] = read_profile(str(path)).profile
    profiles["gpu"] = read_profile(str(TRACES / "train_fp32.json.gz")).profile
    amd = folder / "amd.json"
    amd.write_bytes(stepped(100.0, gpu="AMD Instinct MI300X"))
    nvidia = folder / "nvidia.json"
    nvidia.write_bytes(stepped(100.0))
    for path in (amd, nvidia):
        profiles[path.stem] = read_profile(str(path)).profile
    return profiles


@pytest.mark.parametrize(
    ("before", "after", "differs"),
    [
        ("mlp", "mlp, other batch", "sizes"),
        ("mlp", "mlp, wider", "sizes"),
        ("mlp", "mlp, edited", "operators"),
    ],
)
def test_an_edited_program_is_compared_and_what_differs_is_said(
    recorded: dict[str, CellProfile], before: str, after: str, differs: str
) -> None:
    for difference in both_ways(recorded[before], recorded[after]):
        assert difference.verdict != "not comparable"
        assert f"{differs} (" in difference.cautions[0]


@pytest.mark.parametrize(
    ("before", "after", "differs"),
    [
        ("mlp", "lstm", "operators"),
        ("lstm", "gpu", "device"),
        ("nvidia", "amd", "device"),
    ],
)
def test_nothing_is_concluded_from_other_work(
    recorded: dict[str, CellProfile], before: str, after: str, differs: str
) -> None:
    for difference in both_ways(recorded[before], recorded[after]):
        assert difference.verdict == "not comparable"
        assert difference.sentence.startswith("Not the same work (")
        assert "less time" not in difference.sentence
        assert f"{differs} (" in difference.cautions[0]


def test_runs_of_one_cell_are_compared_on_a_condition(
    recorded: dict[str, CellProfile],
) -> None:
    edited = compare(recorded["mlp"], recorded["lstm"], is_one_cell=True)
    other = compare(recorded["mlp"], recorded["lstm"])
    assert edited.verdict in ("less time", "more time", "about the same", "unknown")
    assert "Valid only if both compute the same" in edited.sentence
    assert edited.cautions == other.cautions
    same = compare(recorded["mlp"], recorded["mlp"], is_one_cell=True)
    assert "Valid only if" not in same.sentence


def test_the_version_of_cuda_is_written_as_people_do() -> None:
    one = read_profile(str(TRACES / "train_fp32.json.gz")).profile
    likeness = compare(one, one).likeness
    assert [part.before for part in likeness.parts if part.name == "versions"] == [
        "CUDA 13.0"
    ]


def test_a_file_beside_itself_is_the_same(recorded: dict[str, CellProfile]) -> None:
    for profile in recorded.values():
        difference = compare(profile, profile)
        assert difference.verdict == "about the same"
        assert difference.cautions == ()


def both_ways(one: CellProfile, other: CellProfile) -> list[Comparison]:
    return [compare(one, other), compare(other, one)]
