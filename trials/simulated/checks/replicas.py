"""Changes of one replica: its offsets are in order, its epochs and its high watermark as a leader never go back."""

from kspec.spec.broker.partition import Partition
from kspec.spec.broker.rules.isr.proposal import nothing_pending
from kspec.spec.log.epoch_log import EpochLog
from kspec.spec.log.local_log import LocalLog
from kspec.spec.values import NO_EPOCH
from kspec.trials.simulated.history import BrokenPromiseError


def look_at_offsets(node: int, local: LocalLog[EpochLog]) -> None:
    """Look whether log start, high watermark and log end are in order. Raises: `BrokenPromiseError`."""
    log, mark = local
    if not log.start_offset <= mark <= log.end_offset:
        raise BrokenPromiseError("TypeOk", f"broker {node}: {log.start_offset}, {mark}, {log.end_offset}")


def look_at_change(node: int, before: Partition[EpochLog], now: Partition[EpochLog]) -> None:
    """Look at a replica before and after an event, in the same process. Raises: `BrokenPromiseError`."""
    if now.leader_epoch < before.leader_epoch and now.leader_epoch != NO_EPOCH:
        what = f"broker {node} from epoch {before.leader_epoch} to {now.leader_epoch}"
        raise BrokenPromiseError("LeaderEpochGrows", what)
    if not before.leader == now.leader == node:
        return
    if now.local.high_watermark < before.local.high_watermark:
        what = f"broker {node} from {before.local.high_watermark} to {now.local.high_watermark}"
        raise BrokenPromiseError("HighWatermarkGrows", what)
    if now.isr.partition_epoch < before.isr.partition_epoch:
        raise BrokenPromiseError("LeaderEpochGrows", f"broker {node} from {before.isr} to {now.isr}")
    if not nothing_pending(now.isr) and now.isr.pending_isr == now.isr.isr:
        raise BrokenPromiseError("ProposalAsksForChange", f"broker {node} proposes what it has: {now.isr}")
