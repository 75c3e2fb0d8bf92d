"""A real Jupyter server with the extension, for the tests here."""

import pytest


@pytest.fixture
def warpbook_config() -> dict:
    """Traits of the extension; a test module overrides it."""
    return {}


@pytest.fixture
def jp_server_config(warpbook_config: dict) -> dict:
    return {
        "ServerApp": {"jpserver_extensions": {"warpbook": True}},
        "WarpbookApp": warpbook_config,
    }
