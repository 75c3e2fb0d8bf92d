"""What a service has of the platform: its description, the hub's key, the sender."""

from __future__ import annotations

from pathlib import Path

from warpbook.hub.lti.client import PlatformClient
from warpbook.hub.lti.platform import LtiPlatform
from warpbook.hub.lti.sender import Sender
from warpbook.hub.lti.tool_key import ToolKey


class HubLink:
    """The platform of a service."""

    def __init__(self, platform: LtiPlatform, folder: Path) -> None:
        """Begin; the key is drawn if the folder has none."""
        self.platform = platform
        self.key = ToolKey(folder)
        self.sender = Sender(platform, PlatformClient(platform, self.key))
