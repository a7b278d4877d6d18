"""A folder that a setting or an option names: whether a process can keep its files there, and if not, why not."""

import os
from collections.abc import Mapping
from pathlib import Path

from kspec.impl.config.properties import ConfigError


def check_folder(path: Path, name: str) -> None:
    """Whether a folder is there and can be written to, or can be made. `name`: the setting or option that says it.

    Raises: `ConfigError`, which names what stands in the way and what would be right.
    """
    if "\0" in str(path):
        raise ConfigError(f"{name}={str(path)!r} has a character that no path has; name another folder")
    whole = path.absolute()
    there = next(one for one in (whole, *whole.parents) if os.path.lexists(one))
    told = f"{name}={path}"
    if there.is_symlink() and not there.exists():
        wrong = f"{there} is a link to {there.readlink()}, which is not there"
        raise ConfigError(f"{told} cannot be used: {wrong}; make it, or name another folder")
    if not there.is_dir():
        kind = "a file" if there.is_file() else "no folder"
        raise ConfigError(f"{told} cannot be used: {there} is {kind}; name a folder, or one that can be made")
    if not os.access(there, os.W_OK | os.X_OK):
        raise ConfigError(f"{told} cannot be used: {there} may not be written to; allow it, or name another folder")


def name_of_log_dir(given: Mapping[str, str], *before: str) -> str:
    """The setting that names the folder for logs: the first that is given. `before`: those that come before the usual."""
    return next((name for name in (*before, "log.dirs") if name in given), "log.dir")


def only_folder(listed: tuple[str, ...] | None, name: str) -> Path:
    """The folder that a setting names. Raises: `ConfigError`, if it names none, or several."""
    if not listed:
        raise ConfigError(f"{name} is empty; name a folder, or leave it out")
    if len(listed) > 1:
        raise ConfigError(f"{name} must name one folder, not {','.join(listed)}")
    return Path(listed[0])


def not_usable(path: Path, name: str, error: OSError) -> ConfigError:
    """An error of a folder that turns out when it is used."""
    at = f"{error.filename}: " if error.filename and str(error.filename) != str(path) else ""
    return ConfigError(f"{name}={path} cannot be used: {at}{error.strerror or error}; name another folder")
