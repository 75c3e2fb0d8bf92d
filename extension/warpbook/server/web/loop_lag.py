"""How late the event loop runs: what every request of this server waits."""

from __future__ import annotations

import asyncio
from collections import deque

from warpbook_monitors.sampling.own_cost import Costs

_PERIOD_S = 0.1
#: the worst of so many periods is told
_PERIODS = 10


async def measure_loop_lag(costs: Costs) -> None:
    """Keep `costs.loop_lag_ms` at the worst lag of the last second, for ever."""
    loop = asyncio.get_running_loop()
    lags_ms: deque[float] = deque(maxlen=_PERIODS)
    while True:
        due_s = loop.time() + _PERIOD_S
        await asyncio.sleep(_PERIOD_S)
        lags_ms.append((loop.time() - due_s) * 1000)
        costs.loop_lag_ms = round(max(*lags_ms, 0.0), 2)
