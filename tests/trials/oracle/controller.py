"""Decisions of the controller of release `next`: the answer, and the state of partition and brokers afterwards."""

from typing import Any

from kspec.spec.messages.administration.error_response import ErrorResponse
from kspec.spec.messages.alter_partition import AlterPartitionResponse
from kspec.spec.messages.broker_heartbeat import BrokerHeartbeatResponse
from kspec.spec.messages.broker_registration import BrokerRegistrationResponse
from kspec.spec.metadata import BrokerRegistration, LeaderRecoveryState, PartitionRegistration
from kspec.spec.values import BrokerId, Epoch, Error, Offset, PartitionEpoch, PartitionId

NONE: frozenset[BrokerId] = frozenset()
RECOVERING, RECOVERED = LeaderRecoveryState.RECOVERING, LeaderRecoveryState.RECOVERED


class Outcome:
    """The metadata and the sessions as a decision changes them, and its answer."""

    def __init__(self, party: Any, state: Any, now: int) -> None:
        self.settings, self.now = party.settings, now
        self.brokers = {one.broker: one for one in state.image.brokers}
        self.sessions = {one.broker: one for one in state.sessions}
        self.partitions: dict[PartitionId, PartitionRegistration] = {
            record.partition_id: record.registration for record in state.image.partitions
        }
        self.end = state.image.end_offset
        self.answer: Any = None
        self.records = 0

    def min_isr(self, partition: PartitionId) -> int:
        """The topic's own setting stands before that of the cluster."""
        own = [one.min_isr for one in self.settings.of_topics if one.partition_id == partition]
        return own[0] if own else self.settings.min_isr  # type: ignore[no-any-return]

    def unclean(self, partition: PartitionId) -> bool:
        """As for `min_isr`."""
        own = [one.unclean_election for one in self.settings.of_topics if one.partition_id == partition]
        return own[0] if own else self.settings.unclean_election  # type: ignore[no-any-return]

    def leads(self, broker: int) -> bool:
        """Whether a broker leads any partition."""
        return any(one.leader == broker for one in self.partitions.values())

    # ---- a partition

    def active(self, broker: int) -> bool:
        one = self.brokers.get(BrokerId(broker))
        return one is not None and not one.fenced and not one.in_controlled_shutdown

    def change(
        self,
        number: PartitionId,
        isr: frozenset[BrokerId] | None = None,
        without: frozenset[BrokerId] = NONE,
        including: frozenset[BrokerId] = NONE,
        lost: frozenset[BrokerId] = NONE,
        preferred: bool = False,
        unclean: bool | None = None,
        assignment: tuple[Any, Any, Any] | None = None,
        recovery: LeaderRecoveryState | None = None,
    ) -> None:
        """The partition with another ISR, or with other brokers that may lead; whatever follows from that."""
        before = self.partitions[number]
        unclean = self.unclean(number) if unclean is None else unclean
        replicas, adding, removing = assignment or (before.replicas, before.adding, before.removing)
        isr = before.isr if isr is None else isr
        replicas, isr, adding, removing = self._finish(replicas, isr, adding, removing)
        may_lead = {one for one in self.brokers if self.active(one)} | including
        may_lead = {one for one in may_lead if one not in without}
        elr, with_elr = self._eligible(number, replicas, isr, lost), self.settings.eligible_leader_replicas
        leader, risky = self._elect(before, replicas, isr, elr, may_lead, preferred, unclean)
        if leader != before.leader and leader in elr:
            isr, elr = frozenset({leader}), elr - {leader}
        after = before._replace(replicas=replicas, adding=adding, removing=removing)
        if risky:
            after = after._replace(isr=frozenset({leader}), recovery=RECOVERING, elr=NONE)
            recovery = before.recovery if recovery not in (None, before.recovery) else None
        else:
            after = after._replace(isr=isr if isr or with_elr else before.isr, elr=elr if with_elr else NONE)
        if recovery is not None and not risky:
            after = after._replace(recovery=recovery)
        after = after._replace(leader=leader)
        named = leader != before.leader or not set(before.replicas) <= set(replicas)
        if with_elr and self.settings.last_known_leader:
            if named and leader == -1 and not before.last_known_elr:
                after = after._replace(last_known_elr=frozenset({before.leader}))
            if named and leader != -1:
                after = after._replace(last_known_elr=NONE)
        if named:
            after = after._replace(leader_epoch=Epoch(before.leader_epoch + 1))
        if named or after != before:
            self.partitions[number] = after._replace(partition_epoch=PartitionEpoch(before.partition_epoch + 1))
            self.records += 1

    def _finish(self, replicas: Any, isr: Any, adding: Any, removing: Any) -> tuple[Any, Any, Any, Any]:
        """A reassignment is over once who is added, and stays, is in sync; all who stay, if those are fewer than go."""
        if not adding and not removing:
            return replicas, isr, adding, removing
        stay = tuple([one for one in replicas if one not in removing])
        in_sync = isr - removing
        needed = frozenset(stay) if len(adding - removing) < len(removing) else adding - removing
        if needed <= in_sync and (not removing or (in_sync and stay)):
            return stay, in_sync, NONE, NONE
        return replicas, isr, adding, removing

    def _eligible(self, number: PartitionId, replicas: Any, isr: Any, lost: Any) -> frozenset[BrokerId]:
        """Brokers that leave the ISR while fewer than min ISR are in it, have lost nothing, and are assigned."""
        before = self.partitions[number]
        if not self.settings.eligible_leader_replicas:
            return before.elr
        if len(isr) >= min(self.min_isr(number), len(before.replicas)):
            return NONE
        return frozenset(((before.elr | before.isr) - isr - lost) & set(replicas))

    def _elect(
        self, before: Any, replicas: Any, isr: Any, elr: Any, may_lead: Any, preferred: bool, unclean: bool
    ) -> tuple[BrokerId, bool]:
        """The leader: as it is if it can stay, else the first that can; and whether records may be lost."""
        good = isr or elr
        order = ([replicas[0]] if preferred and replicas else []) + [before.leader, *replicas]
        for one in order:
            if one in good and one in may_lead:
                return one, False
        last = before.last_known_elr
        remembers = self.settings.eligible_leader_replicas and self.settings.last_known_leader
        if remembers and not isr and not elr and len(last) == 1 and last <= may_lead and last <= set(replicas):
            return min(last), True
        if unclean:
            for one in replicas:
                if one in may_lead:
                    return one, True
        return BrokerId(-1), False

    # ---- brokers

    def _leave(self, broker: BrokerId) -> None:
        gone = frozenset({broker})
        for number, partition in self.partitions.items():
            if broker in partition.isr:
                self.change(number, partition.isr - gone, without=gone)

    def fence(self, broker: BrokerId) -> None:
        """The broker leaves all ISRs, and is fenced."""
        self._leave(broker)
        self.brokers[broker] = self.brokers[broker]._replace(fenced=True)
        self.records += 1

    def unfence(self, broker: BrokerId) -> None:
        self.brokers[broker] = self.brokers[broker]._replace(fenced=False)
        self.records += 1
        for number, partition in self.partitions.items():
            if partition.leader == -1:
                self.change(number, including=frozenset({broker}))

    def begin_shutdown(self, broker: BrokerId) -> None:
        if not self.brokers[broker].in_controlled_shutdown:
            self.records += 1
        self._leave(broker)
        self.brokers[broker] = self.brokers[broker]._replace(in_controlled_shutdown=True)

    def alive(self, broker: BrokerId) -> bool:
        timeout = self.settings.session_timeout_ms
        return not self.brokers[broker].fenced and self.sessions[broker].last_contact_ms + timeout >= self.now


