"""Steps that the world does not replay, with the reason; and a run's needs of the process."""

from collections.abc import Mapping
from typing import Any

from kspec.conformance.world.runs.run import WorldRun
from kspec.model_check.core.model import Action

NOT_REPLAYED = {
    "StopWithoutLeave": "a clean stop after five minutes without leave, which no setting shortens",
    "StartOnLateAnswer": "an answer to the incarnation before: none of the releases under test takes it",
}
"""Actions of the broker under test that the world does not replay, and the reason."""

ASKS = {"BeginShutdown": True, "StopAtOnce": True, "StopUnheard": False}
"""Whether the broker asks its controller when it is told to stop."""


def is_replayed(action: Action, real: int) -> bool:
    """Whether the world replays this action."""
    return _reason(action.name, action.args, real) is None


def _reason(name: str, args: Mapping[str, Any], real: int) -> str | None:
    return NOT_REPLAYED.get(name) if args.get("broker") == real else None


def not_replayed(run: WorldRun) -> str | None:
    """The reason why the world does not replay a run, or `None` if it does."""
    reasons = (_reason(name, args, run.real) for name, args in run.moves)
    return next((reason for reason in reasons if reason is not None), None)


def asks_at_next_stop(run: WorldRun, after: int = 0) -> bool | None:
    """Whether the broker under test asks its controller at its next clean stop behind this step; `None`: it has none."""
    names = (name for name, args in run.moves[after:] if args.get("broker") == run.real)
    return next((ASKS[name] for name in names if name in ASKS), None)
