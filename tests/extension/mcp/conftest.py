"""A real Jupyter server, and the package's own client of the protocol."""

import contextlib
import json

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.extension.server.conftest import (  # noqa: F401 - fixtures
    broadcaster,
    connect,
    ingest,
    jp_fetch,
    jp_server_config,
    stub,
    warpbook_config,
)


class Assistant:
    """A client that is connected."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def ask(self, tool: str, **arguments) -> dict:
        """Call a tool that answers."""
        result = await self.client.call_tool(tool, arguments)
        (text,) = result.content
        assert not result.is_error, text.text
        assert json.loads(text.text) == result.structured_content
        return result.structured_content

    async def refused(self, tool: str, **arguments) -> str:
        """Call a tool that can't answer; give its words."""
        result = await self.client.call_tool(tool, arguments)
        (text,) = result.content
        assert result.is_error and "Traceback" not in text.text
        return text.text


@contextlib.asynccontextmanager
async def connected(url: str, headers: dict[str, str]):
    async with httpx2.AsyncClient(headers=headers, timeout=30, trust_env=False) as http:
        transport = streamable_http_client(url, http_client=http)
        async with Client(transport) as client:
            yield Assistant(client)


@pytest.fixture
def mcp_url(jp_serverapp, http_server, jp_base_url, jp_http_port) -> str:
    return f"http://127.0.0.1:{jp_http_port}{jp_base_url}warpbook/api/v1/mcp"


@pytest.fixture
def assistant(mcp_url, jp_auth_header):
    """`async with assistant() as it` connects with the server's token."""
    return lambda: connected(mcp_url, jp_auth_header)
