"""Kafka's replication protocol as pure functions over immutable values: what a broker and a controller run.

Read `log` first (a replica's log, its epoch history, its high watermark), then `broker` (a partition's state, what its
leader and its followers do with each message, and the small rules that they ask), then `controller` (who leads, who is in
sync). `messages` has their requests and responses, one file for each of Kafka's APIs. `zookeeper` is the controller before
KRaft. `releases` says in which rules Kafka's releases 0.10 to 4.4 differ, and so what each KIP changed.

A handler takes one party's state and one message, or the time. It returns a `Step`: the new state, and effects in order. A
refusal is an `Error`, which is a value. No broker runs `published`: it has the rules that only the six published TLA+ models
use.
"""

from kspec.spec.releases.broker import BROKER_RELEASES
from kspec.spec.releases.kraft import KRAFT_RELEASES
from kspec.spec.releases.zookeeper import ZK_RELEASES
from kspec.spec.step import Step
from kspec.spec.values import Error

__all__ = ["BROKER_RELEASES", "KRAFT_RELEASES", "ZK_RELEASES", "Error", "Step"]

if __name__ != "kspec.spec":
    raise ImportError("import kspec.spec instead: imported as spec, each class would be there twice")
