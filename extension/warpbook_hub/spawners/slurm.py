"""BatchSpawner's SlurmSpawner with GPUs to choose, and no more than its port to set."""

from __future__ import annotations

import os
from typing import Any

from batchspawner import SlurmSpawner
from batchspawner.api import BatchSpawnerAPIHandler
from jupyterhub.apihandlers import APIHandler, default_handlers
from tornado import web
from traitlets import Dict, Unicode

from warpbook_hub.spawners import choice

_LEAST_PORT, _MOST_PORT = 1024, 65535


class GpuSlurmSpawner(SlurmSpawner):  # type: ignore[misc]
    """A server as a job of Slurm, with the GPU that was chosen."""

    gpus = Dict(
        value_trait=Unicode(),
        config=True,
        help="What is chosen, and Slurm's --gres for it, such as gpu:1.",
    )

    user_options: dict[str, Any]

    def _options_form_default(self) -> str:
        return choice.form(list(self.gpus), {})

    def options_from_form(self, form_data: dict[str, list[str]]) -> dict[str, str]:
        return choice.from_form(form_data)

    async def start(self) -> Any:
        """Submit the job.

        Raises:
            NotGiven: there is no such GPU.
        """
        gpu = choice.chosen(self.user_options, list(self.gpus))
        self.req_gres = self.gpus[gpu] if gpu else ""
        # BatchSpawner puts whatever else a request has into the script
        self.user_options = {choice.FIELD: gpu}
        return await super().start()


class PortHandler(APIHandler):  # type: ignore[misc]
    """Takes the port on which a job's server listens.

    BatchSpawner 1.3 lets this request set any attribute of the spawner, the commands
    that the hub runs included. Its sender is a learner's own program.
    """

    @web.authenticated
    def post(self) -> None:
        """Set the port of the server whose token is sent."""
        token = self.get_auth_token()
        spawners = getattr(self.current_user, "spawners", {}).values()
        spawner = next((one for one in spawners if one.api_token == token), None)
        if spawner is None:
            raise web.HTTPError(403, "This token is of no server.")
        body = self.get_json_body()
        port = body.get("port") if isinstance(body, dict) else None
        if body != {"port": port} or type(port) is not int:
            raise web.HTTPError(400, "A server says its port, and nothing else.")
        if not _LEAST_PORT <= port <= _MOST_PORT:
            raise web.HTTPError(400, f"A port is {_LEAST_PORT} to {_MOST_PORT}.")
        spawner.port = port
        self.set_status(201)


def submit_prefix() -> str:
    """Give the command by which the hub submits a job as its learner."""
    return "runuser -u {username} --" if os.geteuid() == 0 else "sudo -E -u {username}"


def _replace_handler() -> None:
    for at, (path, handler) in enumerate(default_handlers):
        if handler is BatchSpawnerAPIHandler:
            default_handlers[at] = (path, PortHandler)


_replace_handler()
