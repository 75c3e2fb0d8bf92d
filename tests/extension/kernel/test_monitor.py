"""`warpbook.Monitor()`: the kernel's side of the live widget."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import warpbook

STATIC = Path(warpbook.__file__).parent / "kernel" / "static"


def test_importing_warpbook_is_light() -> None:
    heavy = "{'torch', 'numpy', 'bokeh', 'anywidget', 'IPython', 'tornado', 'pynvml'}"
    program = f"import sys, warpbook; print({heavy} & set(sys.modules))"
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert found.stdout == "set()\n"


def test_loading_the_extension_imports_neither_torch_nor_numpy() -> None:
    program = (
        "import sys; from warpbook.kernel import magics;"
        "print({'torch', 'numpy', 'bokeh', 'jupyter_server'} & set(sys.modules))"
    )
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert found.stdout == "set()\n"


def test_the_widget_carries_what_to_show_and_the_browsers_part(shell: Any) -> None:
    widget = warpbook.Monitor(["sm_active_ratio"], gpu=1, window_s=30, height=200)
    shown = widget.get_state()
    assert shown["metrics"] == ["sm_active_ratio"]
    assert (shown["gpu"], shown["window_s"], shown["height"]) == (1, 30.0, 200)
    assert shown["_esm"] == (STATIC / "monitor.js").read_text("utf-8")
    assert shown["_css"] == (STATIC / "monitor.css").read_text("utf-8")
    assert shown["note"] == ""
    widget.close()


def test_by_default_it_shows_every_gpu_and_leaves_the_metrics_open() -> None:
    shown = warpbook.Monitor().get_state()
    assert (shown["metrics"], shown["gpu"], shown["window_s"]) == (None, None, 60.0)


def test_text_stands_in_where_widgets_do_not_work() -> None:
    data = warpbook.Monitor(gpu=2)._repr_mimebundle_()
    text = (data[0] if isinstance(data, tuple) else data)["text/plain"]
    assert "GPU 2" in text and "%gpu" in text


def test_a_server_of_another_version_is_noted(shell: Any, ingest: Any) -> None:
    ingest.state = b'{"protocol": 99, "version": "9.0"}'
    assert "warpbook 9.0" in warpbook.Monitor().note


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"metrics": ["sm_active"]}, "Did you mean 'sm_active_ratio'"),
        ({"metrics": ["<b>"]}, "There is no metric '<b>'"),
        ({"gpu": -1}, "index of a GPU"),
        ({"gpu": "0"}, "index of a GPU"),
        ({"gpu": True}, "index of a GPU"),
        ({"window_s": 0}, "window_s is a number from 5 to 600"),
        ({"window_s": float("nan")}, "window_s is a number"),
        ({"height": 10**9}, "height is a number from 60 to 600"),
        ({"height": "tall"}, "height is a number"),
    ],
)
def test_arguments_that_make_no_sense_are_refused_in_words(
    arguments: dict[str, Any], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        warpbook.Monitor(**arguments)


def test_there_is_nothing_else_in_the_package() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Montior'"):
        _ = warpbook.Montior  # type: ignore[attr-defined]
