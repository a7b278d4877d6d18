"""Proof that the OffsetForLeaderEpoch messages find where two logs diverge.

A follower's truncation asks epoch by epoch, in a loop. The theorems are about a model in which the log algebra finds the
end of the agreement at once. The proof here shows that the loop finds the same, one round of the rule at a time: from any
log that is left after some rounds, the rule either returns the end of the agreement, or goes on with a shorter log that
still holds all of it.
"""

from collections.abc import Callable, Iterator
from typing import Any

import z3

from kspec.model_check.models.published.exchange import ask
from kspec.proofs.induction.claims import Claim
from kspec.proofs.induction.obligations import Obligations
from kspec.proofs.symbolic.log import SymbolicLog
from kspec.proofs.symbolic.paths import assume, explore
from kspec.proofs.symbolic.terms import conjunction
from kspec.proofs.symbolic.values import SymbolicInt, number
from kspec.spec.published.truncation import truncate_to_common_epoch
from kspec.spec.published.versions import Protocol

TASK = "truncate_to_common_epoch"


class _NextRound(Exception):  # noqa: N818 - not an error: it ends the round under evaluation
    """The rule goes on with its log truncated to `offset`."""

    def __init__(self, offset: Any) -> None:
        super().__init__("next round")
        self.offset = offset


class _RemainingLog(SymbolicLog):
    """The part of a follower's log that is left after some rounds."""

    __slots__ = ()

    def truncate_to(self, offset: Any) -> SymbolicLog:
        raise _NextRound(offset)


def lemma(rules: Protocol) -> Callable[[Obligations], Iterator[Claim]]:
    """The obligations, for every pair of a follower and a leader."""

    def claims(obligations: Obligations) -> Iterator[Claim]:
        for follower, leader in obligations.brokers.pairs():
            yield from _claims_of_pair(obligations, rules, follower, leader)

    return claims


def _claims_of_pair(obligations: Obligations, rules: Protocol, follower: int, leader: int) -> Iterator[Claim]:
    own, leader_log = obligations.before.at("log", follower), obligations.before.at("log", leader)
    high_watermark = obligations.before.at("highWatermark", follower)
    left = z3.Int("left of the log")
    agreement: list[Any] = []

    def one_round() -> tuple[bool, Any]:
        agreed = own.agreement_end(leader_log).term
        agreement[:] = [agreed]
        assume(z3.And(agreed <= left, left <= own.end))
        remaining = _RemainingLog(own.start, left, own.epoch, own.value, own.opened)
        try:
            return True, truncate_to_common_epoch(remaining, high_watermark, ask(rules, leader_log))  # type: ignore[arg-type]
        except _NextRound as following:
            return False, following.offset

    paths = explore(one_round, obligations.pruning())
    (agreed,) = agreement
    label = f"{TASK}(follower={follower}, leader={leader})"
    returns = [z3.Implies(path.condition, number(path.value[1]) == agreed) for path in paths if path.value[0]]
    goes_on = [
        z3.Implies(path.condition, z3.And(agreed <= number(path.value[1]), number(path.value[1]) < left))
        for path in paths
        if not path.value[0]
    ]
    facts = tuple(z3.Implies(path.condition, path.facts) for path in paths)
    (first,) = explore(lambda: SymbolicInt(own.agreement_end(leader_log).term), None)
    yield Claim(label, "FirstRoundHoldsAgreement", (first.facts,), first.value.term <= own.end, 1)
    yield Claim(label, "NextRoundHoldsAgreement", facts, conjunction(goes_on), len(goes_on))
    yield Claim(label, "LastRoundFindsAgreement", facts, conjunction(returns), len(returns))
