"""A setting by which an operator expects what is not given ends the start; no value is shown of a secret."""

from collections.abc import Mapping

import pytest

from kspec.impl.config.broker import SETTINGS, SILENT, BrokerConfig
from kspec.impl.config.controller import CONTROLLER_SETTINGS, ControllerConfig
from kspec.impl.config.kafka import is_secret, kafka_settings
from kspec.impl.config.promises import HARMLESS, PROMISES, ignored, is_harmless, promise_of
from kspec.impl.config.properties import ConfigError

CONTROLLER = {
    "process.roles": "controller",
    "node.id": "1",
    "controller.quorum.voters": "1@127.0.0.1:9093",
    "controller.listener.names": "CONTROLLER",
    "listeners": "CONTROLLER://127.0.0.1:9093",
}
SECRET = "hunter2"

REFUSED: dict[str, str] = {
    "ssl.keystore.location": "/etc/kafka/server.jks",
    "ssl.keystore.password": SECRET,
    "ssl.client.auth": "required",
    "ssl.made.up": "x",
    "Ssl.Keystore.Password": SECRET,
    "sasl.enabled.mechanisms": "PLAIN",
    "sasl.jaas.config": SECRET,
    "sasl.mechanism.controller.protocol": "PLAIN",
    "security.inter.broker.protocol": "SASL_SSL",
    "security.providers": "a.B",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:admin",
    "allow.everyone.if.no.acl.found": "false",
    "principal.builder.class": "a.B",
    "connections.max.reauth.ms": "1000",
    "delegation.token.secret.key": SECRET,
    "delegation.token.master.key": SECRET,
    "quota.producer.default": "1000",
    "quota.window.num": "12",
    "controller.quota.window.num": "12",
    "client.quota.callback.class": "a.B",
    "create.topic.policy.class.name": "a.B",
    "alter.config.policy.class.name": "a.B",
    "max.connection.creation.rate": "10",
    "max.connections.per.ip.overrides": "127.0.0.1:1",
    "max.decompressed.message.bytes": "1000",
    "log.cleaner.io.max.bytes.per.second": "1000",
    "remote.log.storage.system.enable": "true",
    "cordoned.log.dirs": "*",
    "config.providers": "file",
    "config.providers.file.class": "a.B",
    "zookeeper.set.acl": "true",
    "zookeeper.ssl.client.enable": "true",
    "opa.authorizer.url": "http://127.0.0.1",
    "confluent.encryption.key": SECRET,
    "listener.name.client.ssl.keystore.password": SECRET,
    "listener.name.CLIENT.ssl.keystore.password": SECRET,
    "listener.name.client.plain.sasl.jaas.config": SECRET,
    "listener.name.client.scram-sha-256.sasl.jaas.config": SECRET,
    "listener.name.client.max.connections": "3",
    "listener.name.client.max.connection.creation.rate": "3",
    "listener.name.client.connections.max.reauth.ms": "3",
    "listener.name.client.principal.builder.class": "a.B",
}

