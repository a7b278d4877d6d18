"""Spark's context without Spark: tasks run one after another in this process, and messages go through lists."""

import pickle
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any, NamedTuple


class _Broadcast(NamedTuple):
    value: Any

    def unpersist(self) -> None:
        pass


class _Dataset:
    def __init__(self, partitions: list[list[Any]]) -> None:
        self.partitions = partitions

    def mapPartitions(self, function: Callable[[Iterator[Any]], Iterable[Any]]) -> "_Dataset":  # noqa: N802 (Spark's name)
        return _Dataset([list(function(iter(partition))) for partition in self.partitions])

    def mapPartitionsWithIndex(  # noqa: N802
        self, function: Callable[[int, Iterator[Any]], Iterable[Any]]
    ) -> "_Dataset":
        return _Dataset([list(function(number, iter(partition))) for number, partition in enumerate(self.partitions)])

    def partitionBy(self, count: int, home: Callable[[int], int]) -> "_Dataset":  # noqa: N802
        partitions: list[list[Any]] = [[] for _ in range(count)]
        for message in chain(*self.partitions):
            partitions[home(message[0]) % count].append(pickle.loads(pickle.dumps(message)))
        return _Dataset(partitions)

    def collect(self) -> list[Any]:
        return list(chain(*self.partitions))


class Context:
    """The part of `pyspark.SparkContext` that the engine uses."""

    defaultParallelism = 2  # noqa: N815
    master = "local[2]"

    def broadcast(self, value: Any) -> _Broadcast:
        return _Broadcast(value)

    def parallelize(self, values: list[Any], partitions: int) -> _Dataset:
        assert len(values) == partitions
        return _Dataset([[value] for value in values])
