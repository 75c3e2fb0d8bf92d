"""Connections of strangers make room: who asks something is answered."""

from __future__ import annotations

import contextlib
import http.client
import resource
import select
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.programs import ROOT
from tests.server_process import server as notebook
from warpbook.protocol import PROTOCOL_VERSION

#: beside its own files it takes 16 connections, and there are descriptors for fewer
SERVER = """
import asyncio, os, resource, sys
from tornado import netutil, web
from warpbook.guarded_server import GuardedServer, let_in

@web.stream_request_body
class Known(web.RequestHandler):
    def prepare(self):
        if "Authorization" not in self.request.headers:
            raise web.HTTPError(403)
        let_in(self.request)
    def data_received(self, chunk):
        pass
    def post(self):
        self.finish("taken")

class Open(web.RequestHandler):
    def get(self):
        self.finish("open")
    post = get

async def main():
    application = web.Application([("/", Open), ("/known", Known)])
    server = GuardedServer(application, most=16)
    (listener,) = netutil.bind_sockets(0, "127.0.0.1")
    server.add_sockets([listener])
    print(listener.getsockname()[1], flush=True)
    if sys.argv[1] == "full":
        await asyncio.sleep(0)
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
        kept = []
        try:
            while True:
                kept.append(os.open(os.devnull, os.O_RDONLY))
        except OSError:
            for file in kept[-4:]:
                os.close(file)
    await asyncio.Event().wait()

asyncio.run(main())
"""
UNFINISHED = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n"
KNOWN = (
    b"POST /known HTTP/1.1\r\nHost: x\r\nAuthorization: y\r\nContent-Length: 2\r\n\r\n"
)


@pytest.fixture(params=["bounded", "full"])
def server(request: pytest.FixtureRequest) -> Iterator[tuple[int, subprocess.Popen]]:
    with subprocess.Popen(
        [sys.executable, "-c", SERVER, request.param],
        cwd=ROOT / "extension",
        env={"PYTHONPATH": ":".join(str(ROOT / p) for p in ("extension", "monitors"))},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        yield int(process.stdout.readline()), process
        process.kill()


def answer(port: int) -> str:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    with contextlib.closing(connection):
        connection.request("GET", "/")
        return connection.getresponse().read().decode()


@pytest.mark.parametrize("begun", [b"", b"GET /", UNFINISHED, UNFINISHED + b"body"])
def test_who_asks_is_answered_however_many_do_not(server, begun: bytes) -> None:
    port, process = server
    with contextlib.ExitStack() as held:
        strangers = []
        for _ in range(60):
            stranger = socket.create_connection(("127.0.0.1", port))
            strangers.append(held.enter_context(stranger))
            with contextlib.suppress(OSError):
                stranger.sendall(begun)
        assert [answer(port) for _ in range(3)] == ["open"] * 3
    process.kill()
    assert process.stderr.read().count("\n") <= 1


def test_a_known_sender_keeps_the_place(server) -> None:
    port, _ = server
    with contextlib.ExitStack() as held:
        known = held.enter_context(socket.create_connection(("127.0.0.1", port)))
        known.sendall(KNOWN + b"a")
        # the answer tells that the first is let in, too
        assert answer(port) == "open"
        for _ in range(60):
            stranger = socket.create_connection(("127.0.0.1", port))
            held.enter_context(stranger)
            with contextlib.suppress(OSError):
                stranger.sendall(UNFINISHED)
        assert answer(port) == "open"
        known.sendall(b"b")
        assert select.select([known], [], [], 60)[0]
        assert b"200 OK" in known.recv(1000)


def test_jupyters_own_server_and_the_ingest_have_room(tmp_path: Path) -> None:
    with notebook(tmp_path) as running:
        running.start_kernel()
        limit = resource.prlimit(running.process.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(running.process.pid, resource.RLIMIT_NOFILE, (256, limit[1]))
        log = tmp_path / "server.log"
        size_bytes = log.stat().st_size
        with contextlib.ExitStack() as held:
            for url in (running.url, running.secrets[0]) * 300:
                address = urlsplit(url)
                stranger = socket.create_connection((address.hostname, address.port))
                held.enter_context(stranger)
                with contextlib.suppress(OSError):
                    stranger.sendall(UNFINISHED)
            assert running.get("api/status").ok
            body = {"protocol": PROTOCOL_VERSION, "kernel_id": running.kernel_id}
            answer = running.ingest("/v1/watch", {**body, "on": False})
            assert answer.status_code == 204
        assert log.stat().st_size - size_bytes < 100_000
