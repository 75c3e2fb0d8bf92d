"""Starts servers as their learners, with a GPU where one was asked for."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from jupyterhub.spawner import LocalProcessSpawner
from traitlets import Unicode

from warpbook.hub_client import HubClient, HubProblem
from warpbook.hub_protocol import (
    KEEPER,
    LEAST_MINUTES,
    MOST_MINUTES,
    OwnLease,
    ServerRequest,
)
from warpbook_hub.spawners.choice import NotGiven

#: the keeper asks each second: one that is free comes soon
_FREE_S = 8.0
_WAIT_S = 5.0
_POLL_S = 0.5
_FORM = """<label for="gpu_minutes">A GPU</label>
<select class="form-control" name="gpu_minutes" id="gpu_minutes">
<option value="0">none now: %gpulease in a notebook takes one</option>{options}
</select>"""


class LeaseSpawner(LocalProcessSpawner):  # type: ignore[misc]
    """A server that may begin with a lease."""

    service_url = Unicode(config=True, help="Of the course service.")
    keeper_token_file = Unicode(config=True, help="Only root reads it.")
    lease_course = Unicode(config=True, help="The course for which GPUs are leased.")
    _gpu = ""
    _words = "Starting the server."

    def _options_form_default(self) -> str:
        options = "".join(
            f'<option value="{minutes}">for {minutes} minutes</option>'
            for minutes in range(LEAST_MINUTES, MOST_MINUTES + 1, 10)
        )
        return _FORM.format(options=options)

    def options_from_form(self, form_data: dict[str, list[str]]) -> dict[str, int]:
        """Read the form; what is none of its choices is no GPU."""
        chosen = form_data.get("gpu_minutes", ["0"])[0]
        return {"gpu_minutes": int(chosen) if chosen in ("10", "20", "30") else 0}

    def get_env(self) -> dict[str, str]:
        """Show the server the GPU that it has, and no other."""
        environment: dict[str, str] = super().get_env()
        if self._gpu:
            environment["CUDA_VISIBLE_DEVICES"] = self._gpu
        return environment

    async def start(self) -> Any:
        """Start the server, once it has what was asked for.

        Raises:
            NotGiven: others have all; the message says the place in the line.
        """
        self._gpu = ""
        minutes = self.user_options.get("gpu_minutes", 0)
        if isinstance(minutes, int) and minutes:
            self._gpu = await self._leased(minutes)
        self._words = "Starting the server."
        return await super().start()

    async def progress(self) -> AsyncIterator[dict[str, Any]]:
        """Tell the page what is waited for."""
        shown = ""
        while True:
            if self._words != shown:
                shown = self._words
                yield {"progress": 20, "message": shown}
            await asyncio.sleep(_POLL_S)

    async def _leased(self, minutes: int) -> str:
        token = Path(self.keeper_token_file).read_text().strip()
        client = HubClient(self.service_url, token, KEEPER, _WAIT_S)
        request = ServerRequest(self.lease_course, self.user.name, minutes)
        loop = asyncio.get_running_loop()
        end_s = time.monotonic() + _FREE_S
        while True:
            try:
                lease = await loop.run_in_executor(
                    None, client.ask, "server", OwnLease, request
                )
            except HubProblem as problem:
                raise NotGiven(f"No GPU: {problem}") from None
            if lease.state == "held":
                return lease.gpu
            self._words = waiting_words(lease)
            if time.monotonic() > end_s:
                raise NotGiven(
                    f"{self._words} You keep your place. Start the server without a "
                    "GPU meanwhile: recorded profiles and labs on the CPU need none."
                )
            await asyncio.sleep(_POLL_S)


def waiting_words(lease: OwnLease) -> str:
    if lease.state != "waiting":
        return "Your last lease is just ending."
    if lease.eta_s is None:
        return f"You are number {lease.place} in the line; no GPU is there now."
    minutes = (lease.eta_s + 59) // 60
    return f"You are number {lease.place} in the line, for about {minutes} minutes."
