"""Requests of brokers and operators to a controller, in words that do not depend on the run before.

A `Move` says "the leader proposes the ISR without 3, in the epoch before". `taking` makes it into a request with the epochs
that its sender then knows. So a move means the same to the specification and to a real controller.
"""

from enum import Enum
from typing import Any, NamedTuple, TypeAlias, get_args

from kspec.spec.values import BrokerId


class ProposalFault(Enum):
    """A fault of a proposal, or something unusual in it."""

    NONE = "as it should be"
    STALE_BROKER_EPOCH = "in an earlier broker epoch"
    EARLIER_LEADER_EPOCH = "in an earlier leader epoch"
    LATER_LEADER_EPOCH = "in a later leader epoch"
    EARLIER_PARTITION_EPOCH = "on an earlier partition epoch"
    LATER_PARTITION_EPOCH = "on a later partition epoch"
    NOT_THE_LEADER = "by another replica"
    WITHOUT_THE_LEADER = "without the leader"
    STALE_MEMBER = "with members of earlier broker epochs"
    MEMBER_WITHOUT_EPOCH = "with members of unknown broker epoch"
    RECOVERING = "as recovering"
    UNKNOWN_PARTITION = "of a partition that does not exist"


class CreatePartition(NamedTuple):
    """An operator creates the partition."""

    replicas: tuple[BrokerId, ...]


class Heartbeat(NamedTuple):
    """A broker sends a heartbeat. It has replayed all of the metadata; `behind`: not even its own registration."""

    broker: BrokerId
    want_fence: bool = False
    want_shutdown: bool = False
    behind: bool = False
    stale: bool = False


class Register(NamedTuple):
    """A broker registers: the next incarnation, which may say that the last one stopped cleanly; or the same once more.

    `earlier`: a request of the incarnation before arrives late. That process is gone, and nobody takes the answer.
    """

    broker: BrokerId
    again: bool = False
    clean: bool = False
    earlier: bool = False


class Unregister(NamedTuple):
    """An operator removes a broker's registration."""

    broker: BrokerId


class Propose(NamedTuple):
    """The leader proposes its ISR with these brokers added, or dropped if they are in it."""

    changed: tuple[BrokerId, ...]
    fault: ProposalFault = ProposalFault.NONE


class ProposeAgain(NamedTuple):
    """Another copy of the last proposal arrives."""


class Elect(NamedTuple):
    """An operator asks for the preferred leader, or for an unclean election."""

    unclean: bool = False


class Reassign(NamedTuple):
    """An operator moves the partition to these replicas."""

    replicas: tuple[BrokerId, ...]


class CancelReassignment(NamedTuple):
    """An operator cancels the move."""


Move: TypeAlias = (
    CreatePartition | Heartbeat | Register | Unregister | Propose | ProposeAgain | Elect | Reassign | CancelReassignment
)

MOVES: tuple[type[Any], ...] = get_args(Move)
"""The kinds of moves."""


def move_in_words(move: Move) -> str:
    """A move as people read it: its name, and its arguments that are not the usual ones."""
    defaults: dict[str, object] = getattr(type(move), "_field_defaults", {})
    words = []
    for name, value in move._asdict().items():
        if name in defaults and value == defaults[name]:
            continue
        if isinstance(value, Enum):
            words.append(str(value.value))
        elif value is True:
            words.append(name.replace("_", " "))
        elif isinstance(value, tuple):
            words.append(", ".join(map(str, value)))
        else:
            words.append(str(value))
    return f"{type(move).__name__}({'; '.join(words)})"


def move_as_json(move: Move) -> dict[str, Any]:
    """A move as JSON: its name, and its arguments."""
    fields = {
        name: value.name if isinstance(value, Enum) else list(value) if isinstance(value, tuple) else value
        for name, value in move._asdict().items()
    }
    return {"move": type(move).__name__, **fields}


class NoMoveError(ValueError):
    """JSON that is no move."""


def move_from_json(described: dict[str, Any]) -> Move:
    """The move that `move_as_json` describes. `NoMoveError` says why there is none."""
    fields = dict(described)
    name = fields.pop("move", None)
    kinds = {kind.__name__: kind for kind in MOVES}
    if name not in kinds:
        raise NoMoveError(f"there is no move {name!r}; there are {', '.join(kinds)}")
    for field, value in fields.items():
        if isinstance(value, list):
            fields[field] = tuple(value)
        elif field == "fault":
            if value not in ProposalFault.__members__:
                raise NoMoveError(f"{name}: there is no fault {value!r}; there are {', '.join(ProposalFault.__members__)}")
            fields[field] = ProposalFault[value]
    try:
        move: Move = kinds[name](**fields)
    except TypeError as error:
        raise NoMoveError(f"{name}: {error}") from error
    return move
