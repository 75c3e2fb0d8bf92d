import json
import re
import signal
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.programs import free_port
from warpbook_monitors.recordings.replay import SHIPPED

TOUR = "warpbook-tour.ipynb"


def wait_for_url(process) -> tuple[str, str]:
    """Read until the URL is told; give it and all that was told before."""
    output = ""
    for line in process.stdout:
        output += line
        if match := re.match(r"  Open  (http\S+)", line):
            return match[1], output
    raise AssertionError(output)


def fetch(url: str) -> bytes:
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with direct.open(url) as answer:
        return answer.read()


def test_up_serves_the_tour_and_says_that_it_plays_a_recording(
    start, tmp_path: Path
) -> None:
    process = start(
        "up", "--no-browser", "--port", str(free_port()), "--notebooks", "mine"
    )
    url, output = wait_for_url(process)
    assert "NVML: The NVIDIA driver's library" in output
    assert f"Playing the recording {SHIPPED.name}" in output
    assert "every view says “replay”" in output
    assert json.loads((tmp_path / "mine" / TOUR).read_text())["cells"]
    assert urlsplit(url).path == f"/lab/tree/{TOUR}"
    page = fetch(url).decode()
    assert '"warpbookOpenDashboard": "true"' in page
    [token] = parse_qs(urlsplit(url).query)["token"]
    server = f"http://{urlsplit(url).netloc}"
    capabilities = json.loads(
        fetch(f"{server}/warpbook/api/v1/capabilities?token={token}")
    )
    assert capabilities["replay"]["name"] == SHIPPED.name
    notebooks = json.loads(fetch(f"{server}/api/contents?token={token}"))
    assert [notebook["name"] for notebook in notebooks["content"]] == [TOUR]

    process.send_signal(signal.SIGINT)
    rest, _ = process.communicate()
    assert process.returncode == 0
    assert rest.endswith("warpbook stopped.\n")
    with pytest.raises(urllib.error.URLError):
        fetch(server)


def test_up_keeps_a_notebook_that_is_there_and_takes_options_for_jupyterlab(
    start, tmp_path: Path
) -> None:
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "notebooks" / TOUR).write_text("mine")
    process = start(
        *("up", "--no-browser", "--port", str(free_port()), "--replay", str(SHIPPED)),
        *("--", "--ServerApp.base_url=/a%40b/", "--IdentityProvider.token=known"),
    )
    url, output = wait_for_url(process)
    assert "NVML" not in output
    assert urlsplit(url).path == f"/a%40b/lab/tree/{TOUR}"
    assert fetch(url)
    assert (tmp_path / "notebooks" / TOUR).read_text() == "mine"
    process.send_signal(signal.SIGTERM)
    process.communicate()
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "a.jsonl.gz: No such file or directory."),
        (b"hello\n", "a.jsonl.gz, line 1: "),
        (b'{"type":"hello","protocol":1}\n', "a.jsonl.gz, line 1: "),
    ],
)
def test_a_bad_recording_is_refused_before_the_server_starts(
    warpbook, tmp_path: Path, content: bytes | None, reason: str
) -> None:
    if content is not None:
        (tmp_path / "a.jsonl.gz").write_bytes(content)
    done = warpbook("up", "--replay", "a.jsonl.gz")
    assert done.returncode == 1
    assert done.stdout == ""
    [line] = done.stderr.splitlines()
    assert reason in line
    assert not (tmp_path / "notebooks").exists()


def test_of_a_damaged_recording_the_good_part_is_played(start, tmp_path: Path) -> None:
    whole = SHIPPED.read_bytes()
    (tmp_path / "cut.jsonl.gz").write_bytes(whole[: len(whole) // 2])
    process = start(
        "up", "--no-browser", "--port", str(free_port()), "--replay", "cut.jsonl.gz"
    )
    _, output = wait_for_url(process)
    assert "Playing the recording cut.jsonl.gz" in output
    assert re.search(r"cut\.jsonl\.gz, line \d+: It was cut off", output)


def test_a_server_that_can_not_start_is_told(warpbook) -> None:
    done = warpbook("up", "--no-browser", "--", "--ServerApp.port=many")
    assert done.returncode == 1
    assert done.stderr.endswith("JupyterLab ended with status 1; see above.\n")
