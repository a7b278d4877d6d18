"""Numbers for Prometheus, in its text format, at http://HOST:PORT/metrics."""

import asyncio
import resource
from collections.abc import Collection

from kspec.impl.broker.core import BrokerCore
from kspec.impl.broker.throttle import FOLLOWER, LEADER
from kspec.impl.config.properties import ConfigError
from kspec.impl.server.network.connection import Connection
from kspec.impl.server.shell import Counts


class Metrics:
    """Counters of answered requests; everything else is read when somebody asks."""

    def __init__(self, core: BrokerCore, connections: Collection[Connection], counts: Counts) -> None:
        self._core = core
        self._connections = connections
        self._counts = counts
        self._server: asyncio.Server | None = None

    def text(self) -> str:
        """All numbers."""
        core, counts, open_now = self._core, self._counts, self._connections
        usage = resource.getrusage(resource.RUSAGE_SELF)
        lines = ["# TYPE kafka_server_requests_total counter"]
        lines += [f'kafka_server_requests_total{{request="{name}"}} {n}' for name, n in sorted(counts.requests.items())]
        single = {
            "kafka_server_bytes_in_total": (
                "counter",
                counts.bytes_in + sum(one.bytes_in for one in open_now),
            ),
            "kafka_server_bytes_out_total": (
                "counter",
                counts.bytes_out + sum(one.bytes_out for one in open_now),
            ),
            "kafka_server_connections": ("gauge", len(open_now)),
            "kafka_server_partitions": ("gauge", len(core.replicas)),
            "kafka_server_offline_partitions": ("gauge", sum(one.offline for one in core.replicas.values())),
            "kafka_server_fetch_sessions": ("gauge", len(core.sessions)),
            "process_cpu_seconds_total": ("counter", usage.ru_utime + usage.ru_stime),
        }
        for name, (kind, value) in single.items():
            lines += [f"# TYPE {name} {kind}", f"{name} {value}"]
        lines.append("# TYPE kafka_server_replication_throttled_bytes_total counter")
        for side, throttle in ((LEADER, core.leader_throttle), (FOLLOWER, core.follower_throttle)):
            lines.append(f'kafka_server_replication_throttled_bytes_total{{side="{side}"}} {throttle.counted}')
        lines.append("# TYPE kafka_log_end_offset gauge")
        for place, replica in sorted(core.replicas.items()):
            labels = f'topic="{place.topic}",partition="{place.partition}"'
            local = replica.partition.local
            lines.append(f"kafka_log_end_offset{{{labels}}} {local.log.end_offset}")
            lines.append(f"kafka_log_start_offset{{{labels}}} {local.log.start_offset}")
            lines.append(f"kafka_log_size_bytes{{{labels}}} {replica.files.size}")
        return "\n".join(lines) + "\n"

    async def serve(self, address: str) -> None:
        """Answer at this address. Raises: `ConfigError`."""
        host, colon, port = address.rpartition(":")
        if not colon or not port.isdigit():
            raise ConfigError(f"metrics.listener must have the form HOST:PORT, not {address!r}")
        try:
            self._server = await asyncio.start_server(self._answer, host, int(port))
        except OSError as error:
            raise ConfigError(f"cannot listen on {address}: {error.strerror or error}") from error

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            request = await asyncio.wait_for(reader.readuntil(b"\r\n"), 5)
            found = request.startswith((b"GET /metrics ", b"GET / "))
            body = self.text().encode() if found else b"not found\n"
            status = "200 OK" if found else "404 Not Found"
            head = f"HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {len(body)}\r\n"
            writer.write(head.encode() + b"Connection: close\r\n\r\n" + body)
            await writer.drain()
        except (OSError, ValueError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            writer.close()

    def stop(self) -> None:
        """Answer no more."""
        if self._server is not None:
            self._server.close()
