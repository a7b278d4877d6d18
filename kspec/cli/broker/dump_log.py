"""`kspec dump-log`: what the files of a log say."""

import click

from kspec.cli.statuses import ALL_HOLD


@click.command("dump-log")
@click.argument("files", metavar="FILE...", nargs=-1)
@click.option("--files", "listed", metavar="A,B", help="Files as kafka-dump-log takes them, with commas between.")
@click.option("--print-data-log", is_flag=True, help="Print keys and values, too.")
@click.option("--deep-iteration", is_flag=True, help="Print each record.")
@click.option("--index-sanity-check", is_flag=True, help="Check indexes as a start does, and print no entry.")
@click.option("--verify-index-only", is_flag=True, help="Compare indexes with the log, and print no entry.")
@click.option("--skip-record-metadata", is_flag=True, help="Print of each record only key and value.")
@click.option("--max-bytes", type=click.IntRange(0), metavar="N", help="Read no more of a log.")
def dump_log(files: tuple[str, ...], listed: str | None, max_bytes: int | None, **flags: bool) -> int:
    """Print logs, indexes and snapshots of producers line by line as kafka-dump-log does.

    Complaints about the files go to standard error. Exit status 2: a file cannot be read.
    """
    from kspec.impl.dump import Dump, Options
    from kspec.impl.storage.disk import StorageError

    wanted = [*files, *(listed or "").split(",")]
    wanted = [file for file in wanted if file]
    if not wanted:
        raise click.UsageError("dump-log needs the files of a log: kspec dump-log DIR/00000000000000000000.log")
    options = Options(**flags)
    dump = Dump(options if max_bytes is None else options._replace(max_bytes=max_bytes))
    try:
        for file in wanted:
            for line in dump.lines(file):
                click.echo(line)
    except StorageError as error:
        raise click.UsageError(str(error)) from error
    for complaint in dump.complaints:
        click.echo(complaint, err=True)
    return ALL_HOLD
