"""The same requests to two brokers, and their answers with what each has made up renamed.

A request that may wait for other members goes over a connection of its own. Both brokers handle requests in the order in
which they arrive, so a question that is asked, and answered, twice lies behind all that was sent before: what is not
answered by then waits.
"""

import re
import select
import socket
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from kspec.conformance.kafka.process import write_properties
from kspec.conformance.kafka.single import SingleKafka
from kspec.impl.wire.values import Message
from kspec.spec.coordinator.rules.consumer_protocol import read_assignment
from tests.impl.broker.process import BrokerClient, BrokerProcess, wait_until
from tests.limits.turns import Turns

Told = Any
"""An answer as plain values, the same from both brokers."""

OURS, KAFKAS = 0, 1
QUESTIONS = 2
"""So often a question is asked until all that was sent before has been handled, and its answers have been sent: the first
may be read together with it, and is then handled in any order."""


class MadeUpId(str):
    """A name that stands for a member id, which each of the brokers has made up."""

    __slots__ = ()


class NamedTopic(str):
    """A topic by whose id a broker is asked."""

    __slots__ = ()


TIMER_ASKED, TIMER_S = 20, 0.05
"""So often, and with such pauses, a question is asked until a timer has run out on both sides that is due at once."""

ORDERED_BY_HASH = ("members", "topic_partitions", "groups", "topics", "partitions", "results")
"""Lists whose order is that of a hash table in Kafka, or follows from one."""

ASSIGNMENTS = ("assignment", "member_assignment")
"""Bytes of assignments. The order of the topics in them is one of a hash table, too, if the coordinator has written them."""

MADE_UP = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
"""The end of an id that a broker has made up. Until it has told its member, it is like any other."""

NOT_COMPARED = ("error_message",)
"""The words of an error are for people to read; its number is what a client acts on."""


@dataclass(eq=False)
class Side:
    """One of the brokers: what it has made up, and the names for that."""

    port: int
    made: dict[str, MadeUpId] = field(default_factory=dict)
    actual: dict[str, str] = field(default_factory=dict)
    topics: dict[bytes, str] = field(default_factory=dict)

    def learn(self, actual: str, name: MadeUpId) -> None:
        """Note what a name stands for here."""
        self.made[actual], self.actual[name] = name, actual

    def put(self, value: Any) -> Any:
        """A request in the words of this broker."""
        match value:
            case Message():
                return Message(**{name: self.put(one) for name, one in value.__dict__.items()})
            case MadeUpId():
                return self.actual[value]
            case NamedTopic():
                return next((there for there, name in self.topics.items() if name == value), b"\7" * 16)
            case list():
                return [self.put(one) for one in value]
        return value

    def told(self, value: Any, name: str = "") -> Told:
        """An answer as plain values."""
        match value:
            case Message():
                return {key: self.told(one, key) for key, one in value.__dict__.items() if key not in NOT_COMPARED}
            case str():
                return str(self.made[value]) if value in self.made else MADE_UP.sub("(made up)", value)
            case bytes() | bytearray() | memoryview():
                known = bytes(value)
                assignment = read_assignment(known) if name in ASSIGNMENTS else None
                if assignment is not None:
                    return known[:2], sorted(assignment.partitions), assignment.user_data
                return self.topics.get(known, known)
            case list() | tuple():
                found = [self.told(one) for one in value]
                return sorted(found, key=repr) if name in ORDERED_BY_HASH else found
        return value


@dataclass(eq=False)
class Request:
    """A request that both brokers have got, and neither has answered yet."""

    api: str
    version: int
    message: Message
    clients: tuple[BrokerClient, BrokerClient]


class DifferenceError(AssertionError):
    """The two brokers have answered the same request differently."""


def differences(ours: Told, kafkas: Told, path: str = "") -> Iterator[str]:
    """The places at which two answers differ, in words."""
    if isinstance(ours, dict) and isinstance(kafkas, dict):
        for name in ours:
            yield from differences(ours[name], kafkas[name], f"{path}.{name}")
    elif isinstance(ours, list) and isinstance(kafkas, list) and len(ours) == len(kafkas):
        for place, (one, other) in enumerate(zip(ours, kafkas, strict=True)):
            yield from differences(one, other, f"{path}[{place}]")
    elif ours != kafkas:
        yield f"{path[1:]} is {ours!r}, and of Kafka {kafkas!r}"


