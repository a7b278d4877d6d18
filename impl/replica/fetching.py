"""One fetcher: all partitions of this broker that follow the same leader, one request under way at a time.

Kafka: `ReplicaFetcherThread`, without a thread. What a partition asks, and what it makes of an answer, is
`spec.broker.follower`.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from impl.broker.calls import Ask, Channel, Effect, Store, Then
from impl.broker.core import Core
from impl.broker.replica import Replica
from impl.broker.timers import Timer
from impl.replica.fetch_messages import (
    Answered,
    epoch_ends,
    epochs_request,
    fetch_request,
    fetched,
    list_offsets_request,
    listed_offsets,
)
from impl.wire.values import Message
from spec.broker.clients.fetch_sessions import FIRST_EPOCH, ClientSession, after_answer, after_no_answer, waits_after
from spec.broker.effects import FollowerRequest
from spec.broker.follower import (
    fetch_or_truncate,
    handle_fetch_response,
    handle_list_offsets_response,
    handle_offset_for_leader_epoch_response,
    on_no_answer,
)
from spec.broker.partition import Partition
from spec.broker.rules.fetcher import Asked, is_fetching
from spec.broker.rules.throttling import lag_of, may_hold_back
from spec.messages.fetch import FetchRequest
from spec.messages.list_offsets import ListOffsetsRequest
from spec.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from spec.values import BrokerId, Error, Offset


class Wanted(NamedTuple):
    """What a partition asks next: the request, and the epoch and offset at which its fetcher was."""

    replica: Replica
    request: FollowerRequest
    asked: Asked


@dataclass(slots=True)
class Followed:
    """A partition of a fetcher: its next request, and the state in which it was worked out."""

    replica: Replica
    wanted: Wanted | None = None
    state: Partition[Any] | None = None
    named: FetchRequest | None = field(default=None)
    """The request that the session knows."""
    lag: int | None = None
    """How many records it lacks, by the last answer."""
    held_back: bool = False
    """Whether it is left out of the next fetch, because it is throttled."""


class LeaderFetcher:
    """The partitions that follow one leader."""

    def __init__(self, core: Core, leader: BrokerId) -> None:
        self._core = core
        self._leader = leader
        self._channel = Channel(leader, "fetch")
        self._followed: dict[Replica, Followed] = {}
        self._by_key: dict[tuple[bytes, int], Followed] = {}
        self._gone: list[Replica] = []
        self._session = ClientSession()
        self._asking = False
        self._timer: Timer | None = None

    @property
    def partitions(self) -> int:
        """How many partitions follow this leader."""
        return len(self._followed)

    def add(self, replica: Replica) -> None:
        """A partition follows this leader from now on; `go` asks for it."""
        if replica not in self._followed:
            followed = self._followed[replica] = Followed(replica)
            self._by_key[replica.topic_id, replica.place.partition] = followed

    def remove(self, replica: Replica) -> None:
        """A partition does not follow this leader any more."""
        followed = self._followed.pop(replica, None)
        if followed is not None:
            del self._by_key[replica.topic_id, replica.place.partition]
            if followed.named is not None:
                self._gone.append(replica)

    # ---- asking

    def go(self, now: int) -> list[Effect]:
        """Send the next request, if none is under way. Questions about epochs come first, then those about offsets."""
        if self._asking:
            return []
        effects: list[Effect] = []
        wanted: list[Wanted] = []
        wake_up: list[int] = []
        for followed in list(self._followed.values()):
            effects += self._look_at(followed, now)
            followed.held_back = self._holds_back(followed, now)
            if followed.held_back:
                wake_up.append(now + self._core.config["replica.fetch.backoff.ms"])
            elif followed.wanted is not None:
                wanted.append(followed.wanted)
            elif followed.replica in self._followed:
                wake_up.append(followed.replica.partition.fetcher.delayed_until)
        self._wake_up_at(min(wake_up, default=None), now)
        asks = self._next_ask(wanted)
        if asks is not None:
            self._asking = True
            effects.append(asks)
        return effects

    def _look_at(self, followed: Followed, now: int) -> list[Effect]:
        """Work out what a partition asks next, unless that is known."""
        replica = followed.replica
        if followed.state is replica.partition and followed.wanted is not None:
            return []
        if replica.offline or not is_fetching(replica.partition.fetcher):
            self.remove(replica)
            followed.wanted = None
            return []
        effects: list[Effect] = []
        while True:
            before = replica.partition
            ran = self._core.run(fetch_or_truncate, replica, now, now=now)
            effects += ran.effects
            if ran.sent is not None or replica.partition is before:
                break
        followed.state, followed.wanted = replica.partition, None
        if ran.sent is not None:
            fetcher = replica.partition.fetcher
            followed.wanted = Wanted(replica, ran.sent, Asked(fetcher.leader_epoch, fetcher.fetch_offset))
        return effects

    def _holds_back(self, followed: Followed, now: int) -> bool:
        """Whether a partition is left out of the next fetch, because its replica here is throttled."""
        if followed.wanted is None or not isinstance(followed.wanted.request, FetchRequest):
            return False
        throttle = self._core.follower_throttle
        return throttle.concerns(followed.replica) and may_hold_back(True, throttle.is_exceeded(now), followed.lag)

    def _wake_up_at(self, time: int | None, now: int) -> None:
        if self._timer is not None:
            self._core.timers.cancel(self._timer)
            self._timer = None
        if time is not None:
            self._timer = self._core.timers.at(max(time, now + 1), self._on_time)

    def _on_time(self, now: int) -> list[Effect]:
        self._timer = None
        return self.go(now)

    def _next_ask(self, wanted: list[Wanted]) -> Ask | None:
        epochs = [one for one in wanted if isinstance(one.request, OffsetForLeaderEpochRequest)]
        if epochs:
            return self._ask("OffsetForLeaderEpoch", epochs_request(self._core.cluster.self_id, epochs), epochs)
        offsets = [one for one in wanted if isinstance(one.request, ListOffsetsRequest)]
        if offsets:
            return self._ask("ListOffsets", list_offsets_request(self._core.cluster.self_id, offsets), offsets)
        return self._ask_records(wanted) if wanted else None

    def _ask_records(self, wanted: list[Wanted]) -> Ask:
        """A fetch; in a session it names only the partitions of which there is news."""
        full = self._session.epoch == FIRST_EPOCH
        named: list[Wanted] = []
        forgotten = [] if full else self._gone
        for followed in self._followed.values():
            one = None if followed.held_back else followed.wanted
            if one is None:
                if followed.named is not None and not full:
                    forgotten.append(followed.replica)
                followed.named = None
            elif isinstance(one.request, FetchRequest) and (full or followed.named != one.request):
                named.append(one)
                followed.named = one.request
        self._gone = []
        epoch = self._core.protocol.names_broker_epoch(self._core.broker_epoch)
        message = fetch_request(self._core, self._session, epoch, named, forgotten)
        return self._ask("Fetch", message, wanted)

    def _ask(self, api: str, message: Message, wanted: list[Wanted]) -> Ask:
        return Ask(self._channel, api, message, lambda answer, now: self._take(api, wanted, answer, now))

    # ---- answers

    def _take(self, api: str, wanted: list[Wanted], answer: Message | None, now: int) -> list[Effect]:
        self._asking = False
        asked = {one.replica: one for one in wanted}
        if api != "Fetch":
            effects = self._take_other(api, asked, answer, now)
        elif answer is None:
            self._session = after_no_answer(self._session)
            effects = self._no_answer(wanted, now)
        else:
            error = Error(answer.error_code)
            self._session = after_answer(self._session, error, answer.session_id)
            if error == Error.NONE:
                effects = self._take_fetched(asked, answer, now)
            else:
                effects = self._no_answer(wanted, now) if waits_after(error) else []
        return [*effects, Then(lambda: self.go(now))]

    def _no_answer(self, wanted: Iterable[Wanted], now: int) -> list[Effect]:
        """The leader cannot be reached, or has not understood: all partitions back off."""
        return [effect for one in wanted for effect in self._core.run(on_no_answer, one.replica, now, now=now).effects]

    def _replica(self, topic_id: bytes, index: int) -> Replica | None:
        followed = self._by_key.get((topic_id, index))
        return None if followed is None else followed.replica

    def _take_fetched(self, asked: dict[Replica, Wanted], answer: Message, now: int) -> list[Effect]:
        effects: list[Effect] = []
        for topic in answer.responses:
            for part in topic.partitions:
                replica = self._replica(bytes(topic.topic_id), part.partition_index)
                if replica is not None and replica in asked:
                    effects += self._take_records(asked[replica], part, now)
        return effects

    def _take_records(self, wanted: Wanted, part: Message, now: int) -> list[Effect]:
        """Hand the answer for a partition to `spec`: in one piece, or where batches have a gap between them, in several."""
        answers = fetched(wanted.asked.fetch_offset, part)
        if answers is None:
            return self._no_answer([wanted], now)
        if self._core.follower_throttle.concerns(wanted.replica):
            self._core.follower_throttle.count(len(part.records or b""), now)
        effects: list[Effect] = []
        asked = wanted.asked
        for one in answers:
            effects += self._handle(handle_fetch_response, wanted.replica, asked, one, now)
            asked = Asked(asked.leader_epoch, wanted.replica.partition.fetcher.fetch_offset)
        if wanted.replica in self._followed and not part.error_code:
            self._followed[wanted.replica].lag = lag_of(Offset(part.high_watermark), asked.fetch_offset)
        return effects

    def _handle(
        self, handler: Callable[..., Any], replica: Replica, asked: Asked, answer: Answered, now: int
    ) -> list[Effect]:
        effects = self._core.run(handler, replica, asked, answer.response, now, now=now, payloads=answer.payloads).effects
        for effect in effects:
            if isinstance(effect, Store):
                effect.on_failure = lambda: self.remove(replica)
        return effects

    def _take_other(self, api: str, asked: dict[Replica, Wanted], answer: Message | None, now: int) -> list[Effect]:
        """Answers about epochs and offsets."""
        if answer is None:
            return self._no_answer(asked.values(), now)
        found, handler = (
            (epoch_ends(answer), handle_offset_for_leader_epoch_response)
            if api == "OffsetForLeaderEpoch"
            else (listed_offsets(answer), handle_list_offsets_response)
        )
        effects: list[Effect] = []
        for replica, one in asked.items():
            response = found.get(replica.place)
            if response is None:
                effects += self._no_answer([one], now)
            else:
                effects += self._handle(handler, replica, one.asked, Answered(response), now)
        return effects
