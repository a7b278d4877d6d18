"""The listeners of a node, and by which protocol each is served."""

from collections.abc import Mapping
from typing import NamedTuple

from kspec.impl.config.properties import ConfigError

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
"""Kafka: `SecurityProtocol`."""

PLAINTEXT = "PLAINTEXT"
MAP = "listener.security.protocol.map"
LOOPBACK = ("127.", "localhost", "::1", "[::1]")


class Listener(NamedTuple):
    """An address by the name of its listener."""

    name: str
    host: str
    port: int


def listener_of(setting: str, text: str) -> Listener:
    """The listener that a text names, of the setting with this name. Raises: `ConfigError`."""
    name, separator, address = text.partition("://")
    host, colon, port = address.rpartition(":")
    digits = port.isascii() and port.isdigit()
    if not separator or not name.strip() or not colon or not digits or int(port) > 65535:
        raise ConfigError(f"{setting} must have the form NAME://HOST:PORT with a port from 0 to 65535, not {text!r}")
    return Listener(name.strip().upper(), host.strip("[]"), int(port))


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches the address."""
    return host.startswith(LOOPBACK)


def listed(text: str | None) -> tuple[str, ...]:
    """The entries of a list."""
    return tuple(one.strip() for one in (text or "").split(",") if one.strip())


def protocols_of(given: Mapping[str, str]) -> dict[str, str]:
    """The protocol of each listener, by their names in capital letters. Raises: `ConfigError`.

    Without a map, a listener is named after its protocol; those of the controller are plain, unless one of them or of the
    others has the name of another protocol.

    **Kafka:** `KafkaConfig.effectiveListenerSecurityProtocolMap`.
    """
    if MAP not in given:
        found = {name: name for name in PROTOCOLS}
        controllers = [name.upper() for name in listed(given.get("controller.listener.names"))]
        names = controllers + [one.partition("://")[0].upper() for one in listed(given.get("listeners"))]
        if not any(name == "SSL" or name.startswith("SASL_") for name in names):
            found |= dict.fromkeys(controllers, PLAINTEXT)
        return found
    found = {}
    for entry in listed(given[MAP]):
        name, colon, protocol = (part.strip().upper() for part in entry.partition(":"))
        if not colon or not name or protocol not in PROTOCOLS:
            raise ConfigError(
                f"{MAP} must have the form NAME:PROTOCOL,... with one of {', '.join(PROTOCOLS)}, not {entry!r}"
            )
        found[name] = protocol
    return found


def check_listeners(given: Mapping[str, str]) -> None:
    """Refuse a listener that is not plain: there is neither TLS nor authentication. Raises: `ConfigError`.

    **Kafka:** `KafkaConfig.validateValues`, `EndPoint.parseListenerName`.
    """
    protocols = protocols_of(given)
    for setting in ("listeners", "advertised.listeners", "controller.listener.names", "inter.broker.listener.name"):
        for entry in listed(given.get(setting)):
            if setting.endswith("listeners") and "://" not in entry:
                continue  # `listener_of` says what is wrong with it
            name = entry.partition("://")[0].strip().upper()
            protocol = protocols.get(name)
            if protocol is None and (MAP in given or setting in ("listeners", "inter.broker.listener.name")):
                raise ConfigError(f"{setting} names {name}, to which {MAP} gives no protocol: add {name}:{PLAINTEXT} to it")
            if protocol is not None and protocol != PLAINTEXT:
                raise ConfigError(
                    f"{setting} names {name}, by {MAP} of {protocol}: this node has neither TLS nor authentication, "
                    f"so it must be {PLAINTEXT}"
                )
    if given.get("inter.broker.listener.name", "").strip() and "security.inter.broker.protocol" in given:
        raise ConfigError("only one of inter.broker.listener.name and security.inter.broker.protocol may be set")
