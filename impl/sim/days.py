"""Days of a cluster: nothing goes wrong, and all brokers are restarted, one after the other, again and again."""

from collections.abc import Iterator
from dataclasses import replace

from impl.sim.plan import Fault, Kind, Weather
from impl.sim.setup import Setup
from impl.storage.simulated_disk import Survives

MINUTE_MS = 60_000

WEATHER = Weather(weights=(), delays=(1, 4), max_lag=30_000, session=9_000, think=(500, 2_000))
"""Kafka's default time-outs, and clients that send and fetch every second or so: a day has many seconds."""


def day_of(setup: Setup) -> Setup:
    """The setup with the weather of such days."""
    return replace(setup, weather=WEATHER)


def restarts(every_minutes: int) -> Iterator[Fault]:
    """A rolling restart every so many minutes, without end."""
    at_ms = 0
    while True:
        at_ms += every_minutes * MINUTE_MS
        yield Fault(at_ms, Kind.ROLL, 1, 2, 0, Survives.ALL)
