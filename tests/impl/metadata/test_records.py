"""Records of the metadata log: what Kafka's schemas say that a number means."""

import pytest

from kspec.impl.metadata.records import LogRecord, decode_record, encode_record, from_spec, to_spec
from kspec.impl.wire.values import Message
from kspec.spec.metadata import (
    BrokerRegistration,
    BrokerRegistrationChangeRecord,
    MetadataRecord,
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
)
from kspec.spec.values import BrokerEpoch, BrokerId, Incarnation

TWO, EPOCH = BrokerId(2), BrokerEpoch(7)


@pytest.mark.parametrize(("number", "fenced"), [(-1, False), (0, None), (1, True)])
def test_fencing_has_kafkas_numbers(number: int, fenced: bool | None) -> None:
    """Of `BrokerRegistrationChangeRecord.json`: -1 if the broker has been unfenced, 1 if it has been fenced."""
    message = Message(broker_id=TWO, broker_epoch=EPOCH, fenced=number, in_controlled_shutdown=0)
    expected = BrokerRegistrationChangeRecord(TWO, EPOCH, fenced)
    assert to_spec(LogRecord("BrokerRegistrationChangeRecord", message), None) == expected
    assert from_spec(expected, None).message.fenced == number


@pytest.mark.parametrize(
    "record",
    [
        RegisterBrokerRecord(BrokerRegistration(TWO, EPOCH, Incarnation(3), fenced=True)),
        BrokerRegistrationChangeRecord(TWO, EPOCH, fenced=False, in_controlled_shutdown=True),
        UnregisterBrokerRecord(TWO, EPOCH),
    ],
)
def test_records_about_brokers_come_back(record: MetadataRecord) -> None:
    assert to_spec(decode_record(memoryview(encode_record(from_spec(record, None)))), None) == record
