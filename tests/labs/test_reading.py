"""Texts beside the labs: whole, opened, their answers computed here again."""

from __future__ import annotations

import ctypes
import re
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
import pytest
import torch

from warpbook_labs.course.overview import overview
from warpbook_labs.course.quiz import QuizQuestion
from warpbook_labs.course.quiz_grading import judge_choice, mark_answers
from warpbook_labs.course.reading import find_text, open_text, read_texts, text_folder
from warpbook_labs.errors import NoText
from warpbook_labs.lab.files import TEXTS
from warpbook_labs.lab.languages.language import Here
from warpbook_labs.lab.texts import figures
from warpbook_profiler.model.calibration import defaults
from warpbook_profiler.model.ceilings import DTYPE_LABELS, ceilings

TEXT_LIST = read_texts()
LABS, _ = overview(Here("13.3", "", True, True, 0), {})
QUESTIONS = [question for text in TEXT_LIST for question in text.questions]


@pytest.mark.parametrize(
    "folder", sorted(TEXTS.iterdir()), ids=lambda folder: folder.name
)
def test_a_text_has_its_pictures_its_sources_and_one_right_choice(folder: Path) -> None:
    [text] = (one for one in TEXT_LIST if text_folder(one.id) == folder)
    words = (folder / "text.md").read_text()
    for name in (*figures(words), *text.files):
        assert "/" not in name and (folder / name).is_file()
    for question in text.questions:
        right = sum(choice.is_right for choice in question.choices)
        assert right == (question.grade == "stated"), question.ask
    assert "![" in words
    body, sources = words.split("\n## Sources\n")
    numbers = set(re.findall(r"\[(\d+)\](?!\()", body))
    listed = set(re.findall(r"^(\d+)\. ", sources, re.MULTILINE))
    assert numbers == listed and listed
    for picture in folder.glob("*.svg"):
        head = picture.read_text()[:600]
        size = re.search(r'<svg[^>]* width="(\d+)" height="(\d+)"', head)
        assert size is not None and int(size[1]) <= 720
        assert 'role="img"' in head and "aria-label=" in head


def test_texts_have_ids_of_their_own_and_go_with_labs_that_are_there() -> None:
    labs = {lab.id for lab in LABS}
    assert [text.number for text in TEXT_LIST] == [1, 2, 3, 4, 5, 6]
    assert not {text.id for text in TEXT_LIST} & labs
    assert {question.lab for question in QUESTIONS} <= labs
    assert {text.id: text.entry.questions for text in TEXT_LIST} == {
        "choosing-a-dtype": 7,
        "cudnn-algorithms": 6,
        "dgx-and-infiniband": 6,
        "inference-ladder": 4,
        "accelerator-generations": 4,
        "memory-hierarchy": 3,
    }


def test_a_text_is_opened_with_its_pictures_and_never_over_the_persons_own(
    tmp_path: Path,
) -> None:
    for text in TEXT_LIST:
        notebook = open_text(text.id, tmp_path / text.id)
        written = nbformat.read(notebook, as_version=4)
        nbformat.validate(written)
        assert f"warpbook labs quiz --text {text.id}" in written.cells[-1].source
        picture = re.search(r"\]\((\S+\.svg)\)", written.cells[0].source)
        assert picture is not None and (notebook.parent / picture[1]).is_file()
        notebook.write_text("mine")
        open_text(text.id, tmp_path / text.id)
        assert notebook.read_text() == "mine"


@pytest.mark.parametrize("name", ["", ".", "..", "../paths", "/etc", "nowhere"])
def test_names_lead_to_texts_and_nowhere_else(name: str, tmp_path: Path) -> None:
    assert text_folder(name) is None
    with pytest.raises(NoText, match="choosing-a-dtype, cudnn-algorithms"):
        open_text(name, tmp_path)


def right_choice(beginning: str) -> str:
    """The text of the right choice of the question that begins so."""
    (question,) = [
        question for question in QUESTIONS if question.ask.startswith(beginning)
    ]
    (choice,) = [
        choice for choice in question.choices if judge_choice(question, choice)[0]
    ]
    return choice.text


