"""Features: the first records of a new cluster, and changes by request."""

from impl.broker.calls import Call, Effect
from impl.controller.brokers import ranges_of
from impl.controller.core import ControllerCore
from impl.metadata.image import BROKER_RESOURCE
from impl.metadata.records import LogRecord
from impl.wire.values import Message
from spec.controller.rules.features import ELIGIBLE_LEADER_REPLICAS, Change, FeatureLevel, check_feature_change
from spec.values import Error

FIRST_WITH_KINDS = 1
"""The version of UpdateFeatures from which the kind of change is named."""

LAST_WITH_RESULTS = 1
"""The version of UpdateFeatures up to which each feature has an answer of its own."""

CHANGES = {change.value: change for change in Change}


def first_records(core: ControllerCore) -> list[LogRecord]:
    """The records with which a new cluster begins: `metadata.version` first.

    With eligible leader replicas the cluster always has `min.insync.replicas`.

    **Kafka:** `ActivationRecordsGenerator.recordsForEmptyLog`, which puts them into a metadata transaction; here they are
    one batch.
    """
    return [record for level in core.features_at_start() for record in _records_of(core, level)]


def _records_of(core: ControllerCore, level: FeatureLevel) -> list[LogRecord]:
    """**Kafka:** `ConfigurationControlManager.maybeGenerateElrSafetyRecords`."""
    found = [LogRecord("FeatureLevelRecord", Message(name=level.name, feature_level=level.level))]
    name = "min.insync.replicas"
    if (
        level.name == ELIGIBLE_LEADER_REPLICAS
        and level.level
        and name not in core.image.configs.get((BROKER_RESOURCE, ""), {})
    ):
        fields = {"resource_type": BROKER_RESOURCE, "resource_name": "", "name": name}
        found.append(LogRecord("ConfigRecord", Message(**fields, value=core.default_topic_settings()[name])))
    return found


def update_features(core: ControllerCore, call: Call, now: int) -> list[Effect]:
    """Change levels of features: all that are asked for, or none. **Kafka:** `FeatureControlManager.updateFeatures`."""
    asked = call.message
    nodes = (core.supported_features, *(ranges_of(one.features) for one in core.image.registered.values()))
    records: list[LogRecord] = []
    errors: list[tuple[str, Error]] = []
    for one in asked.feature_updates:
        level = FeatureLevel(one.feature, one.max_version_level)
        error = check_feature_change(core.finalized_features, nodes, level, _change(one, call.version))
        errors.append((one.feature, error))
        if error == Error.NONE and core.image.features.get(level.name, 0) != level.level:
            records += _records_of(core, level)
    refused = next((error for _, error in errors if error != Error.NONE), Error.NONE)
    kept = [] if asked.validate_only or refused != Error.NONE else records
    fields = {"error_code": refused.value, "error_message": None if refused == Error.NONE else refused.name}
    if call.version <= LAST_WITH_RESULTS and refused == Error.NONE:
        fields["results"] = [Message(feature=name, error_code=0, error_message=None) for name, _ in errors]
    return [*core.change_metadata(kept), call.respond(**fields)]


def _change(one: Message, version: int) -> Change:
    if version < FIRST_WITH_KINDS:
        return Change.SAFE_DOWNGRADE if one.allow_downgrade else Change.UPGRADE
    return CHANGES.get(one.upgrade_type, Change.UPGRADE)
