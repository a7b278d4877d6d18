"""Placement of the replicas of new partitions: in stripes over racks, and over the brokers of each rack."""

from typing import NamedTuple, TypeAlias

from kspec.spec.controller.topics.chance import Chance, chance_of, draw, shuffled
from kspec.spec.values import BrokerId


class UsableBroker(NamedTuple):
    """A broker that may host new replicas. Kafka: `UsableBroker`."""

    broker: BrokerId
    rack: str | None
    fenced: bool


class StripedBrokers(NamedTuple):
    """Brokers that take turns: in each turn they begin one further. Kafka: `StripedReplicaPlacer.BrokerList`."""

    brokers: tuple[BrokerId, ...] = ()
    taken: int = 0
    offset: int = 0
    turn: int = 0


class Rack(NamedTuple):
    """The brokers of a rack; fenced ones come last. Kafka: `StripedReplicaPlacer.Rack`."""

    fenced: StripedBrokers
    unfenced: StripedBrokers


def wrong_with_placement(brokers: tuple[UsableBroker, ...], replicas: int) -> str | None:
    """The reason why so many replicas cannot be placed, `None` if they can. **Kafka:** `StripedReplicaPlacer.place`."""
    if replicas <= 0:
        return f"the replication factor is {replicas}, and must be positive"
    if all(broker.fenced for broker in brokers):
        return "all brokers are fenced"
    if replicas > len(brokers):
        return f"the replication factor is {replicas}, and {len(brokers)} brokers are registered"
    return None


def place(brokers: tuple[UsableBroker, ...], partitions: int, replicas: int, seed: int) -> tuple[tuple[BrokerId, ...], ...]:
    """The replicas of each new partition, in order of preference. The first of each is unfenced.

    Racks, and the brokers of each, take turns, so that leaders and followers are spread evenly; where the turns begin is
    chance, and after as many partitions as there are unfenced brokers the order is dealt anew. Nothing may be wrong with the
    placement (`wrong_with_placement`).

    **Kafka:** `StripedReplicaPlacer.RackList`.
    """
    names = tuple(sorted({broker.rack for broker in brokers}, key=lambda name: (name is not None, name or "")))
    chance, racks = _begin(chance_of(seed), brokers, names)
    chance, offset = draw(chance, len(names))
    available = sum(not broker.fenced for broker in brokers)
    turn, placed = 0, []
    for _ in range(partitions):
        if turn == available and available > 1:
            chance, racks, names = _deal_anew(chance, racks, names)
            turn = 0
        offset %= len(names)
        racks, chosen = _place_one(racks, names, offset, turn, replicas)
        placed.append(chosen)
        turn, offset = turn + 1, offset + 1
    return tuple(placed)


Racks: TypeAlias = tuple[tuple[str | None, Rack], ...]


def _begin(chance: Chance, brokers: tuple[UsableBroker, ...], names: tuple[str | None, ...]) -> tuple[Chance, Racks]:
    racks = []
    for name in names:
        of_rack = [broker for broker in brokers if broker.rack == name]
        chance, fenced = _striped(chance, tuple(sorted(one.broker for one in of_rack if one.fenced)))
        chance, unfenced = _striped(chance, tuple(sorted(one.broker for one in of_rack if not one.fenced)))
        racks.append((name, Rack(fenced, unfenced)))
    return chance, tuple(racks)


def _striped(chance: Chance, brokers: tuple[BrokerId, ...]) -> tuple[Chance, StripedBrokers]:
    if not brokers:
        return chance, StripedBrokers()
    chance, offset = draw(chance, len(brokers))
    return chance, StripedBrokers(brokers, offset=offset)


def _deal_anew(chance: Chance, racks: Racks, names: tuple[str | None, ...]) -> tuple[Chance, Racks, tuple[str | None, ...]]:
    chance, names = shuffled(chance, names)
    dealt = []
    for name, rack in racks:
        chance, fenced = shuffled(chance, rack.fenced.brokers)
        chance, unfenced = shuffled(chance, rack.unfenced.brokers)
        dealt.append((name, Rack(rack.fenced._replace(brokers=fenced), rack.unfenced._replace(brokers=unfenced))))
    return chance, tuple(dealt), names


def _place_one(
    racks: Racks, names: tuple[str | None, ...], offset: int, turn: int, replicas: int
) -> tuple[Racks, tuple[BrokerId, ...]]:
    """The first replica from the first rack, from the offset on, that has an unfenced broker; the others from the racks in
    turn, where that rack is passed over once.
    """
    by_name = dict(racks)
    chosen: list[BrokerId] = []
    first = offset
    while not chosen:
        rack = by_name[names[first]]
        unfenced, broker = _next(rack.unfenced, turn)
        by_name[names[first]] = rack._replace(unfenced=unfenced)
        chosen += [] if broker is None else [broker]
        first = first if chosen else (first + 1) % len(names)
    at, passed_over = offset, False
    while len(chosen) < replicas:
        if at == first and not passed_over:
            passed_over = True
        else:
            by_name[names[at]], broker = _next_of_rack(by_name[names[at]], turn)
            chosen += [] if broker is None else [broker]
        at = (at + 1) % len(names)
    return tuple(by_name.items()), tuple(chosen)


def _next_of_rack(rack: Rack, turn: int) -> tuple[Rack, BrokerId | None]:
    unfenced, broker = _next(rack.unfenced, turn)
    if broker is not None:
        return rack._replace(unfenced=unfenced), broker
    fenced, broker = _next(rack.fenced, turn)
    return Rack(fenced, unfenced), broker


def _next(striped: StripedBrokers, turn: int) -> tuple[StripedBrokers, BrokerId | None]:
    """The next broker of this turn, `None` if all have had theirs. **Kafka:** `BrokerList.next`."""
    size = len(striped.brokers)
    if size and striped.turn != turn:
        striped = striped._replace(turn=turn, taken=0, offset=(striped.offset + 1) % size)
    if striped.taken >= size:
        return striped, None
    broker = striped.brokers[(striped.taken + striped.offset) % size]
    return striped._replace(taken=striped.taken + 1), broker