def test_pytorch_answers_the_questions_on_dtypes_as_the_text_does() -> None:
    def is_finite(dtype: torch.dtype) -> bool:
        return bool(torch.tensor(100_000.0).to(dtype).isfinite())

    assert not is_finite(torch.float16) and is_finite(torch.bfloat16)
    assert right_choice("A loss has values up to") == "in bfloat16 only"

    counter = torch.zeros(1, dtype=torch.bfloat16)
    while (following := counter + 1) > counter:
        counter = following
    assert right_choice("A bfloat16 counter") == f"at {int(counter)}"

    hundred = torch.tensor([100], dtype=torch.int8)
    assert right_choice("`a` and `b` are int8") == str(int(hundred + hundred))
    total = torch.tensor([100, 100], dtype=torch.int8).sum()
    assert total.dtype == torch.int64
    assert right_choice("`a` is an int8 tensor") == f"{int(total)}, as int64"
    both = torch.ones(1, dtype=torch.float16) + torch.ones(1, dtype=torch.bfloat16)
    name = str(both.dtype).removeprefix("torch.")
    assert right_choice("A float16 tensor is added") == name
    mask_bytes = torch.zeros(4096, 4096, dtype=torch.bool).nbytes
    assert right_choice("How many bytes has a bool mask") == f"{mask_bytes:,}"
    most = torch.finfo(torch.float8_e4m3fn)
    assert most.max > 400 and most.eps < torch.finfo(torch.float8_e5m2).eps
    assert right_choice("Activations reach 400") == "float8_e4m3fn"


