"""Each kernel speaks for itself only, and nobody else speaks at all."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
import requests

from tests.extension.server.test_ingest import report
from tests.extension.server.test_timelines import packed
from tests.programs import wait_for
from tests.server_process import ServerProcess, server
from warpbook.guarded_server import CONNECTIONS
from warpbook.protocol import (
    ENV_INGEST_SECRET,
    ENV_INGEST_URL,
    MAX_REPORT_BYTES,
    PROTOCOL_VERSION,
)

Post = Callable[..., int]


def kernels_of(running: ServerProcess, count: int) -> dict[str, Post]:
    """Start kernels; give what hands in with the credential of each, by its id."""
    for _ in range(count):
        running.start_kernel()

    def environments() -> list[dict] | None:
        children = psutil.Process(running.process.pid).children(recursive=True)
        given = [child.environ() for child in children if child.name() == "sleep"]
        return given if len(given) == count else None

    posts = {}
    for environment in wait_for("the kernels", environments):
        secret = environment[ENV_INGEST_SECRET]
        posts[secret.rpartition(".")[0]] = poster(environment[ENV_INGEST_URL], secret)
    return posts


def poster(url: str, secret: str) -> Post:
    def post(path: str, body: object) -> int:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {secret}"}
        answer = requests.post(url + path, data=data, headers=headers, timeout=60)
        return answer.status_code

    post.url, post.secret = url, secret  # type: ignore[attr-defined]
    return post


def test_a_kernel_speaks_for_itself_only(tmp_path: Path) -> None:
    """At 4c6eb8b one secret let a kernel replace another's report."""
    with server(tmp_path) as running:
        posts = kernels_of(running, 2)
        (first, second) = posts
        own, other = posts[first], posts[second]
        assert own("/v1/reports", report("r-1", kernel_id=first, title="mine")) == 204
        assert own("/v1/reports/r-1/timeline", packed()) == 204
        assert other("/v1/reports", report("r-1", kernel_id=second)) == 403
        assert other("/v1/reports", report("r-1", kernel_id=first)) == 403
        assert other("/v1/reports/r-1/timeline", packed()) == 403
        watch = {"protocol": PROTOCOL_VERSION, "kernel_id": first, "on": False}
        assert other("/v1/watch", watch) == 403
        memory = {"protocol": PROTOCOL_VERSION, "kernel_id": first, "notebook": None}
        memory |= {"cell_id": None, "failed": {"asked_bytes": 1}}
        assert other("/v1/out-of-memory", memory) == 403
        cell = {"protocol": PROTOCOL_VERSION, "kernel_id": first, "id": "c"}
        assert other("/v1/cells", cell) == 403
        assert running.record("report", "r-1")["title"] == "mine"
        # what the server would have made of another id, nobody can make
        forged = poster(own.url, f"{second}.{own.secret.rpartition('.')[2]}")  # type: ignore[attr-defined]
        assert forged("/v1/reports", report("r-2", kernel_id=second)) == 403
        unknown = poster(own.url, "nobody.0")  # type: ignore[attr-defined]
        assert unknown("/v1/reports", report("r-2", kernel_id="nobody")) == 403
        # after a restart it is the same kernel; after its end it is none
        assert running.post(f"api/kernels/{first}/restart", {}).status_code == 200
        assert own("/v1/reports", report("r-1", kernel_id=first, title="again")) == 204
        gone = requests.delete(
            f"{running.url}/api/kernels/{first}",
            headers={"Authorization": "token secret"},
            timeout=60,
        )
        assert gone.status_code == 204
        assert own("/v1/reports", report("r-1", kernel_id=first, title="late")) == 403


class TestBeforeABody:
    """Headers are checked before a body is read, and nobody is waited for long."""

    @pytest.fixture
    def jp_server_config(self, jp_server_config, monkeypatch) -> dict:
        short = CONNECTIONS._replace(header_s=1.0, body_s=1.0, known_body_s=1.0)
        monkeypatch.setattr("warpbook.guarded_server.CONNECTIONS", short)
        monkeypatch.setattr("warpbook.server.ingest.ingest._MOST_CONNECTIONS", 5)
        return jp_server_config

    @pytest.fixture
    def send(self, jp_serverapp):
        """Send the head of a request, and none of its body; give the connection."""
        (app,) = jp_serverapp.extension_manager.extension_apps["warpbook"]
        app._credentials.is_running = lambda kernel_id: True
        given = app._ingest.environment("k")
        port = int(given[ENV_INGEST_URL].rpartition(":")[2])

        async def send(
            secret: str | None, length: int | str, path: str = "/v1/reports"
        ):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            sent = given[ENV_INGEST_SECRET] if secret is None else secret
            writer.write(
                f"POST /v1/reports HTTP/1.1\r\nHost: localhost\r\nAuthorization: "
                f"Bearer {sent}\r\nContent-Length: {length}\r\n\r\n".encode("latin-1")
            )
            return reader, writer

        return send

    @pytest.mark.parametrize(
        ("secret", "length", "status"),
        [
            ("nobody.0", 3_900_000, 403),
            (None, MAX_REPORT_BYTES + 1, 413),
            (None, "²", 400),
        ],
    )
    async def test_it_is_refused_without_one(
        self, send, secret: str | None, length: int | str, status: int
    ) -> None:
        reader, writer = await send(secret, length)
        head = await asyncio.wait_for(reader.readline(), 60)
        assert f" {status} ".encode() in head
        writer.close()

    async def test_one_that_never_comes_is_not_waited_for(self, send) -> None:
        connections = [await send(None, 500_000) for _ in range(5)]
        # beyond the bound a connection is closed at once
        beyond, writer = await send(None, 500_000)
        assert await asyncio.wait_for(beyond.read(), 60) == b""
        writer.close()
        for reader, writer in connections:
            await asyncio.wait_for(reader.read(), 60)
            writer.close()
        reader, writer = await send("nobody.0", 5)
        assert b" 403 " in await asyncio.wait_for(reader.readline(), 60)
        # and one on which nothing more is asked is closed, too
        await asyncio.wait_for(reader.read(), 60)
        writer.close()
