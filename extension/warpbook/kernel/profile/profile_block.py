"""`with warpbook.profile() as p:` and `@warpbook.profile()`: a part of a program.

The code runs whatever happens to the profiler. Where there is no profile, a notice
says why, and so does `p.profile`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from IPython.core.error import UsageError
from IPython.core.getipython import get_ipython

from warpbook.kernel.link.server_link import ServerLink
from warpbook.kernel.profile.delivery import Delivery, Ran
from warpbook.kernel.profile.gpuprof_options import Options, checked_path, checked_share
from warpbook.kernel.runs.profile import Difference, Notice, Profile, profile_in
from warpbook.kernel.runs.runs import NotProfiled, Runs
from warpbook_profiler.model.cell_profile import CellProfile
from warpbook_profiler.model.errors import TraceError

if TYPE_CHECKING:
    from warpbook.kernel.live.live_cell import LiveCell

_Function = TypeVar("_Function", bound=Callable[..., Any])


def profile(
    title: str = "",
    *,
    quiet: bool = False,
    memory: bool = False,
    shapes: bool = True,
    save: str | None = None,
    vs: Profile | ProfiledBlock | None = None,
    live: bool = False,
    share: float | None = None,
) -> ProfiledBlock:
    """Profile a `with` block, or each call of a function that this decorates.

    Args:
        title: what the report is called; for a function its name.
        quiet: show no report.
        memory: record each allocation of torch.
        shapes: note what each operator is called with, for FLOPs and the roofline.
        save: the .json file for the Chrome trace.
        vs: a profile to compare with.
        live: for code that runs for minutes: profile windows of some steps, and show
            how it stands while it runs; `memory`, `save` and `vs` don't go with it.
        share: what these windows may take of the time; 0.05 if left out.

    Raises:
        ValueError: the trace can't be written there, or options don't go together.
        TypeError: `vs` holds no profile.
    """
    if not isinstance(title, str):
        raise TypeError("Write @warpbook.profile() with the parentheses.")
    try:
        path = None if save is None else checked_path(save)
        windows_share = checked_share(share, live)
    except UsageError as problem:
        raise ValueError(str(problem)) from None
    if live and (memory or save is not None or vs is not None):
        raise ValueError("live=True goes with quiet and share only.")
    versus = None if vs is None else profile_in(vs)
    options = Options(
        quiet=quiet,
        memory=memory,
        shapes=shapes,
        save=path,
        versus=versus,
        live=live,
        share=windows_share,
    )
    return ProfiledBlock(title, options)


class ProfiledBlock:
    """A block, or a function, and its newest profile.

    Once the block has ended, every figure of the profile is an attribute.
    """

    def __init__(self, title: str, options: Options) -> None:
        self._title = title
        self._options = options
        self._runs: Runs | LiveCell | None = None
        self._outcome: Profile | TraceError = NotProfiled("It has not ended yet.")

    @property
    def profile(self) -> Profile:
        """Give the newest profile.

        Raises:
            TraceError: there is none, in words.
        """
        if isinstance(self._outcome, TraceError):
            raise self._outcome
        return self._outcome

    def diff(self, other: Profile | ProfiledBlock) -> Difference:
        """Compare with another profile: this one is before, the other one after."""
        return self.profile.diff(profile_in(other))

    def __enter__(self) -> ProfiledBlock:
        if self._runs is not None:
            raise RuntimeError("This profile() runs already: make another.")
        self._outcome = NotProfiled("It has not ended yet.")
        if self._options.live:
            self._runs = self._delivery().begin_live(self._options, self._name, None)
            return self
        options = self._options
        self._runs = Runs(
            memory=options.memory, save=options.save, shapes=options.shapes
        )
        self._runs.again()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        """End, and show the report; an exception goes on."""
        runs, self._runs = self._runs, None
        if runs is None:
            return
        status: Literal["ok", "error", "interrupted"] = "ok"
        if kind is not None:
            status = "error" if issubclass(kind, Exception) else "interrupted"
        ran = Ran(self._name, status)
        self._outcome = self._delivery().deliver(runs, self._options, ran)

    @property
    def _name(self) -> str:
        return self._title or "profile()"

    @staticmethod
    def _delivery() -> Delivery:
        return Delivery(get_ipython(), ServerLink())

    def __call__(self, function: _Function) -> _Function:
        """Profile each call of a function; `function.profiled` has the newest."""
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(
            function
        ):
            raise TypeError("profile() can't follow a generator: profile what uses it.")
        if not self._title:
            name = getattr(function, "__qualname__", type(function).__name__)
            self._title = f"{name}()"

        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def profiled(*args: Any, **kwargs: Any) -> Any:
                if self._runs is not None:
                    return await function(*args, **kwargs)
                with self:
                    return await function(*args, **kwargs)
        else:

            @functools.wraps(function)
            def profiled(*args: Any, **kwargs: Any) -> Any:
                # the profile of a call that calls itself is that of the outer one
                if self._runs is not None:
                    return function(*args, **kwargs)
                with self:
                    return function(*args, **kwargs)

        profiled.profiled = self  # type: ignore[attr-defined]
        return profiled  # type: ignore[return-value]

    def __getattr__(self, name: str) -> Any:
        if name in CellProfile.__struct_fields__ or name == "to_dict":
            return getattr(self.profile, name)
        raise AttributeError(f"A profile has no figure {name!r}.")

    def __repr__(self) -> str:
        """Write the report as text, or why there is none."""
        return repr(self._shown())

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return self._shown()._repr_mimebundle_()

    def _shown(self) -> Profile | Notice:
        if isinstance(self._outcome, TraceError):
            return Notice(f"No profile: {self._outcome}")
        return self._outcome
