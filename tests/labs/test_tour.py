"""The tour runs from top to bottom in a real kernel, with torch and without."""

import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

TOUR = Path(__file__).parents[2] / "labs" / "tour" / "warpbook-tour.ipynb"
NO_TORCH = "raise ImportError('torch is hidden by the test')"


def ran(cwd: Path) -> list[Any]:
    notebook = nbformat.read(TOUR, as_version=4)
    client = NotebookClient(
        notebook,
        timeout=120,
        kernel_name="python3",
        resources={"metadata": {"path": cwd}},
    )
    client.execute()
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def text(cells: list[Any]) -> str:
    return "\n".join(
        output.get("text", "") or output.get("data", {}).get("text/plain", "")
        for cell in cells
        for output in cell.outputs
    )


def assert_no_error_and_quiet_loading(cells: list[Any]) -> None:
    assert cells[0].source == "%load_ext warpbook" and cells[0].outputs == []
    kinds = {output.output_type for cell in cells for output in cell.outputs}
    assert "error" not in kinds
    assert not any(
        output.get("name") == "stderr" for cell in cells for output in cell.outputs
    )


def assert_it_goes_through_all_doors(said: str) -> None:
    assert "compute-bound: Kernels that compute on the FP32 cores" in said
    assert re.search(r"Multiply in bfloat16: .* instead of about [\d.]+ ms", said)
    assert "vector-add" in said
    assert "LoRA of rank 16" in said
    words = TOUR.read_text()
    for name in ("Why is my cell slow?", "Open a trace", "Learn", "quiz", "paths"):
        assert name in words


def test_it_is_valid_and_saved_without_outputs() -> None:
    notebook = nbformat.read(TOUR, as_version=4)
    nbformat.validate(notebook)
    for cell in notebook.cells:
        assert not cell.get("outputs") and not cell.get("execution_count")


def test_it_runs_with_torch(tmp_path: Path) -> None:
    cells = ran(tmp_path)
    assert_no_error_and_quiet_loading(cells)
    said = text(cells)
    assert "aten::addmm" in said
    assert re.search(r"wall +[\d.]+ ms +-> +[\d.]+ ms", said)
    assert_it_goes_through_all_doors(said)
    assert "application/vnd.jupyter.widget-view+json" in {
        mime
        for cell in cells
        for output in cell.outputs
        for mime in output.get("data", {})
    }


def test_without_torch_a_recorded_step_stands_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hidden = tmp_path / "hidden"
    (hidden / "torch").mkdir(parents=True)
    (hidden / "torch" / "__init__.py").write_text(NO_TORCH)
    monkeypatch.setenv("PYTHONPATH", str(hidden))
    cells = ran(tmp_path)
    assert_no_error_and_quiet_loading(cells)
    said = text(cells)
    assert "a training step of a Transformer layer, NVIDIA H200" in said
    assert re.search(r"[\d.]+ ms +4 x  sm80_xmma_gemm_f32f32", said)
    assert "needs PyTorch" not in said
    assert_it_goes_through_all_doors(said)
