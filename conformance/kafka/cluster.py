"""Apache Kafka as the program of the nodes of a cluster, to compare with."""

import secrets
from collections.abc import Sequence

from kspec.conformance.kafka.jars import Jars, KafkaMissingError, java
from kspec.conformance.kafka.process import STARTED, run_storage_tool, uuid_text, write_properties
from kspec.trials.cluster.plan import ClusterError, Node

HEAP = "-Xmx256m"
JVM_FLAGS: tuple[str, ...] = (HEAP, "-Xms96m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto")


class KafkaProgram:
    """One release of Apache Kafka. A controller's folder is formatted by Kafka's own tool.

    `flags` are those of Java: by default they make many short lives quick, and no long one fast.
    """

    ready = STARTED

    def __init__(self, jars: Jars, flags: Sequence[str] = JVM_FLAGS) -> None:
        self._jars = jars
        self._flags = flags
        self._path = ":".join(map(str, jars.class_path))

    def prepare(self, node: Node) -> None:
        """Format the node's folder for logs, once. Raises: `ClusterError`."""
        if node.is_formatted:
            return
        if node.roles != "broker":
            self._format(node)
            return
        node.data.mkdir(parents=True, exist_ok=True)
        cluster, directory = node.properties["cluster.id"], uuid_text(secrets.token_bytes(16)).replace("-", "_")
        about = {"version": 1, "cluster.id": cluster, "node.id": node.node_id, "directory.id": directory}
        write_properties(node.data / "meta.properties", about)

    def _format(self, node: Node) -> None:
        try:
            voters = ("--initial-controllers", node.first_voters) if node.first_voters else ()
            run_storage_tool(self._jars, self._flags, node.properties["cluster.id"], node.file, *voters)
        except KafkaMissingError as error:
            raise ClusterError(str(error)) from None

    def command(self, node: Node, start: int) -> Sequence[str]:
        """The command of a node."""
        shown = ["-Dorg.slf4j.simpleLogger.showDateTime=true", "-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS"]
        return [java(), *self._flags, *shown, "-cp", self._path, "kafka.Kafka", str(node.file)]
