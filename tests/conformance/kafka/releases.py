"""The releases of Kafka that tests run against, where their jars are at hand."""

import pytest

from conformance.kafka.jars import Jars, KafkaMissingError, fetch_command, find_jars, java

NEWEST, OLD = "4.4.0", "3.9.2"


def jars_or_skip(release: str) -> Jars:
    """The jars of a release; where they are missing, or Java is, the test is skipped and says so."""
    try:
        java()
        return find_jars(release, fetch=False)
    except KafkaMissingError as error:
        pytest.skip(f"NOT RUN against Apache Kafka {release}: {error}; {' '.join(fetch_command(release))} fetches them")