def registration(after: Outcome, request: Any) -> None:
    """A new incarnation is fenced, has a new broker epoch, and leaves what it was listed in."""
    broker, known = request.broker, after.brokers.get(request.broker)
    again = known is not None and known.incarnation == request.incarnation
    if known is not None and not again and after.alive(broker):
        after.answer = BrokerRegistrationResponse(Error.DUPLICATE_BROKER_REGISTRATION, request.incarnation)
        return
    if again:
        assert known is not None
        after.answer = BrokerRegistrationResponse(Error.NONE, request.incarnation, known.broker_epoch)
        fresh = known
    else:
        after.answer = BrokerRegistrationResponse(Error.NONE, request.incarnation, after.end)
        fresh = BrokerRegistration(broker, after.end, request.incarnation, fenced=True)
        clean = known is not None and request.previous_broker_epoch == known.broker_epoch
        lost = after.settings.eligible_leader_replicas and not clean
        gone = frozenset({broker})
        for number, partition in after.partitions.items():
            if broker in partition.isr or (lost and broker in partition.elr):
                after.change(number, partition.isr - gone, without=gone, lost=gone if lost else NONE)
    after.brokers[broker] = fresh._replace(registered_at=Offset(after.end + after.records))
    after.records += 1
    _touch(after, broker, -1, -1)


