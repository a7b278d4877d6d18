"""`kspec world`: one unmodified Apache Kafka process, with the specification as everything around it."""

import click

from model_check.cli.mirror import mirror


@click.group()
def world() -> None:
    """Replay runs of the models on unmodified Apache Kafka, one process of it."""


world.add_command(mirror)
