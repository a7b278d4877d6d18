"""A story in words: each step as a sentence, and each replica as a line of a table of 80 columns."""

import textwrap
from collections.abc import Callable, Mapping
from typing import Any

from kspec.conformance.story.snapshots import ClusterSnapshot, ReplicaSnapshot
from kspec.model_check.core.model import Action

WIDTH = 80

SENTENCES: Mapping[str, str] = {
    "CreatePartition": "The partition is created; the controller makes broker {leader} the leader.",
    "ReplayMetadata": "Broker {broker} reads {decisions} of the controller's decisions.",
    "Produce": "A producer sends a record to broker {leader}.",
    "Fetch": "Broker {follower} fetches from broker {leader}.",
    "FetchUnanswered": "Broker {follower} fetches from broker {leader}; the answer is lost.",
    "AskLeader": "Broker {follower} asks broker {leader} where an epoch, or its log, ends.",
    "TruncateWithoutAsking": "Broker {follower} truncates its log, which has no epoch to ask about.",
    "ElectPreferred": "The controller elects broker {leader}.",
    "Fence": "No heartbeat of broker {broker} arrives until its session ends; the controller fences it.",
    "Unfence": "A heartbeat of broker {broker} arrives; the controller unfences it.",
    "ProposeShrink": "Broker {leader} finds {slow} too slow, and asks for a smaller ISR.",
    "GrantIsr": "The controller grants the ISR that broker {leader} has asked for.",
    "GrantIsrUnanswered": "The controller grants the ISR that broker {leader} has asked for; the answer is lost.",
    "RefuseIsr": "The controller refuses the ISR that broker {leader} has asked for.",
    "RefuseIsrForGood": "The controller refuses the ISR that broker {leader} has asked for.",
    "TakeIsrAnswer": "The controller's answer arrives at broker {leader}.",
}
"""The sentence about each action of the model that can be made to happen on processes."""


def sentence(action: Action) -> str:
    """A step in a sentence."""
    return SENTENCES[action.name].format(**{name: _argument(value) for name, value in action.args.items()})


def _argument(value: Any) -> str:
    return " and ".join(f"broker {one}" for one in value) if isinstance(value, tuple) else str(value)


def step_text(number: int, action: Action, seen: ClusterSnapshot) -> str:
    """A step, and the cluster after it."""
    first = textwrap.fill(f"{number:>2}  {sentence(action)}", WIDTH, subsequent_indent="    ")
    return "\n".join([first, *table(seen)])


def table(seen: ClusterSnapshot) -> list[str]:
    """The cluster: a line for each replica, and one for the partition."""
    lines = [f"      {'broker':<8}{'log, record(epoch)':<42}{'end':>4}{'high watermark':>16}"]
    for broker, replica in sorted(seen.replicas.items()):
        lines.append(_line(f"{broker}{'*' if broker == seen.leader else ''}", replica))
    isr = ", ".join(map(str, sorted(seen.isr)))
    partition = f"* leads in epoch {seen.leader_epoch}, ISR {{{isr}}}" if seen.leader_epoch >= 0 else "no partition"
    if seen.eligible:
        partition += f", eligible {{{', '.join(map(str, sorted(seen.eligible)))}}}"
    told = ", ".join(f"m{one.value} at {one.offset}" for one in sorted(seen.acknowledged)) or "nothing"
    return [*lines, f"      {partition}; acknowledged: {told}"]


def _line(broker: str, replica: ReplicaSnapshot) -> str:
    log = " ".join(f"m{one.value}({one.leader_epoch})" for one in replica.log) or "empty"
    return f"      {broker:<8}{textwrap.shorten(log, 41):<42}{len(replica.log):>4}{replica.high_watermark:>16}"


Say = Callable[[str], None]
