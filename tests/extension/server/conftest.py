"""A real Jupyter server with authentication on, and a client of its stream."""

import asyncio
import json
from functools import partial

import pytest
from tornado.httpclient import AsyncHTTPClient, HTTPRequest

from warpbook.protocol import ENV_INGEST_SECRET, ENV_INGEST_URL, PROTOCOL_VERSION


@pytest.fixture
def warpbook_config() -> dict:
    """Traits of the extension; a test module overrides it."""
    return {}


@pytest.fixture
def stub() -> None:
    """GPUs that the server starts on, if a test module has some."""


@pytest.fixture
def jp_server_config(warpbook_config, stub) -> dict:
    return {
        "ServerApp": {
            "jpserver_extensions": {"warpbook": True},
            "allow_unauthenticated_access": False,
        },
        "WarpbookApp": warpbook_config,
    }


@pytest.fixture
def jp_fetch(jp_fetch):
    """Ask the server, which may be slow on a busy machine."""
    return partial(jp_fetch, request_timeout=60)


@pytest.fixture
def broadcaster(jp_serverapp):
    """What the stream's views have in common, inside the server."""
    (app,) = jp_serverapp.extension_manager.extension_apps["warpbook"]
    return app._broadcaster


class Client:
    """One viewer, as the browser is one."""

    def __init__(self, socket) -> None:
        self.socket = socket

    async def receive(self) -> dict | None:
        message = await self.socket.read_message()
        return None if message is None else json.loads(message)

    async def next(self, kind: str) -> dict:
        """The next message of a kind; others are passed over."""
        while (message := await self.receive()) is not None:
            if message["type"] == kind:
                return message
        raise AssertionError(
            f"closed with {self.socket.close_code} before a {kind} came"
        )

    async def send(self, message) -> None:
        text = message if isinstance(message, str | bytes) else json.dumps(message)
        await self.socket.write_message(text, binary=isinstance(text, bytes))

    async def subscribe(self, **wanted) -> None:
        await self.send(
            {"type": "subscribe", "protocol": PROTOCOL_VERSION, "rate_hz": 10, **wanted}
        )

    async def catch_up(self) -> None:
        """Pass over all that was sent before now, and waits here to be received."""
        # the answer comes after it
        await self.send("")
        await self.next("error")

    async def closed(self) -> int:
        """Wait for the server to close; give its code."""
        while await self.socket.read_message() is not None:
            pass
        return self.socket.close_code


@pytest.fixture
def connect(jp_ws_fetch):
    """Open a stream."""
    opened: list[Client] = []

    async def connect(**kwargs) -> Client:
        client = Client(await jp_ws_fetch("warpbook", "api", "v1", "stream", **kwargs))
        opened.append(client)
        return client

    yield connect
    for client in opened:
        client.socket.close()


@pytest.fixture
def calls_at_rest(stub, broadcaster):
    """Wait until nobody calls the driver any more; give how often it was called."""

    async def wait() -> int:
        while broadcaster.demand.is_awake:
            await asyncio.sleep(0.1)
        calls = -1
        while calls != (calls := stub.calls()):
            await asyncio.sleep(0.4)
        return calls

    return wait


@pytest.fixture
def ingest(jp_serverapp):
    """Ask the ingest as the kernel would of which the body tells.

    No kernel is started for it: `test_credentials` has real ones.
    """
    (app,) = jp_serverapp.extension_manager.extension_apps["warpbook"]
    app._credentials.is_running = lambda kernel_id: True

    async def ask(
        path: str, body=None, secret: str | None = None, kernel_id: str | None = None
    ):
        if kernel_id is None:
            kernel_id = body.get("kernel_id", "k") if isinstance(body, dict) else "k"
        given = app._ingest.environment(kernel_id)
        sent = given[ENV_INGEST_SECRET] if secret is None else secret
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        request = HTTPRequest(
            given[ENV_INGEST_URL] + path,
            method="GET" if body is None else "POST",
            body=body,
            headers={"Authorization": f"Bearer {sent}"},
            request_timeout=60,
        )
        return await AsyncHTTPClient().fetch(request, raise_error=False)

    return ask
