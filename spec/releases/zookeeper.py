"""The releases of the ZooKeeper controller."""

from dataclasses import replace

from kspec.spec.zookeeper import rules
from kspec.spec.zookeeper.protocol import ZkControllerProtocol

ZK_0_10 = ZkControllerProtocol(
    name="0.10",
    remove_from_isr=rules.keep_last_unless_unclean,
    checked_epoch=rules.unchecked_epoch,
    epoch_of=rules.no_broker_epoch,
    has_bounced=rules.never_bounced,
)
"""0.10 to 1.0."""

ZK_1_1 = replace(ZK_0_10, name="1.1", remove_from_isr=rules.keep_last)
"""1.1 and 2.0: the ISR never becomes empty."""

ZK_2_1 = replace(ZK_1_1, name="2.1", checked_epoch=rules.own_epoch)
"""2.1: ZooKeeper refuses a controller that has been replaced (KAFKA-6082)."""

ZK_2_2 = replace(ZK_2_1, name="2.2", epoch_of=rules.current_broker_epoch, has_bounced=rules.bounced)
"""2.2 to 2.8: brokers have epochs (KIP-380). In 2.7 and 2.8 leaders may propose an ISR to the controller (KIP-497)."""

ZK_RELEASES: tuple[ZkControllerProtocol, ...] = tuple(release for name, release in vars().items() if name.startswith("ZK_"))
"""The releases above, the oldest first."""
