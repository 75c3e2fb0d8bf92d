"""`warpbook.Monitor()`: the kernel's side of the live widget."""

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

import warpbook
from warpbook.kernel.telemetry.monitor_picture import MIME
from warpbook.protocol import PROTOCOL_VERSION, StateNow
from warpbook_monitors.frames import Device, Frame, Reading, Replay

STATIC = Path(warpbook.__file__).parent / "kernel" / "static"


def test_importing_warpbook_is_light() -> None:
    heavy = "{'torch', 'numpy', 'bokeh', 'anywidget', 'IPython', 'tornado', 'pynvml'}"
    program = f"import sys, warpbook; print({heavy} & set(sys.modules))"
    completed = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert completed.stdout == "set()\n"


def test_loading_the_extension_imports_neither_torch_nor_numpy() -> None:
    program = (
        "import sys; from warpbook.kernel import magics;"
        "print({'torch', 'numpy', 'bokeh', 'jupyter_server'} & set(sys.modules))"
    )
    completed = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert completed.stdout == "set()\n"


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


def test_what_it_showed_is_saved_beside_it(shell: Any, ingest: Any) -> None:
    gpus = [Device(f"gpu:{at}", "gpu", "<i>", at, "replay", ()) for at in range(2)]
    readings = tuple(Reading(at, "lost", (), "<b>gone") for at in range(2))
    frame = Frame(0, 1.7e12, readings)
    ingest.state = msgspec.json.encode(
        StateNow(
            PROTOCOL_VERSION,
            warpbook.__version__,
            tuple(gpus),
            (),
            Replay("r.jsonl", 1.6e12, 1.0, ""),
            frame,
        )
    )
    data, _ = warpbook.Monitor(gpu=1)._repr_mimebundle_()
    html = data["text/html"]
    assert data[MIME] == {"time_ms": 1.7e12}
    # the widget itself comes first, where there are widgets
    assert "application/vnd.jupyter.widget-view+json" in data
    assert "REPLAY of r.jsonl" in html and "when its cell ran, 2023-11-1" in html
    assert "GPU 1" in html and "GPU 0" not in html
    assert "&lt;b&gt;gone" in html and "<b>" not in html


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
        _ = warpbook.Montior


HERE = {"view": "here", "greeted": False}


def test_without_a_server_the_kernel_feeds_the_page_also_while_a_cell_runs(
    stub_nvml: Any, kernel: Any
) -> None:
    stub_nvml.set(0, power_mw=123_000)
    kernel.run("import warpbook; monitor = warpbook.Monitor()")
    kernel.run("import threading; [each.name for each in threading.enumerate()]")
    (widget,) = kernel.widgets
    assert kernel.telemetry == [], "nothing is read before a view asks"
    assert stub_nvml.calls() == 0

    kernel.say(widget, HERE)
    hello = kernel.next_message("hello")
    gpu = hello["devices"][0]
    assert (gpu["kind"], gpu["origin"], hello["rate_hz"]) == ("gpu", "live", 5.0)
    power = [metric["name"] for metric in gpu["metrics"]].index("power_watts")
    while (reading := kernel.next_message("frame")["readings"][0])["state"] != "ok":
        pass
    assert reading["values"][power] == 123.0

    # a view that comes later is greeted too
    kernel.say(widget, HERE)
    kernel.next_message("hello")

    kernel.run(
        "import time, warpbook.kernel.link.view_feed as feed\n"
        "feed.ABANDONED_AFTER_S = 0.4\n"
        "time.sleep(2)"
    )
    # what a view says to a busy kernel waits, so it counts as being there
    seen = [frame["seq"] for frame in kernel.telemetry if frame["type"] == "frame"]
    assert max(seen) - min(seen) > 5

    # without a cell and without a view it rests
    read = -1
    while read != (read := stub_nvml.calls()):
        time.sleep(1)

    kernel.say(widget, HERE)
    assert kernel.next_message("gap")["reason"] == "not_watched"
    kernel.next_message("frame")


def test_a_page_that_says_nonsense_starts_nothing(shell: Any) -> None:
    widget = warpbook.Monitor()
    for nonsense in (None, "here", {}, {"view": ["here"]}, {"view": "gone"}):
        widget._handle_custom_msg(nonsense, [])
    assert widget._feed._feeding is None
    widget.close()


def test_where_there_is_no_gpu_the_kernel_says_that_it_plays_a_recording(
    kernel: Any,
) -> None:
    kernel.run("import warpbook; monitor = warpbook.Monitor()")
    kernel.say(kernel.widgets[0], HERE)
    hello = kernel.next_message("hello")
    assert hello["replay"] is not None
    assert "NVML" in {absence["what"] for absence in hello["absences"]}
