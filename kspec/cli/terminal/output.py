"""Files and folders that a command writes: they appear complete, or not at all."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import click

from kspec.model_check.core.files import write_whole


def cannot_write(path: str | Path, error: OSError) -> click.UsageError:
    """The one line for something that cannot be written."""
    return click.UsageError(f"cannot write {path}: {error.strerror or error}")


class Output:
    """A file to write when the work is done. Whether it can be written is checked before the work starts."""

    def __init__(self, path: str | None) -> None:
        self.path = path
        if path and path != "-":
            try:
                _try(Path(path))
            except OSError as error:
                raise cannot_write(path, error) from error

    def write(self, text: str) -> None:
        """Write the file. If this fails, a file that was there before is as it was."""
        if self.path == "-":
            click.echo(text, nl=not text.endswith("\n"))
        elif self.path:
            try:
                write_whole(Path(self.path), text)
            except OSError as error:
                raise cannot_write(self.path, error) from error


def _try(path: Path) -> None:
    """Find out whether a file can be written, and leave no trace of that."""
    if path.exists():
        with path.open("a", encoding="utf-8"):
            return
    with tempfile.TemporaryFile(dir=path.parent):
        return


class OutputFolder:
    """A folder to write files into when the work is done. Whether it can be written to is checked before the work starts.

    If the work fails, no file is left in it; nor is the folder, if it was not there before.
    """

    def __init__(self, path: str) -> None:
        self.path = Path(path)
        with self.opened(), tempfile.TemporaryFile(dir=self.path):
            pass

    @contextmanager
    def opened(self) -> Iterator[Path]:
        """The folder itself, for files that are each of use. It is removed afterwards if it was not there and is empty."""
        missing = [folder for folder in (self.path, *self.path.parents) if not folder.exists()]
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            yield self.path
        except OSError as error:
            raise cannot_write(self.path, error) from error
        finally:
            with suppress(OSError):
                for folder in missing:
                    folder.rmdir()

    @contextmanager
    def filled(self) -> Iterator[Path]:
        """A folder to write into. Its files are moved to this one when the block ends without an error."""
        with self.opened():
            unfinished = Path(tempfile.mkdtemp(prefix=".unfinished-", dir=self.path))
            try:
                yield unfinished
                for file in sorted(unfinished.iterdir()):
                    file.replace(self.path / file.name)
            finally:
                shutil.rmtree(unfinished, ignore_errors=True)
