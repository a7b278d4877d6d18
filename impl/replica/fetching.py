"""One fetcher: all partitions of this broker that follow the same leader, one request under way at a time.

Kafka: `ReplicaFetcherThread`, without a thread. What a partition asks, and what it makes of an answer, is
`spec.broker.follower`.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from heapq import heappop, heappush
from itertools import count
from operator import attrgetter
from typing import NamedTuple, TypeVar

from kspec.impl.broker.calls import Ask, ChannelKey, DelayedOperation, Effect, Then
from kspec.impl.broker.core import BrokerCore, PartitionHandler
from kspec.impl.broker.replica import Replica
from kspec.impl.broker.timers import Timer
from kspec.impl.replica.fetch_messages import (
    FetchingPartition,
    PartitionAnswer,
    end_of,
    epoch_ends,
    epochs_request,
    fetch_request,
    fetched,
    list_offsets_request,
    listed_offsets,
)
from kspec.impl.wire.values import Message
from kspec.spec.broker.clients.fetch_sessions import FIRST_EPOCH, ClientSession, after_answer, after_no_answer, waits_after
from kspec.spec.broker.effects import FollowerRequest
from kspec.spec.broker.follower import (
    fetch_or_truncate,
    handle_fetch_response,
    handle_list_offsets_response,
    handle_offset_for_leader_epoch_response,
    on_no_answer,
)
from kspec.spec.broker.partition import Partition
from kspec.spec.broker.rules.fetcher import PendingFetch, is_fetching
from kspec.spec.broker.rules.throttling import lag_of, may_hold_back
from kspec.spec.log.epoch_log import EpochLog
from kspec.spec.messages.fetch import FetchRequest
from kspec.spec.messages.list_offsets import ListOffsetsRequest
from kspec.spec.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from kspec.spec.topics import TopicPartition
from kspec.spec.values import BrokerId, Error, Instant, MonotonicMs, Offset

ResponseT = TypeVar("ResponseT")


class NextFetch(NamedTuple):
    """A partition's next fetch: the request, and the epoch and offset at which its fetcher was."""

    replica: Replica
    request: FollowerRequest
    asked: PendingFetch


NO_WAITING: dict[DelayedOperation, None] = {}


@dataclass(slots=True, eq=False)
class FollowedPartition:
    """A partition of a fetcher: its next request, and the state in which it was worked out. It observes the partition."""

    replica: Replica
    fetcher: "LeaderFetcher"
    number: int
    """Its place among the partitions of the fetcher."""
    wanted: NextFetch | None = None
    state: Partition[EpochLog] | None = None
    named: FetchRequest | None = field(default=None)
    """The request that the session knows."""
    lag: int | None = None
    """The number of records that it lacks, by the last response."""
    held_back: bool = False
    """Whether it is left out of the next fetch, because it is throttled."""

    @property
    def waiting(self) -> dict[DelayedOperation, None]:
        """No fetch waits for what is copied here."""
        return NO_WAITING

    def changed(self) -> None:
        """Its next request is to be worked out again."""
        self.fetcher.look_again_at(self)


