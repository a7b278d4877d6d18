"""Steps that the world does not play, with the reason; and what a run needs of the process that plays in it."""

from collections.abc import Mapping
from typing import Any

from conformance.world.runs.run import Run
from model_check.core.model import Action

NOT_PLAYED = {
    "StopWithoutLeave": "a clean stop after five minutes without leave, which no setting shortens",
    "StartOnLateAnswer": "an answer to the incarnation before: none of the releases under test takes it",
}
"""Actions of the broker under test that the world does not play, and the reason."""

ASKS = {"BeginShutdown": True, "StopAtOnce": True, "StopUnheard": False}
"""Whether the broker asks its controller when it is told to stop."""


def is_played(action: Action, real: int) -> bool:
    """Whether the world plays this action."""
    return _reason(action.name, action.args, real) is None


def _reason(name: str, args: Mapping[str, Any], real: int) -> str | None:
    return NOT_PLAYED.get(name) if args.get("broker") == real else None


def unplayed(run: Run) -> str | None:
    """Why the world does not play a run, or `None` if it does."""
    reasons = (_reason(name, args, run.real) for name, args in run.moves)
    return next((reason for reason in reasons if reason is not None), None)


def asks_at_next_stop(run: Run, after: int = 0) -> bool | None:
    """Whether the broker under test asks its controller at its next clean stop behind this step; `None`: it has none."""
    names = (name for name, args in run.moves[after:] if args.get("broker") == run.real)
    return next((ASKS[name] for name in names if name in ASKS), None)
