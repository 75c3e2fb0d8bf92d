"""SystemdSpawner with a GPU for one server at a time, and its devices for no other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jupyterhub import orm
from systemdspawner import SystemdSpawner
from traitlets import Dict, List, Unicode

from warpbook_hub.spawners import choice

#: what CUDA opens beside a GPU's own node
_SHARED_NODES = ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools")


class GpuSystemdSpawner(SystemdSpawner):  # type: ignore[misc]
    """A server as a unit of systemd, which opens no GPU but its own."""

    gpus = Dict(
        value_trait=List(Unicode()),
        config=True,
        help="The device nodes of each GPU or MIG instance, by its UUID.",
    )

    unit_extra_properties: dict[str, Any]

    def _options_form_default(self) -> Callable[[GpuSystemdSpawner], str]:
        # a form that is text would be that of the first visit for ever
        return lambda spawner: choice.form(list(spawner.gpus), spawner._holders())

    def options_from_form(self, form_data: dict[str, list[str]]) -> dict[str, str]:
        return choice.from_form(form_data)

    def get_env(self) -> dict[str, str]:
        """Show CUDA the server's GPU, or none."""
        environment: dict[str, str] = super().get_env()
        environment["CUDA_VISIBLE_DEVICES"] = self._gpu()
        return environment

    async def start(self) -> Any:
        """Start the unit, if nobody else has the GPU.

        Raises:
            NotGiven: somebody has it, or there is no such GPU.
        """
        gpu = self._gpu()
        holder = self._holders().get(gpu)
        if holder is not None:
            raise choice.NotGiven(
                f"{holder} has this GPU. Choose another one, or none meanwhile."
            )
        nodes = [*self.gpus[gpu], *_SHARED_NODES] if gpu else []
        self.unit_extra_properties = {
            **self.unit_extra_properties,
            # all nodes are refused but pseudo devices such as /dev/null and those below
            "DevicePolicy": "closed",
            "DeviceAllow": [f"{node} rw" for node in nodes],
        }
        return await super().start()

    def _gpu(self) -> str:
        return choice.chosen(self.user_options, list(self.gpus))

    def _holders(self) -> dict[str, str]:
        """Give who has which GPU, from the database: it outlives the hub."""
        holders: dict[str, str] = {}
        running = self.db.query(orm.Spawner).filter(orm.Spawner.server_id.is_not(None))
        for server in running:
            options = server.user_options
            # a program's request may have had anything in it
            gpu = options.get(choice.FIELD) if isinstance(options, dict) else None
            is_other = server.id != self.orm_spawner.id
            if is_other and isinstance(gpu, str) and gpu in self.gpus:
                holders[gpu] = str(server.user.name)
        return holders

    def _expand_user_vars(self, string: Any) -> Any:
        # SystemdSpawner 1.0.2 documents lists in `unit_extra_properties`, and fails
        if isinstance(string, list):
            return [super(GpuSystemdSpawner, self)._expand_user_vars(s) for s in string]
        return super()._expand_user_vars(string)
