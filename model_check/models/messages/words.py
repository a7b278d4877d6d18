"""The model's values as a reader of traces sees them: what is as at the start is left out."""

from kspec.model_check.models.messages.values import (
    FROM_THE_START,
    NOT_DECIDED,
    NOT_FENCED,
    UNKNOWN,
    KnownFollower,
    PartitionState,
    RegisteredAt,
    RegistrationState,
)
from kspec.model_check.models.words import leader_in_words
from kspec.model_check.traces.encode import in_words


def unless(usual: int, value: int) -> str:
    """A number, unless it is the usual one."""
    return "none" if value == usual else str(value)


@in_words.register
def _(state: PartitionState) -> str:
    if state == NOT_DECIDED:
        return "none"
    eligible = f", eligible {in_words(state.elr)}" if state.elr else ""
    leader = leader_in_words(state.leader, state.leader_epoch)
    return f"{leader}, ISR {in_words(state.isr)}, partition epoch {state.partition_epoch}{eligible}"


@in_words.register
def _(registered: RegistrationState) -> str:
    if registered == NOT_FENCED:
        return "none"
    return f"broker epoch {registered.broker_epoch}" + (", fenced" if registered.fenced else "")


@in_words.register
def _(registered: RegisteredAt) -> str:
    if registered == FROM_THE_START:
        return "none"
    return f"partition epoch {registered.partition_epoch}, leader epoch {registered.leader_epoch}"


@in_words.register
def _(known: KnownFollower) -> str:
    if known == UNKNOWN:
        return "none"
    return f"ends at {known.end_offset}, broker epoch {known.broker_epoch}"
