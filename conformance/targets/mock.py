"""librdkafka's mock cluster as a process: `python -m kspec.conformance.targets.mock`. It says where it listens, and listens.

The mock lives inside a client of librdkafka, which is asked for it by `test.mock.num.brokers`. It takes a port of its own.
"""

import sys
import time

from confluent_kafka.admin import AdminClient

WAIT_SECONDS = 30.0


def main() -> None:
    """Start the mock and wait until somebody ends the process."""
    client = AdminClient({"bootstrap.servers": "mock", "test.mock.num.brokers": 1})
    (broker,) = client.list_topics(timeout=WAIT_SECONDS).brokers.values()
    sys.stdout.write(f"{broker.host}:{broker.port}\n")
    sys.stdout.flush()
    while True:
        time.sleep(WAIT_SECONDS)


if __name__ == "__main__":
    main()
