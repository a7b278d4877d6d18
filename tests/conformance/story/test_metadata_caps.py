"""The committed end of the metadata log that a broker is told."""

from kspec.conformance.story.metadata_caps import MetadataCaps


def test_a_broker_reads_as_many_decisions_as_the_run_says_and_no_more() -> None:
    readings = MetadataCaps([1, 2], 10)
    assert [readings.step(broker, 2, 0, 12) for broker in (1, 2)] == [10, 10]
    assert readings.step(1, 3, 0, 15) == 10
    assert readings.step(1, 1, 2, 15) == 15
    assert readings.step(2, 3, 0, 15) == 10
    assert readings.step(2, 2, 1, 15) == 12


def test_a_decision_that_the_model_does_not_keep_apart_is_read_with_the_one_before() -> None:
    readings = MetadataCaps([1], 10)
    assert readings.step(1, 1, 0, 11) == 11
    assert readings.step(1, 2, 0, 14) == 11
    assert readings.step(1, 2, 0, 16) == 11
    assert readings.step(1, 1, 1, 16) == 16
