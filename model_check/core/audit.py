"""The audit: do actions read and write what they declare?

Engines trust the declared slots: a result learned for some values of the slots read is reused wherever these values come up
again. So on reachable states the audit replaces the value of each slot that an action does *not* declare by another
reachable one, and asks whether the outcome changes. (LTSmin checks its dependency matrices in the same way.)
"""

import random
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from kspec.model_check.core.model import REFUSED, Action, Local, Model, Slot, State

STEPS_OF_A_WALK = 100


@dataclass(slots=True)
class AuditReport:
    """`findings` make engines wrong; `unused_reads` only make their tables larger than they need to be."""

    states: int
    evaluations: int = 0
    findings: list[str] = field(default_factory=list)
    unused_reads: list[str] = field(default_factory=list)


def reachable_states(model: Model, most: int, seed: int) -> list[State]:
    """Up to `most` distinct reachable states, by random walks from the initial state: deep ones as well as near ones."""
    random_walk = random.Random(seed)
    actions = [action.bind() for action in model.actions]
    constraint = [term.bind() for term in model.constraint]
    seen = {model.initial: None}
    for _ in range(most):
        state = model.initial
        for _ in range(STEPS_OF_A_WALK):
            following = [after for fire in actions if (after := fire(state)) and all(within(after) for within in constraint)]
            if not following or len(seen) >= most:
                break
            state = random_walk.choice(following)
            seen[state] = None
    return list(seen)


def audit(model: Model, most: int = 300, seed: int = 1, *, unused: bool = True) -> AuditReport:
    """Perturb undeclared slots of every action on reachable states, and look for reads that never matter.

    The second takes several times as long as the first, which alone is about mistakes: `unused` may leave it out.
    """
    states = reachable_states(model, most, seed)
    report = AuditReport(len(states))
    domains = {slot: list(dict.fromkeys(state[slot.position] for state in states)) for slot in model.slots}
    choose = random.Random(seed)
    for action in model.actions:
        _audit_action(model, action, states, domains, choose, report)
    if not unused:
        return report
    locals_ = {
        f"{action.label}, {kind} {index}": local
        for action in model.actions
        for kind, group in (("guard", action.guards), ("effect", tuple(effect.local for effect in action.effects)))
        for index, local in enumerate(group)
    }
    _find_unused_reads(locals_, states, domains, report)
    return report


def _audit_action(
    model: Model,
    action: Action,
    states: list[State],
    domains: dict[Slot, list[Any]],
    choose: random.Random,
    report: AuditReport,
) -> None:
    fire = action.bind()
    written = {slot.position for slot in action.writes}
    undeclared = [slot for slot in model.slots if slot not in action.reads]
    for state in states:
        after = fire(state)
        report.evaluations += 1
        if fire(state) != after:
            report.findings.append(f"{action.label}: two evaluations on the same state differ")
            return
        if after is None and choose.random() > 0.1:
            continue
        for slot in undeclared:
            other = choose.choice(domains[slot])
            perturbed = _replace(state, slot, other)
            result = fire(perturbed)
            report.evaluations += 1
            if (result is None) != (after is None):
                report.findings.append(f"{action.label}: depends on {slot.label}, which it does not declare")
                return
            if result is None or after is None:
                continue
            for position, value in enumerate(result):
                expected = after[position] if position in written else perturbed[position]
                if value != expected:
                    name = model.slots[position].label
                    report.findings.append(f"{action.label}: {name} depends on {slot.label}, undeclared, or is written so")
                    return


def _find_unused_reads(
    locals_: dict[str, Local], states: list[State], domains: dict[Slot, list[Any]], report: AuditReport
) -> None:
    """Reads for which no sampled change of the value changes a result. A function of several actions is looked at once."""
    outcomes: dict[Local, set[Slot]] = defaultdict(set)
    for local in dict.fromkeys(locals_.values()):
        evaluate = local.bind()
        for state in states:
            missing = [slot for slot in local.slots if slot not in outcomes[local]]
            if not missing:
                break
            try:
                result = evaluate(state)
            except Exception:  # not defined here: another rule forbids the action
                continue
            for slot in missing:
                for value in domains[slot][:40]:
                    report.evaluations += 1
                    if _differs(result, evaluate, _replace(state, slot, value)):
                        outcomes[local].add(slot)
                        break
    report.unused_reads += [
        f"{name}: {slot.label} is declared and never matters"
        for name, local in locals_.items()
        for slot in local.slots
        if slot not in outcomes[local]
    ]


def _differs(result: Any, evaluate: Any, state: State) -> bool:
    try:
        other = evaluate(state)
    except Exception:  # the slots' values contradict each other, or another rule forbids the action
        return True
    return bool(other != result) if REFUSED not in (other, result) else other is not result


def _replace(state: State, slot: Slot, value: Any) -> State:
    return (*state[: slot.position], value, *state[slot.position + 1 :])
