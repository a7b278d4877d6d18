"""Tables by the widths and columns of Kafka's tool. Kafka: `ConsumerGroupCommand` of 4.3."""

from collections.abc import Mapping, Sequence

from kspec.cli.broker.asking import TopicAndPartition
from kspec.cli.broker.groups.asking import ShownGroup, ShownListing, ShownMember
from kspec.cli.broker.groups.positions import Position

NONE = "-"
LEAST = 15
"""The least width of a column that may grow."""

OFFSETS = ("CURRENT-OFFSET", "LOG-END-OFFSET", "LAG", "CONSUMER-ID", "HOST", "CLIENT-ID")


def listing(groups: Sequence[ShownListing], kinds: bool, states: bool) -> str:
    """Groups one in a line, with their kinds and states if those are wanted."""
    if not (kinds or states):
        return "".join(f"{one.name}\n" for one in groups)
    width = max((max(LEAST, len(one.name)) for one in groups), default=LEAST) + 10
    rows = [("GROUP", "TYPE", "STATE"), *((one.name, one.kind, one.state) for one in groups)]
    return "".join(
        f"{name:{width}}" + (f" {kind:<20}" if kinds else "") + (f" {state:<20}" if states else "") + "\n"
        for name, kind, state in rows
    )


def offsets(group: str, positions: Sequence[Position], verbose: bool) -> str:
    """The partitions of a group, with offsets and lag."""
    epochs = ("LEADER-EPOCH",) if verbose else ()
    rows: list[tuple[object, ...]] = [("GROUP", "TOPIC", "PARTITION", *epochs, *OFFSETS)]
    rows += [
        (
            group,
            one.of.topic,
            one.of.partition,
            *((one.leader_epoch,) if verbose else ()),
            one.offset,
            one.end,
            one.lag,
            one.consumer,
            one.host,
            one.client,
        )
        for one in positions
    ]
    fixed = [10, *([15] if verbose else []), 15, 15, 15]
    body = len(fixed)
    widths = [_width(rows, 0), _width(rows, 1), *fixed, _width(rows, 2 + body), _width(rows, 3 + body), 0]
    return "".join(f"\n{_row(row, widths)}" for row in rows) + "\n"


def members(group: ShownGroup, verbose: bool) -> str:
    """The members of a group; with their epochs and partitions if `verbose`."""
    static = any(one.instance for one in group.members)
    both = {True, False} <= {one.upgraded for one in group.members}
    head: tuple[object, ...] = (
        "GROUP",
        "CONSUMER-ID",
        *(("GROUP-INSTANCE-ID",) if static else ()),
        "HOST",
        "CLIENT-ID",
        "#PARTITIONS",
    )
    more = ("CURRENT-EPOCH", "CURRENT-ASSIGNMENT", "TARGET-EPOCH", "TARGET-ASSIGNMENT", *(("UPGRADED",) if both else ()))
    rows: list[tuple[object, ...]] = [(*head, *(more if verbose else ()))]
    for one in group.members:
        named = (one.instance,) if static else ()
        row = (group.name, one.name, *named, one.host, one.client, len(one.assigned))
        rows.append((*row, *(_details(group, one, both) if verbose else ())))
    grown = len(head) - 1
    widths = [max(17, _width(rows, 2)) if static and column == 2 else _width(rows, column) for column in range(grown)]
    widths.append(15)
    if verbose:
        widths += [15, max(20, _width(rows, grown + 2)), 15, max(20, _width(rows, grown + 4)), 0]
    end = "" if verbose else " "
    return "\n" + "".join(f"{_row(row, widths)}{end}\n" for row in rows)


def _details(group: ShownGroup, member: ShownMember, both: bool) -> tuple[object, ...]:
    upgraded = None if member.upgraded is None else str(member.upgraded).lower()
    found = (member.epoch, _assigned(member.assigned), group.target_epoch, _assigned(member.target))
    return (*found, *((upgraded,) if both else ()))


def state(group: ShownGroup, verbose: bool) -> str:
    """The state of a group, and where it is coordinated."""
    epochs = ("GROUP-EPOCH", "TARGET-ASSIGNMENT-EPOCH") if verbose else ()
    own = (group.epoch, group.target_epoch) if verbose else ()
    rows: list[tuple[object, ...]] = [
        ("GROUP", "COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE", *epochs, "#MEMBERS"),
        (group.name, group.coordinator, group.assignor or NONE, group.state, *own, len(group.members)),
    ]
    widths = [_width(rows, 0), max(25, len(group.coordinator)), 20, 20, *([15, 25] if verbose else []), 0]
    return "".join(f"\n{_row(row, widths)}" for row in rows) + "\n"


def new_offsets(plans: Mapping[str, Mapping[TopicAndPartition, int]]) -> str:
    """Offsets that are set, or would be."""
    rows: list[tuple[object, ...]] = [("GROUP", "TOPIC", "PARTITION", "NEW-OFFSET")]
    rows += [(group, *one, offset) for group, plan in plans.items() for one, offset in sorted(plan.items())]
    widths = [_width(rows, 0), _width(rows, 1), 10, 0]
    return "".join(f"\n{_row(row, widths)}" for row in rows) + "\n"


def deleted_offsets(errors: Mapping[TopicAndPartition, str | None]) -> str:
    """Partitions whose offsets are deleted, or are not."""
    rows: list[tuple[object, ...]] = [("TOPIC", "PARTITION", "STATUS")]
    rows += [(*one, f"Error: {error}" if error else "Successful") for one, error in sorted(errors.items())]
    return "".join(f"\n{_row(row, [_width(rows, 0), 10, 15])}" for row in rows) + "\n"


def _assigned(partitions: Sequence[TopicAndPartition]) -> str:
    topics: dict[str, list[int]] = {}
    for one in partitions:
        topics.setdefault(one.topic, []).append(one.partition)
    return ";".join(sorted(f"{topic}:{','.join(map(str, sorted(found)))}" for topic, found in topics.items())) or NONE


def _width(rows: Sequence[tuple[object, ...]], column: int) -> int:
    return max(LEAST, *(len(_shown(row[column])) for row in rows))


def _row(row: tuple[object, ...], widths: Sequence[int]) -> str:
    return " ".join(f"{_shown(value):<{width}}" for value, width in zip(row, widths, strict=False))


def _shown(value: object) -> str:
    return NONE if value is None else str(value)