class LeaderFetcher:
    """The partitions that follow one leader. A request costs as much as there are partitions with news, and no more.

    Those whose next request is the one that the session knows stay in `_fetching`. Nobody looks at them until they change.
    """

    def __init__(self, core: BrokerCore, leader: BrokerId) -> None:
        self._core = core
        self._leader = leader
        self._channel = ChannelKey(leader, "fetch")
        self._followed: dict[Replica, FollowedPartition] = {}
        self._by_key: dict[tuple[bytes, int], FollowedPartition] = {}
        self._news: dict[FollowedPartition, None] = {}
        """Those whose next request is to be worked out."""
        self._fetching: dict[FollowedPartition, None] = {}
        """Those that the next fetch is about, named in it or not."""
        self._to_name: dict[FollowedPartition, None] = {}
        """Those of them whose request the session may not know."""
        self._left: dict[FollowedPartition, None] = {}
        """Those that were among them, and that the session may know."""
        self._asking_other: dict[FollowedPartition, None] = {}
        """Those that ask about epochs or offsets."""
        self._throttled: dict[FollowedPartition, None] = {}
        """Those whose replica here is throttled: whether they are held back depends on the time."""
        self._delayed: list[tuple[MonotonicMs, int, FollowedPartition]] = []
        """Those that back off, by the time until which they do: a heap."""
        self._gone: list[Replica] = []
        self._asked_of_gone: dict[Replica, NextFetch] = {}
        """The part of the request in flight that is about partitions removed since."""
        self._numbers = count()
        self._session = ClientSession()
        self._asking = False
        self._timer: Timer[Effect] | None = None

    @property
    def partitions(self) -> int:
        """The number of partitions that follow this leader."""
        return len(self._followed)

    def add(self, replica: Replica) -> None:
        """A partition follows this leader from now on; `go` asks for it."""
        if replica not in self._followed:
            followed = self._followed[replica] = FollowedPartition(replica, self, next(self._numbers))
            self._by_key[replica.topic_id, replica.place.partition] = followed
            replica.observers[followed] = None
            self._news[followed] = None

    def remove(self, replica: Replica) -> None:
        """A partition does not follow this leader any more."""
        followed = self._followed.pop(replica, None)
        if followed is not None:
            del self._by_key[replica.topic_id, replica.place.partition]
            replica.observers.pop(followed, None)
            if self._asking and followed in self._fetching and followed.wanted is not None:
                self._asked_of_gone[replica] = followed.wanted
            for known in (self._news, self._fetching, self._to_name, self._left, self._asking_other, self._throttled):
                known.pop(followed, None)
            if followed.named is not None:
                self._gone.append(replica)

    def look_again_at(self, followed: FollowedPartition) -> None:
        """A partition has changed."""
        self._news[followed] = None

    # ---- asking

    def go(self, now: Instant) -> list[Effect]:
        """Send the next request, if none is under way. Questions about epochs come first, then those about offsets."""
        if self._asking:
            return []
        while self._delayed and self._delayed[0][0] <= now.monotonic:
            followed = heappop(self._delayed)[2]
            if self._followed.get(followed.replica) is followed:
                self._news[followed] = None
        news, self._news = sorted({**self._news, **self._throttled}, key=attrgetter("number")), {}
        effects: list[Effect] = []
        for followed in news:
            effects += self._look_at(followed, now)
            self._sort_in(followed, now)
        self._news.clear()  # what the partitions have changed themselves has been looked at
        self._wake_up(now)
        asks = self._next_ask()
        if asks is not None:
            self._asking = True
            effects.append(asks)
        return effects

    def _sort_in(self, followed: FollowedPartition, now: Instant) -> None:
        """Note what a partition waits for: a fetch, another answer, or a time."""
        if followed.replica not in self._followed:
            return
        self._throttled.pop(followed, None)
        if self._core.follower_throttle.concerns(followed.replica):
            self._throttled[followed] = None
        wanted = followed.wanted
        followed.held_back = self._holds_back(followed, now)
        fetches = wanted is not None and isinstance(wanted.request, FetchRequest) and not followed.held_back
        if fetches:
            self._fetching[followed] = None
            self._to_name[followed] = None
        else:
            self._to_name.pop(followed, None)
            if self._fetching.pop(followed, self) is None:
                self._left[followed] = None
        self._asking_other.pop(followed, None)
        if wanted is not None and not fetches and not followed.held_back:
            self._asking_other[followed] = None
        if wanted is None:
            until = followed.replica.partition.fetcher.delayed_until
            heappush(self._delayed, (until, next(self._numbers), followed))

    def _look_at(self, followed: FollowedPartition, now: Instant) -> list[Effect]:
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
            ran = self._core.run(fetch_or_truncate, replica, now.monotonic, now=now)
            effects += ran.effects
            if ran.sent is not None or replica.partition is before:
                break
        followed.state, followed.wanted = replica.partition, None
        if ran.sent is not None:
            fetcher = replica.partition.fetcher
            followed.wanted = NextFetch(replica, ran.sent, PendingFetch(fetcher.leader_epoch, fetcher.fetch_offset))
        return effects

    def _holds_back(self, followed: FollowedPartition, now: Instant) -> bool:
        """Whether a partition is left out of the next fetch, because its replica here is throttled."""
        if followed.wanted is None or not isinstance(followed.wanted.request, FetchRequest):
            return False
        throttle = self._core.follower_throttle
        return throttle.concerns(followed.replica) and may_hold_back(True, throttle.is_exceeded(now.monotonic), followed.lag)

    def _wake_up(self, now: Instant) -> None:
        """Go on when a partition has backed off long enough, or may be held back no more."""
        if self._timer is not None:
            self._core.timers.cancel(self._timer)
            self._timer = None
        times = [self._delayed[0][0]] if self._delayed else []
        if any(followed.held_back for followed in self._throttled):
            times.append(now.after(self._core.config.number("replica.fetch.backoff.ms")))
        if times:
            self._timer = self._core.timers.at(max(min(times), now.after(1)), self._on_time)

    def _on_time(self, now: Instant) -> list[Effect]:
        self._timer = None
        return self.go(now)

    def _next_ask(self) -> Ask | None:
        others = sorted(self._asking_other, key=attrgetter("number"))
        wanted = [one.wanted for one in others if one.wanted is not None]
        self_id = self._core.cluster.self_id
        epochs = [
            (one, FetchingPartition(one.replica, one.request))
            for one in wanted
            if isinstance(one.request, OffsetForLeaderEpochRequest)
        ]
        if epochs:
            message = epochs_request(self_id, [question for _, question in epochs])
            return self._ask("OffsetForLeaderEpoch", message, [one for one, _ in epochs])
        offsets = [
            FetchingPartition(one.replica, one.request) for one in wanted if isinstance(one.request, ListOffsetsRequest)
        ]
        if offsets:
            return self._ask("ListOffsets", list_offsets_request(self_id, offsets), wanted)
        return self._ask_records() if self._fetching else None

    def _ask_records(self) -> Ask:
        """A fetch; in a session it names only the partitions of which there is news."""
        full = self._session.epoch == FIRST_EPOCH
        for followed in self._left:
            if followed not in self._fetching and followed.named is not None:
                self._gone.append(followed.replica)
                followed.named = None
        forgotten = [] if full else self._gone
        named: list[FetchingPartition[FetchRequest]] = []
        for followed in sorted(self._fetching if full else self._to_name, key=attrgetter("number")):
            one = followed.wanted
            if one is not None and isinstance(one.request, FetchRequest) and (full or followed.named != one.request):
                named.append(FetchingPartition(one.replica, one.request))
                followed.named = one.request
        self._gone, self._to_name, self._left, self._asked_of_gone = [], {}, {}, {}
        epoch = self._core.protocol.names_broker_epoch(self._core.broker_epoch)
        message = fetch_request(self._core, self._session, epoch, named, forgotten)
        return self._ask("Fetch", message, [])

    def _ask(self, api: str, message: Message, wanted: list[NextFetch]) -> Ask:
        """A request; `wanted`: what is asked for each partition, unless it is a fetch, which is about `_fetching`."""
        return Ask(self._channel, api, message, lambda answer, now: self._take(api, wanted, answer, now))

    # ---- answers

    def _take(self, api: str, wanted: list[NextFetch], answer: Message | None, now: Instant) -> list[Effect]:
        self._asking = False
        if api != "Fetch":
            effects = self._take_other(api, {one.replica: one for one in wanted}, answer, now)
        elif answer is None:
            self._session = after_no_answer(self._session)
            effects = self._no_answer(self._fetched(), now)
        else:
            error = Error(answer.error_code)
            self._session = after_answer(self._session, error, answer.session_id)
            if error == Error.NONE:
                effects = self._take_fetched(answer, now)
            else:
                effects = self._no_answer(self._fetched(), now) if waits_after(error) else []
        return [*effects, Then(lambda: self.go(now))]

    def _fetched(self) -> list[NextFetch]:
        """The request for each partition in the fetch under way."""
        there = [one.wanted for one in sorted(self._fetching, key=attrgetter("number")) if one.wanted is not None]
        return [*there, *self._asked_of_gone.values()]

    def _no_answer(self, wanted: Iterable[NextFetch], now: Instant) -> list[Effect]:
        """The leader cannot be reached, or has not understood: all partitions back off."""
        return [
            effect for one in wanted for effect in self._core.run(on_no_answer, one.replica, now.monotonic, now=now).effects
        ]

    def _asked_for(self, topic_id: bytes, index: int) -> NextFetch | None:
        """The request, in the fetch under way, for a partition that follows this leader."""
        followed = self._by_key.get((topic_id, index))
        if followed is None:
            return None
        return followed.wanted if followed in self._fetching else self._asked_of_gone.get(followed.replica)

    def _take_fetched(self, answer: Message, now: Instant) -> list[Effect]:
        effects: list[Effect] = []
        for topic in answer.responses:
            for part in topic.partitions:
                asked = self._asked_for(bytes(topic.topic_id), part.partition_index)
                if asked is not None:
                    effects += self._take_records(asked, part, now)
        return effects

    def _take_records(self, wanted: NextFetch, part: Message, now: Instant) -> list[Effect]:
        """Hand the answer for a partition to `spec`: in one piece, or where batches have a gap between them, in several."""
        answers = fetched(wanted.asked.fetch_offset, part)
        if answers is None:
            return self._no_answer([wanted], now)
        if self._core.follower_throttle.concerns(wanted.replica):
            self._core.follower_throttle.count(len(part.records or b""), now.monotonic)
        effects: list[Effect] = []
        asked = wanted.asked
        for one in answers:
            effects += self._handle(handle_fetch_response, wanted.replica, asked, one, now)
            asked = PendingFetch(asked.leader_epoch, end_of(one))
        if wanted.replica in self._followed and not part.error_code:
            fetch_offset = wanted.replica.partition.fetcher.fetch_offset
            self._followed[wanted.replica].lag = lag_of(Offset(part.high_watermark), fetch_offset)
        return effects

    def _handle(
        self,
        handler: PartitionHandler[PendingFetch, ResponseT, MonotonicMs],
        replica: Replica,
        asked: PendingFetch,
        answer: PartitionAnswer[ResponseT],
        now: Instant,
    ) -> list[Effect]:
        return self._core.run(
            handler,
            replica,
            asked,
            answer.response,
            now.monotonic,
            now=now,
            payloads=answer.payloads,
            on_failure=partial(self.remove, replica),
        ).effects

    def _take_other(self, api: str, asked: dict[Replica, NextFetch], answer: Message | None, now: Instant) -> list[Effect]:
        """Answers about epochs and offsets."""
        if answer is None:
            return self._no_answer(asked.values(), now)
        if api == "OffsetForLeaderEpoch":
            return self._take_each(handle_offset_for_leader_epoch_response, epoch_ends(answer), asked, now)
        return self._take_each(handle_list_offsets_response, listed_offsets(answer), asked, now)

    def _take_each(
        self,
        handler: PartitionHandler[PendingFetch, ResponseT, MonotonicMs],
        found: dict[TopicPartition, ResponseT],
        asked: dict[Replica, NextFetch],
        now: Instant,
    ) -> list[Effect]:
        """Hand the answer for each partition to `spec`."""
        effects: list[Effect] = []
        for replica, one in asked.items():
            response = found.get(replica.place)
            if response is None:
                effects += self._no_answer([one], now)
            else:
                effects += self._handle(handler, replica, one.asked, PartitionAnswer(response), now)
        return effects