class FreedomTaken(Exception):  # noqa: N818 (it is no error)
    """The two brokers have gone ways that are both Kafka's, and are not compared from there on."""


def _lead_differs(ours: Told, kafkas: Told) -> bool:
    """Whether both say that a generation has begun, and that another member leads it."""
    kinds = {"leader": "", "members": []}
    begun = "generation_id" in ours and ours["error_code"] == 0
    return begun and ours["leader"] != kafkas["leader"] and ours | kinds == kafkas | kinds


class SideBySide:
    """Two brokers, ours first, with the same topics. `partitions`: of each topic."""

    def __init__(self, broker: BrokerProcess, kafka: SingleKafka, partitions: Mapping[str, int]) -> None:
        self._processes = broker, kafka
        self.sides = (Side(broker.port), Side(kafka.port))
        self.settings: Mapping[str, object] = {}
        """Settings that both have beside those of their first start."""

        self.asking = self.connect()
        self._names = 0
        self._partitions = partitions

    def connect(self) -> tuple[BrokerClient, BrokerClient]:
        """A connection to each, which it has taken."""
        made = (BrokerClient(self.sides[OURS].port), BrokerClient(self.sides[KAFKAS].port))
        for client in made:
            client.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # several requests may be on their way
            assert client.call("ApiVersions", 0).error_code == 0
        return made

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for client in self.asking:
            client.close()

    def prepare(self) -> None:
        """Create the topics, and wait until there are coordinators."""
        for side, client in zip(self.sides, self.asking, strict=True):
            for topic, count in self._partitions.items():
                client.create(topic, count)
            wait_until(lambda side=side, client=client: self._is_led(side, client))
        self.wait_until_coordinated()

    def wait_until_coordinated(self) -> None:
        """Wait until all groups have coordinators that have read their logs."""
        for client in self.asking:
            for group in map(str, range(20)):
                wait_until(lambda client=client, group=group: _is_coordinated(client, group))

    def restart(self, settings: Mapping[str, object], *, in_order: bool) -> None:
        """Stop both, or end them at once, and start them with these settings. All connections are lost."""
        for client in self.asking:
            client.close()
        broker, kafka = self._processes
        others = [one for one in broker.overrides if one.partition("=")[0] not in self.settings]
        broker.overrides = [*others, *(f"{name}={value}" for name, value in settings.items())]
        for name in self.settings:
            kafka.process.settings.pop(name, None)
        kafka.process.settings.update(settings)
        write_properties(kafka.process.folder / "server.properties", kafka.process.settings)
        self.settings = settings
        if in_order:
            broker.stop()
            kafka.process.stop()
        else:
            broker.kill()
            kafka.kill()
        broker.start()
        kafka.start()
        self.asking = self.connect()
        self.wait_until_coordinated()

    def _is_led(self, side: Side, client: BrokerClient) -> bool:
        wanted = [Message(name=topic) for topic in self._partitions]
        found = client.call("Metadata", 12, topics=wanted, allow_auto_topic_creation=False).topics
        side.topics = {bytes(one.topic_id): one.name for one in found}
        return all(one.error_code == 0 and all(part.leader_id >= 0 for part in one.partitions) for one in found)

    # ---- requests

    def ask(self, api: str, version: int, **fields: Any) -> Told:
        """Ask both something that is answered at once; their answer."""
        return self.receive(self.send(self.asking, api, version, "asks", **fields))

    def ask_all(self, *asked: tuple[str, int, Mapping[str, Any]]) -> list[Told]:
        """Ask both several things at once, which are answered in turn; their answers.

        The questions change nothing, so they are asked again if a timer of no length has run out on one side only: a group
        whose last member leaves while another is awaited rebalances for as long as its members ask, which is 0 ms.
        """
        turns, left = Turns(), TIMER_ASKED
        while True:
            turns.go()
            requests = [self.send(self.asking, api, version, "asks", **fields) for api, version, fields in asked]
            try:
                answers: list[Told] = self.receive(*requests)
            except DifferenceError:
                left -= 1
                if not left:
                    raise
                time.sleep(TIMER_S)
            else:
                return answers

    def list_groups(self, version: int, wanted: Collection[str]) -> None:
        """List these groups, and no others."""
        found = []
        for client in self.asking:
            client.send("ListGroups", version, Message(), "asks")
        for side, client in zip(self.sides, self.asking, strict=True):
            told = side.told(client.receive("ListGroups", version))
            found.append([one for one in told["groups"] if one["group_id"] in wanted])
        if different := list(differences(found[OURS], found[KAFKAS])):
            raise DifferenceError(f"ListGroups {version}: {'; '.join(different)}")

    def send(
        self, clients: tuple[BrokerClient, BrokerClient], api: str, version: int, client_id: str, **fields: Any
    ) -> Request:
        """Send the same request to both."""
        request = Request(api, version, Message(**fields), clients)
        for side, client in zip(self.sides, clients, strict=True):
            client.send(api, version, side.put(request.message), client_id)
        return request

    def receive(self, *requests: Request) -> Told:
        """The answers to these requests, which both give, in this order; that to the first one, if it is alone.

        Raises: `DifferenceError`; `FreedomTaken`.
        """
        answers = [self._received(request) for request in requests]
        for ours, kafkas in answers:
            self._learn(ours, kafkas)
        found = []
        for request, (ours, kafkas) in zip(requests, answers, strict=True):
            told = self.sides[OURS].told(ours), self.sides[KAFKAS].told(kafkas)
            if _lead_differs(*told):
                raise FreedomTaken("leader")
            if told[OURS] != told[KAFKAS]:
                where = "; ".join(differences(*told))
                raise DifferenceError(f"{request.api} {request.version} {request.message}: {where}")
            found.append(told[OURS])
        return found[0] if len(found) == 1 else found

    def _received(self, request: Request) -> tuple[Message, Message]:
        found = []
        for which, client in zip(("this broker", "Apache Kafka"), request.clients, strict=True):
            try:
                found.append(client.receive(request.api, request.version))
            except TimeoutError:
                raise DifferenceError(f"{which} does not answer {request.api} {request.message}") from None
        return found[OURS], found[KAFKAS]

    def _learn(self, ours: Message, kafkas: Message) -> None:
        """Give what both have made up the same name."""
        made = [getattr(one, "member_id", None) or "" for one in (ours, kafkas)]
        unknown = all(one and one not in side.made for one, side in zip(made, self.sides, strict=True))
        if unknown and made[OURS] != made[KAFKAS]:
            self._names += 1
            for side, one in zip(self.sides, made, strict=True):
                side.learn(one, MadeUpId(f"made-{self._names}"))

    def answered(self, waiting: Iterable[Request], group: str) -> list[Request]:
        """Those of the requests that have been answered by either, when all that was sent has been handled."""
        for _ in range(QUESTIONS):
            for client in self.asking:
                client.send("DescribeGroups", 5, Message(groups=[group]), "asks")
            for client in self.asking:
                client.receive("DescribeGroups", 5)
        listed = list(waiting)
        sockets = {client.socket: request for request in listed for client in request.clients}
        if not sockets:
            return []
        ready, _, _ = select.select(list(sockets), [], [], 0)
        return [request for request in listed if any(sockets[one] is request for one in ready)]

    def settle(self, waiting: Iterable[Request], group: str) -> list[tuple[Request, Told]]:
        """The answers that have come to requests that wait, when no more come."""
        left, found = list(waiting), []
        turns = Turns()
        while left:
            turns.go()
            ready = self.answered(left, group)
            if not ready:
                break
            told = self.receive(*ready)
            found += list(zip(ready, told if len(ready) > 1 else [told], strict=True))
            left = [one for one in left if one not in ready]
        return found


def _is_coordinated(client: BrokerClient, group: str) -> bool:
    found = client.call("FindCoordinator", 4, key_type=0, coordinator_keys=[group]).coordinators[0]
    return bool(found.error_code == 0 and client.call("DescribeGroups", 5, groups=[group]).groups[0].error_code == 0)
