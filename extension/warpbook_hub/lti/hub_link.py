"""What a service has of the platform: its description, the hub's key, the sender."""

from __future__ import annotations

from pathlib import Path

from warpbook_hub.lti.client import PlatformClient
from warpbook_hub.lti.platform import LtiPlatform
from warpbook_hub.lti.sender import Sender
from warpbook_hub.lti.tool_key import ToolKey


class HubLink:
    """The platform of a service."""

    def __init__(self, platform: LtiPlatform, folder: Path) -> None:
        """Begin; the key is drawn if the folder has none."""
        self.platform = platform
        self.key = ToolKey(folder)
        self.sender = Sender(platform, PlatformClient(platform, self.key))