ACCEPTED: dict[str, str] = {
    "authorizer.class.name": "",
    "security.inter.broker.protocol": "PLAINTEXT",
    "sasl.enabled.mechanisms": " GSSAPI ",
    "ssl.client.auth": "none",
    "ssl.keystore.password": "",
    "ssl.enabled.protocols": "TLSv1.2, TLSv1.3",
    "connections.max.reauth.ms": "0",
    "max.connection.creation.rate": "2147483647",
    "max.connections.per.ip.overrides": "",
    "log.cleaner.io.max.bytes.per.second": "1.7976931348623157E308",
    "remote.log.storage.system.enable": "FALSE",
    "allow.everyone.if.no.acl.found": "true",
    "super.users": "",
    "zookeeper.set.acl": "false",
    "config.providers": "",
    "principal.builder.class": "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder",
    "quota.window.num": "11",
    "listener.name.client.ssl.client.auth": "none",
    "listener.name.client.num.network.threads": "3",
    "group.consumer.max.session.timeout.ms": "70000",
    "transaction.state.log.min.isr": "1",
    "zookeeper.connect": "127.0.0.1:2181",
    "some.plugin.password": SECRET,
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("make", [BrokerConfig, lambda given: ControllerConfig({**CONTROLLER, **given})])
def test_a_promise_that_is_not_kept_ends_the_start_with_one_line(name: str, make: type[BrokerConfig]) -> None:
    with pytest.raises(ConfigError) as refused:
        make({name: REFUSED[name]})
    assert name in str(refused.value)
    assert REFUSED[name] not in str(refused.value) or REFUSED[name] in ("x", "3", "true")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", ACCEPTED)
@pytest.mark.parametrize("make", [BrokerConfig, lambda given: ControllerConfig({**CONTROLLER, **given})])
def test_what_says_the_same_as_a_default_is_accepted_and_no_value_is_told(name: str, make: type[BrokerConfig]) -> None:
    told = make({name: ACCEPTED[name]}).ignored
    assert len(told) <= 1
    assert not any(SECRET in line or "=" in line for line in told)


def test_every_setting_of_kafka_is_given_or_promises_or_is_harmless() -> None:
    """Each is one of the three, and the lists name nothing that Kafka does not have."""
    unclear, twice = [], []
    for name in kafka_settings():
        promised = promise_of(name) is not None
        if name not in CONTROLLER_SETTINGS and not promised and not is_harmless(name):
            unclear.append(name)
        if name in SETTINGS and promised:
            twice.append(name)
    assert (unclear, twice) == ([], [])
    assert [one for one in HARMLESS if not any(name == one or name.startswith(one) for name in kafka_settings())] == []


def test_every_password_of_kafka_is_a_promise_and_secret() -> None:
    passwords = [name for name, one in kafka_settings().items() if one.kind == "password"]
    assert len(passwords) > 8
    assert [name for name in passwords if promise_of(name) is None or not is_secret(name)] == []
    assert all(is_secret(f"listener.name.client.{name}") for name in passwords)
    assert is_secret("a.name.that.nobody.knows")
    assert not is_secret("log.retention.ms")


def test_promises_have_names() -> None:
    assert all(promise.names for promise in PROMISES)


def test_all_promises_are_named_in_one_line() -> None:
    with pytest.raises(ConfigError, match=r"^settings .* ssl\.key\.password, ssl\.protocol: TLS; super\.users: auth"):
        BrokerConfig({"ssl.protocol": "TLSv1.2", "ssl.key.password": SECRET, "super.users": "User:a"})


def test_settings_without_effect_are_told_without_their_values() -> None:
    assert ignored(["num.io.threads", "my.password", "some.thing", "log.preallocate"], SETTINGS, SILENT) == [
        "log.preallocate has no effect here, and is ignored",
        "my.password is not known, and ignored",
        "some.thing is not known, and ignored",
    ]


LISTENERS: tuple[tuple[Mapping[str, str], str | None], ...] = (
    ({"listeners": "CLIENT://:1", "listener.security.protocol.map": "CLIENT:SASL_SSL"}, "CLIENT"),
    ({"listeners": "client://:1", "listener.security.protocol.map": "Client:sasl_ssl"}, "CLIENT"),
    ({"listeners": "SSL://127.0.0.1:1"}, "SSL"),
    ({"listeners": "ssl://127.0.0.1:1"}, "SSL"),
    ({"listeners": "SASL_PLAINTEXT://127.0.0.1:1"}, "SASL_PLAINTEXT"),
    ({"listeners": "PLAINTEXT://:1", "listener.security.protocol.map": "PLAINTEXT:SSL"}, "PLAINTEXT"),
    ({"listeners": "CLIENT://127.0.0.1:1"}, "CLIENT"),
    ({"listeners": "CLIENT://127.0.0.1:1", "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT"}, "CLIENT"),
    ({"listeners": "A://:1", "listener.security.protocol.map": "A"}, "listener.security.protocol.map"),
    ({"listeners": "A://:1", "listener.security.protocol.map": "A:TLS"}, "listener.security.protocol.map"),
    ({"advertised.listeners": "SSL://127.0.0.1:1"}, "advertised.listeners"),
    ({"inter.broker.listener.name": "SSL"}, "inter.broker.listener.name"),
    (
        {"controller.listener.names": "CTRL", "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CTRL:SASL_SSL"},
        "controller.listener.names",
    ),
    ({"controller.listener.names": "SASL_SSL"}, "controller.listener.names"),
    ({"inter.broker.listener.name": "PLAINTEXT", "security.inter.broker.protocol": "PLAINTEXT"}, "only one"),
    ({"listeners": "CLIENT://127.0.0.1:1", "listener.security.protocol.map": "client:plaintext,B:SSL"}, None),
    ({"listeners": "PLAINTEXT://:1,CTRL://:2", "controller.listener.names": "CTRL"}, None),
    ({"controller.listener.names": "CONTROLLER", "inter.broker.listener.name": "PLAINTEXT"}, None),
    ({"listener.security.protocol.map": "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL"}, None),
    ({}, None),
)


@pytest.mark.parametrize(("given", "named"), LISTENERS)
def test_a_listener_is_plain_or_ends_the_start(given: Mapping[str, str], named: str | None) -> None:
    if named is None:
        BrokerConfig(given)
        return
    with pytest.raises(ConfigError, match=named):
        BrokerConfig(given)


def test_a_controllers_listener_is_plain() -> None:
    secure = {**CONTROLLER, "listener.security.protocol.map": "CONTROLLER:SASL_SSL"}
    with pytest.raises(ConfigError, match=r"CONTROLLER, by listener.security.protocol.map of SASL_SSL"):
        ControllerConfig(secure)
    assert ControllerConfig({**CONTROLLER, "listener.security.protocol.map": "CONTROLLER:PLAINTEXT"}).listener.port == 9093


def test_a_controller_may_be_told_by_another_address() -> None:
    assert ControllerConfig(CONTROLLER).advertised == ControllerConfig(CONTROLLER).listener
    told = ControllerConfig({**CONTROLLER, "advertised.listeners": "CONTROLLER://proxy:9"})
    assert (told.advertised.host, told.advertised.port, told.listener.port) == ("proxy", 9, 9093)
    for wrong in ("PLAINTEXT://proxy:9", "CONTROLLER://proxy:9,CONTROLLER://other:9"):
        with pytest.raises(ConfigError, match=r"advertised\.listeners must be CONTROLLER"):
            ControllerConfig({**CONTROLLER, "advertised.listeners": wrong})