def _touch(after: Outcome, broker: BrokerId, offset: int, shutdown: int) -> None:
    after.sessions[broker] = (after.now, offset, shutdown)


def heartbeat(after: Outcome, request: Any) -> None:
    """The broker is alive. It is unfenced once it knows its registration, and stops when it leads nothing."""
    broker, known = request.broker, after.brokers.get(request.broker)
    if known is None or known.broker_epoch != request.broker_epoch:
        after.answer = BrokerHeartbeatResponse(Error.STALE_BROKER_EPOCH)
        return
    session = after.sessions[broker]
    began = session.controlled_shutdown_offset
    caught_up = request.metadata_offset >= known.registered_at
    leads = after.leads(broker)
    stops = fenced = False
    if began != -1:
        others = [
            one
            for one in after.sessions.values()
            if one.broker in after.brokers and not after.brokers[one.broker].fenced and one.controlled_shutdown_offset == -1
        ]
        stops = not leads and all(one.metadata_offset >= began for one in others)
        if stops:
            after.fence(broker)
    elif known.fenced:
        stops = request.want_shutdown
        fenced = not stops and (not caught_up or request.want_fence or known.in_controlled_shutdown)
        if stops:
            after.fence(broker)
        elif not fenced:
            after.unfence(broker)
    elif request.want_fence:
        stops, fenced = request.want_shutdown, not request.want_shutdown
        after.fence(broker)
    elif request.want_shutdown:
        stops = not leads
        if stops:
            after.fence(broker)
        else:
            after.begin_shutdown(broker)
            began = after.end + after.records - 1
    gone = stops or fenced
    _touch(after, broker, request.metadata_offset, -1 if gone else began)
    after.answer = BrokerHeartbeatResponse(Error.NONE, caught_up, gone, stops)


def session_check(after: Outcome) -> None:
    """The unfenced broker that was silent longest is fenced, if for too long."""
    silent = [one for one in after.brokers.values() if not one.fenced and not after.alive(one.broker)]
    if silent:
        longest = min(silent, key=lambda one: after.sessions[one.broker].last_contact_ms).broker
        session = after.sessions[longest]
        after.fence(longest)
        after.sessions[longest] = (session.last_contact_ms, session.metadata_offset, -1)


def alter_partition(after: Outcome, request: Any) -> None:
    """An ISR is granted to the leader, in its epoch, as it is now; its members are active, in the run that fetched."""
    number = request.partition_id
    partition, sender = after.partitions.get(number), after.brokers.get(request.broker)
    members = {one.broker for one in request.isr}
    error = Error.NONE
    if sender is None or sender.broker_epoch != request.broker_epoch:
        error = Error.STALE_BROKER_EPOCH
    elif partition is None:
        error = Error.UNKNOWN_TOPIC_OR_PARTITION
    elif request.leader_epoch > partition.leader_epoch or request.partition_epoch > partition.partition_epoch:
        error = Error.NOT_CONTROLLER
    elif request.leader_epoch < partition.leader_epoch:
        error = Error.FENCED_LEADER_EPOCH
    elif request.broker != partition.leader:
        error = Error.INVALID_REQUEST
    elif request.partition_epoch < partition.partition_epoch:
        error = Error.INVALID_UPDATE_VERSION
    elif (
        not members <= set(partition.replicas)
        or partition.leader not in members
        or (request.recovery == RECOVERING and (len(members) > 1 or partition.recovery == RECOVERED))
    ):
        error = Error.INVALID_REQUEST
    elif not all(
        after.active(one.broker) and one.broker_epoch in (-1, after.brokers[one.broker].broker_epoch) for one in request.isr
    ):
        error = Error.INELIGIBLE_REPLICA if request.understands_ineligible_replica else Error.OPERATION_NOT_ATTEMPTED
        assert partition is not None
        after.partitions[number] = partition._replace(partition_epoch=PartitionEpoch(partition.partition_epoch + 1))
        after.records += 1  # so that no other copy of the request is granted
    if error == Error.NONE:
        after.change(number, frozenset(members), recovery=request.recovery)
        now = after.partitions[number]
        if now.leader == request.broker or now == partition:
            after.answer = AlterPartitionResponse(
                Error.NONE, number, now.leader, now.leader_epoch, now.isr, now.partition_epoch, now.recovery
            )
            return
        error = Error.NEW_LEADER_ELECTED if request.understands_ineligible_replica else Error.FENCED_LEADER_EPOCH
    after.answer = AlterPartitionResponse(error, number)


