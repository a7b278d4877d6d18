"""Brokers that are registered with the controller's stand-in, and their records in the metadata log.

A broker epoch is the offset of a registration record, as with the real controller.
"""

from kspec.conformance.kafka.network import ArrivedRequest
from kspec.conformance.kafka.process import HOST
from kspec.impl.metadata.records import FENCING
from kspec.impl.wire.values import Message

REAL_NODE = 1
STAND_IN_NODES = (2, 3, 4, 5)

Written = tuple[str, Message]
"""A record of the metadata log: the name of its kind, and its fields."""


def directory_id(node: int) -> bytes:
    """The id of a node's log directory."""
    return bytes([0xD0, *([0] * 5), 0x40, 0, 0x80, *([0] * 6), node])


class Registry:
    """The registrations: broker epochs, the fenced brokers, and those in controlled shutdown (`leaving`).

    `ports`: of the stand-ins. `incarnation`: the registered incarnation of the broker under test.
    """

    def __init__(self) -> None:
        self.ports: dict[int, int] = {}
        self.epochs: dict[int, int] = {}
        self.fenced: set[int] = set()
        self.leaving: set[int] = set()
        self.directories = {node: directory_id(node) for node in (REAL_NODE, *STAND_IN_NODES)}
        self.incarnation = b""
        self._features: list[Message] = []
        self._listeners: list[Message] = []

    def takes_features(self, registration: Message) -> None:
        """Take the features that the broker under test supports as those of the cluster."""
        self._features = list(registration.features)
        if registration.log_dirs:
            self.directories[REAL_NODE] = bytes(registration.log_dirs[0])

    def metadata_version(self) -> Written:
        """The record that sets `metadata.version`: the latest that the broker under test supports."""
        version = next(one.max_supported_version for one in self._features if one.name == "metadata.version")
        return "FeatureLevelRecord", Message(name="metadata.version", feature_level=version)

    # ---- registrations

    def new_incarnation(self, node: int, offset: int, *, fenced: bool = False) -> Written:
        """The record that registers a new incarnation of a stand-in, to be appended at this offset."""
        endpoint = Message(name="PLAINTEXT", host=HOST, port=self.ports[node], security_protocol=0)
        return self._registered(node, offset, node.to_bytes(8) + offset.to_bytes(8), [endpoint], fenced=fenced)

    def real_incarnation(self, arrived: ArrivedRequest, offset: int, *, fenced: bool) -> Written:
        """The record that registers the incarnation of the broker under test that asks for it."""
        asked = arrived.message
        self.incarnation = bytes(asked.incarnation_id)
        self._listeners = [
            Message(name=one.name, host=one.host, port=one.port, security_protocol=one.security_protocol)
            for one in asked.listeners
        ]
        return self._registered(REAL_NODE, offset, self.incarnation, self._listeners, fenced=fenced)

    def same_incarnation(self) -> Written:
        """The record of a registration of the broker under test that arrives again: all fields stay as they are."""
        leaving = REAL_NODE in self.leaving
        name, record = self._registered(
            REAL_NODE, self.epochs[REAL_NODE], self.incarnation, self._listeners, fenced=REAL_NODE in self.fenced
        )
        if leaving:
            self.leaving.add(REAL_NODE)
            record.__dict__["in_controlled_shutdown"] = True
        return name, record

    def _registered(self, node: int, offset: int, incarnation: bytes, listeners: list[Message], *, fenced: bool) -> Written:
        """A registration record, whose offset is the broker epoch. Kafka: `ClusterControlManager.registerBroker`."""
        features = [
            Message(
                name=one.name,
                min_supported_version=one.min_supported_version,
                max_supported_version=one.max_supported_version,
            )
            for one in self._features
        ]
        self.epochs[node] = offset
        self.leaving.discard(node)
        self._note(node, fenced=fenced)
        record = Message(
            broker_id=node,
            incarnation_id=incarnation,
            broker_epoch=offset,
            end_points=listeners,
            features=features,
            fenced=fenced,
            log_dirs=[self.directories[node]],
        )
        return "RegisterBrokerRecord", record

    # ---- changes

    def change(self, node: int, *, fenced: bool | None, leaving: bool = False) -> Written:
        """The record that fences or unfences a node, or says that it is in controlled shutdown."""
        if fenced is not None:
            self._note(node, fenced=fenced)
        if leaving:
            self.leaving.add(node)
        record = Message(
            broker_id=node,
            broker_epoch=self.epochs[node],
            fenced=FENCING[fenced],
            in_controlled_shutdown=1 if leaving else 0,
        )
        return "BrokerRegistrationChangeRecord", record

    def _note(self, node: int, *, fenced: bool) -> None:
        (self.fenced.add if fenced else self.fenced.discard)(node)