def test_what_the_text_on_dtypes_says_of_numbers_is_what_pytorch_computes() -> None:
    words = (TEXTS / "choosing_a_dtype" / "text.md").read_text()
    for name, bytes_each, largest, step in re.findall(
        r"^\| (\w+) \| (\d) \| (\S+) \| 1 \+ (\S+) \|$", words, re.MULTILINE
    ):
        dtype = torch.finfo(getattr(torch, name))
        assert dtype.bits == 8 * int(bytes_each)
        assert dtype.max == pytest.approx(float(largest.replace(",", "")), rel=0.01)
        assert dtype.eps == pytest.approx(float(step), rel=0.03)
    assert len(re.findall(r"^\| \w+ \| \d \|", words, re.MULTILINE)) == 5
    assert torch.tensor([70_000.0]).half().isinf()
    assert int(torch.tensor([70_000.0]).bfloat16()) == 70_144
    assert float(torch.tensor([2048.0]).half() + 1) == 2048
    assert float(torch.tensor([2.0**24 + 1])) == 16_777_216
    assert torch.tensor([1]).dtype == torch.tensor([1.0]).argmax().dtype == torch.int64
    assert (torch.tensor([7]) / torch.tensor([2])).dtype == torch.float32
    assert int(torch.tensor([-7]) // 2) == -4
    assert (torch.ones(1, dtype=torch.int32) + 1.5).dtype == torch.float32
    assert (torch.tensor([1]) + torch.ones(1).half()).dtype == torch.float16
    true = torch.tensor([True])
    assert (true + true).dtype == torch.bool and true.sum().dtype == torch.int64
    assert "67 MB" in words and 8192 * 8192 // 1_000_000 == 67


#: of CUDA's own types no header is read here
C_TYPES = {
    "bool": ctypes.c_bool,
    "unsigned char": ctypes.c_ubyte,
    "signed char": ctypes.c_byte,
    "short": ctypes.c_short,
    "int": ctypes.c_int,
    "long long": ctypes.c_longlong,
    "float": ctypes.c_float,
    "double": ctypes.c_double,
}


def table(text: str, head: str) -> list[list[str]]:
    """The cells of the rows below a head, without the marks of code."""
    words = (TEXTS / text / "text.md").read_text().replace("`", "")
    rows = words[words.index(f"| {head} |") :].partition("\n\n")[0].splitlines()
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


def test_dtypes_have_the_names_that_numpy_and_pytorch_give_them() -> None:
    _, _, *rows = table("choosing_a_dtype", "PyTorch | NumPy")
    for name, numpy_name, _, c_type, cuda in rows:
        tensor = torch.zeros(2, dtype=getattr(torch, name))
        if numpy_name == "-":
            with pytest.raises(TypeError):
                tensor.numpy()
        else:
            array = np.zeros(2, numpy_name)
            assert torch.from_numpy(array).dtype == tensor.dtype
        if c_type in C_TYPES:
            assert ctypes.sizeof(C_TYPES[c_type]) == tensor.itemsize
        if cuda != "-":
            (bits,) = re.findall(r"_R_(\d+)", cuda)
            assert int(bits) == 8 * tensor.itemsize
    assert len(rows) == 12


def test_formats_of_generations_are_those_of_the_datasheets() -> None:
    head, _, _, _, *rows = table("accelerator_generations", "| T4 | A100 SXM4")
    names = {"A100 SXM4": "A100-SXM4-80GB", "H100 SXM": "H100 80GB HBM3"}
    for place, product in enumerate(head[1:], start=1):
        sheet = ceilings(f"NVIDIA {names.get(product, product)}")
        assert sheet is not None
        peaks = {
            DTYPE_LABELS[name]: peak / 1e12 for name, peak in sheet.flops_per_s.items()
        } | {"memory, TB/s": sheet.memory_bytes_per_s / 1e12}
        for label, *cells in rows:
            cell = cells[place - 1]
            said = 0.0 if cell == "-" else float(cell.replace(",", ""))
            assert said == pytest.approx(peaks.get(label, 0.0), rel=0.002)


def test_the_picture_of_tiles_has_each_byte_where_the_functions_say() -> None:
    folder = TEXTS / "accelerator_generations"
    (code,) = re.findall(
        r"```python\n(.*?)```", (folder / "text.md").read_text(), re.DOTALL
    )
    places: dict[str, Any] = {}
    exec(code, places)
    picture = (folder / "layouts.svg").read_text()

    def drawn(part: str) -> list[int]:
        group = re.search(rf'<g id="{part}".*?</g>', picture, re.DOTALL)
        assert group
        return [int(place) for place in re.findall(r">(\d+)<", group[0])]

    pieces = [(row, column) for row in range(8) for column in range(0, 32, 4)]
    assert drawn("turing") == [places["turing"](*piece) // 4 for piece in pieces]
    assert drawn("ampere") == [places["ampere"](row, 0) // 32 for row in range(32)]
    for name, rows in (("turing", 8), ("ampere", 32)):
        taken = {
            places[name](row, column) for row in range(rows) for column in range(32)
        }
        assert taken == set(range(32 * rows))


def test_the_memory_hierarchy_has_the_speeds_that_ship() -> None:
    curves = defaults().curves
    picture = (TEXTS / "memory_hierarchy" / "hierarchy.svg").read_text()
    shown = {row[0]: row[2] for row in table("memory_hierarchy", "memory | size, H200")}
    for memory, curve, size in (
        ("L2 cache", "pass", 32 << 20),
        ("device memory (HBM)", "pass", 1 << 30),
        ("host memory, pinned", "copy.to_gpu.pinned", 128 << 20),
        ("host memory, pageable", "copy.to_gpu.pageable", 128 << 20),
    ):
        (point,) = (
            point
            for point in curves[curve]
            if point.amount == pytest.approx(size, rel=0.01)
        )
        number, unit = shown[memory].split()
        speed = float(number) * {"GB/s": 1e9, "TB/s": 1e12}[unit]
        assert speed == pytest.approx(point.amount / point.usual_ns * 1e9, rel=0.02)
        assert f">{shown[memory]}<" in picture


def test_pooling_and_the_network_are_computed_again() -> None:
    corner = torch.nn.functional.avg_pool2d(
        torch.full((1, 1, 1, 1), 8.0), 2, padding=1, count_include_pad=True
    )
    assert right_choice("A corner window") == f"{corner[0, 0, 0, 0]:g}"
    seconds = 16e9 / (8 * 400e9 / 8)
    assert right_choice("16 GB of gradients") == f"{seconds * 1e3:g} ms"
    assert right_choice("How many times as much does NVLink of an H200") == (
        f"{900e9 / 2 / (400e9 / 8):g} times"
    )


def test_sizes_and_times_of_the_ladder_are_computed_again() -> None:
    patches = (512 // 16) ** 2
    scores = torch.empty(12, patches, patches, dtype=torch.bfloat16, device="meta")
    assert right_choice("A block has 12 heads") == f"{scores.nbytes:,}"
    assert (
        right_choice("A matrix product is 60 %") == f"{1 / (0.4 + 0.6 / 2):.2f} times"
    )


def test_blocks_of_python_become_cells_beside_what_they_import(tmp_path: Path) -> None:
    notebook = open_text("inference-ladder", tmp_path)
    written = nbformat.read(notebook, as_version=4)
    assert not any("```" in cell.source for cell in written.cells)
    assert any(cell.source.startswith("%load_ext") for cell in written.cells)
    assert (tmp_path / "ladder.py").is_file()


def test_answers_to_a_text_are_marked_with_reasons() -> None:
    questions: tuple[QuizQuestion, ...] = find_text("choosing-a-dtype").questions
    (mark, *others) = mark_answers(questions, ["a", *"?" * (len(questions) - 1)])
    assert (mark.chosen, mark.right, mark.is_right) == ("a", "b", False)
    assert "65,504" in mark.because and not any(choice.is_right for choice in others)