def elect(after: Outcome, request: Any) -> None:
    """The preferred replica leads if it can; or anybody, where nobody leads and an operator says so."""
    number = request.partition_id
    partition = after.partitions.get(number)
    after.answer = ErrorResponse(Error.UNKNOWN_TOPIC_OR_PARTITION)
    if partition is None:
        return
    after.answer = ErrorResponse(Error.ELECTION_NOT_NEEDED)
    if partition.leader != -1 if request.unclean else partition.leader == partition.replicas[0]:
        return
    after.change(number, preferred=not request.unclean, unclean=request.unclean)
    nobody = Error.ELIGIBLE_LEADERS_NOT_AVAILABLE if request.unclean else Error.PREFERRED_LEADER_NOT_AVAILABLE
    after.answer = ErrorResponse(nobody if after.partitions[number] == partition else Error.NONE)


def balance(after: Outcome) -> None:
    """The preferred replica leads if it can."""
    for number, partition in after.partitions.items():
        if partition.leader != partition.replicas[0]:
            after.change(number, preferred=True, unclean=False)


def unclean_check(after: Outcome) -> None:
    """Elect any replica where nobody leads, if unclean elections are allowed."""
    for number, partition in after.partitions.items():
        if after.unclean(number) and partition.leader == -1:
            after.change(number, unclean=True)


def reassign(after: Outcome, request: Any) -> None:
    """New replicas are added and old ones removed once the new ones are in sync; or a move is taken back.

    A replica that has just been added, and has nothing, does not lead.
    """
    number, wanted = request.partition_id, request.replicas
    partition = after.partitions.get(number)
    error = Error.NONE
    if partition is None:
        error = Error.UNKNOWN_TOPIC_OR_PARTITION
    elif wanted is not None and (not wanted or len(set(wanted)) < len(wanted) or not set(wanted) <= set(after.brokers)):
        error = Error.INVALID_REPLICA_ASSIGNMENT
    elif wanted is None and not partition.adding and not partition.removing:
        error = Error.NO_REASSIGNMENT_IN_PROGRESS
    elif wanted is None and partition.isr <= partition.adding and not after.unclean(number):
        error = Error.INVALID_REPLICA_ASSIGNMENT
    after.answer = ErrorResponse(error)
    if error != Error.NONE or partition is None:
        return
    here = frozenset(partition.replicas)
    if wanted is None:
        replicas = tuple([one for one in partition.replicas if one not in partition.adding])
        isr = (partition.isr - partition.adding) or frozenset(replicas[:1])
        after.change(number, isr, assignment=(replicas, NONE, NONE))
        return
    removing, adding = here - set(wanted), frozenset(wanted) - here
    replicas = (*wanted, *sorted(removing))
    records = after.records
    after.change(number, unclean=False, assignment=(replicas, adding or partition.adding, removing or partition.removing))
    if after.partitions[number].leader in adding:
        after.answer, after.partitions[number], after.records = ErrorResponse(Error.UNKNOWN_SERVER_ERROR), partition, records


def unregister(after: Outcome, request: Any) -> None:
    """The broker is forgotten; it stays eligible where it was."""
    broker, gone = request.broker, frozenset({request.broker})
    if broker not in after.brokers:
        after.answer = ErrorResponse(Error.BROKER_ID_NOT_REGISTERED)
        return
    after.answer = ErrorResponse(Error.NONE)
    for number, partition in after.partitions.items():
        if broker in partition.isr | partition.elr:
            after.change(number, partition.isr - gone, without=gone)
    after.records += 1
    del after.brokers[broker], after.sessions[broker]
