"""The words of vectors: other names of operations, arguments, fields and errors, and other forms of their values.

A component has one name for each thing. A vector may use another that Kafka has for it (`log_end_offset` for `leo`,
`replicaId` for `replica`), a number as text, an error by its code or its exception. What is neither is unsupported.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from inspect import Parameter, signature
from types import NoneType, UnionType
from typing import Any, Union, cast, get_args, get_origin, get_type_hints

from kspec.spec.values import Error
from tests.conformance.outcomes import UnsupportedError

OTHER_NAMES: dict[str, tuple[str, ...]] = {
    # epochs
    "epoch": ("leader_epoch", "partition_leader_epoch"),
    "leader_epoch": (
        "epoch",
        "partition_leader_epoch",
        "requested_epoch",
        "requested_leader_epoch",
        "asked_epoch",
        "current_leader_epoch",
    ),
    "current_leader_epoch": ("leader_epoch", "epoch"),
    "last_fetched_epoch": ("fetched_epoch", "last_epoch"),
    "partition_epoch": ("version", "zk_version"),
    "new_partition_epoch": ("partition_epoch", "new_version"),
    "broker_epoch": ("replica_epoch",),
    "producer_epoch": ("epoch",),
    # offsets
    "start_offset": ("offset", "base_offset"),
    "offset": (
        "target",
        "to",
        "target_offset",
        "end_offset",
        "start_offset",
        "new_offset",
        "log_start",
        "new_log_start",
        "new_log_start_offset",
        "high_watermark",
        "hw",
        "new_hw",
        "new_high_watermark",
    ),
    "log_end_offset": ("leo", "end_offset"),
    "base_offset": ("first_offset", "offset", "start_offset"),
    "fetch_offset": ("offset", "follower_fetch_offset", "follower_offset"),
    "init_offset": ("initial_offset", "fetch_offset", "offset"),
    "log_start": ("log_start_offset", "follower_log_start", "follower_start_offset", "start_offset"),
    "follower_log_start": ("follower_log_start_offset", "follower_start_offset", "log_start_offset", "log_start"),
    "leader_end_offset": ("leader_log_end_offset", "leader_leo", "log_end_offset", "leo"),
    "hw": ("high_watermark",),
    "checkpointed_hw": (
        "checkpointed_high_watermark",
        "checkpoint_hw",
        "checkpoint_high_watermark",
        "hw_checkpoint",
        "high_watermark_checkpoint",
        "hw_from_checkpoint",
        "offset_checkpoint",
        "checkpointed_offset",
        "checkpoint_offset",
        "checkpoint",
        "initial_hw",
        "initial_high_watermark",
    ),
    # how many
    "count": ("records", "num_records", "record_count", "messages", "num_messages"),
    "records": ("count", "num_records", "record_count"),
    "times": ("repeat", "iterations", "count"),
    "max_iterations": ("iterations", "times"),
    "batches": ("entries", "log", "records"),
    "log": ("batches", "records", "entries"),
    # who and when
    "replica": ("replica_id", "follower", "follower_id", "broker", "broker_id"),
    "broker": ("broker_id", "replica", "replica_id", "id", "to", "node", "leader"),
    "local_broker": ("local_broker_id", "broker_id", "broker"),
    "leader": ("leader_id",),
    "replicas": ("assignment", "assigned", "assigned_replicas"),
    "assignment": ("partitions", "assignments", "replica_assignment"),
    "topic": ("name", "topic_name"),
    "partition": ("partition_id", "partition_index", "index", "topic_partition", "tp"),
    "brokers": ("ids", "broker_ids"),
    "remove_partition": ("remove", "removes_partition"),
    "shutting_down": ("in_controlled_shutdown", "is_shutting_down"),
    "clean": ("clean_shutdown", "cleanly"),
    "adding": ("adding_replicas",),
    "removing": ("removing_replicas",),
    "leader_recovery": ("leader_recovery_state", "recovery"),
    "time": ("time_ms", "now", "now_ms", "at", "fetch_time", "fetch_time_ms"),
    "ms": ("time", "millis", "duration", "duration_ms", "time_ms"),
    "max_lag_ms": ("max_lag", "replica_lag_time_max_ms"),
    "replica_lag_time_max_ms": ("max_lag_ms", "replica_max_lag_ms", "max_lag"),
    "min_insync_replicas": ("min_isr", "min_in_sync_replicas"),
    "kraft_metadata": ("kraft",),
    # requests
    "only_leader": ("leader_only", "fetch_only_from_leader", "fetch_only_leader", "only_from_leader"),
    "client_metadata": ("has_client_metadata",),
    "isolation": ("isolation_level", "fetch_isolation"),
    "acks": ("required_acks",),
    "transactional": ("is_transactional", "transaction", "txn"),
    "producer_id": ("pid",),
    "first_seq": ("first_sequence", "base_sequence", "base_seq", "sequence", "seq"),
    "timestamp": ("target_timestamp", "time"),
    "error": ("error_code", "code", "errors"),
    "is_new_leader": ("new_leader",),
    "in_isr": ("is_in_sync", "in_sync", "is_follower_in_sync"),
    # the fetcher
    "api": ("request", "rpc", "step", "during", "phase", "what", "when", "event", "call", "method", "point"),
    "latest_epoch_available": ("epochs_available", "has_epochs", "supports_epochs"),
    "offset_for_leader_epoch_supported": (
        "supports_offset_for_leader_epoch",
        "is_offset_for_leader_epoch_supported",
        "leader_epoch_request_supported",
        "epoch_request_supported",
        "offset_for_leader_epoch",
        "leader_epoch_request",
        "offsets_for_leader_epoch_supported",
    ),
    "role": ("host_role", "kind"),
    # the controller
    "registration": ("partition", "partition_registration"),
    "acceptable": ("acceptable_leaders", "is_acceptable_leader", "alive", "live", "active", "valid_leaders"),
    "election": ("election_type",),
}
"""Parameters of operations, and how else a vector may call them; an earlier name is tried first."""

OTHER_OPERATIONS: dict[str, tuple[str, ...]] = {
    "assign": ("assign_epoch", "append"),
    "truncate_from_end": ("truncate_from_end_async_flush", "clear_and_flush_latest"),
    "truncate_from_start": ("truncate_from_start_async_flush", "clear_and_flush_earliest"),
    "clear": ("clear_and_flush",),
    "reload_from_checkpoint": ("reload", "reopen", "recreate"),
    "end_offset_for": ("epoch_end_offset", "offset_for_leader_epoch", "end_offset_for_epoch"),
    "next_epoch": ("find_next_epoch",),
    "previous_epoch": ("find_previous_epoch",),
    "previous_entry": ("find_previous_entry",),
    "append_leader": ("append_as_leader", "append"),
    "append_follower": ("append_as_follower", "append_records_to_follower"),
    "update_hw": ("update_high_watermark", "set_hw", "set_high_watermark"),
    "maybe_update_hw": ("maybe_update_high_watermark",),
    "maybe_increment_hw": ("maybe_increment_high_watermark", "increment_hw", "increment_high_watermark"),
    "increment_log_start": ("maybe_increment_log_start_offset", "increment_log_start_offset", "maybe_increment_log_start"),
    "truncate_to": ("truncate",),
    "truncate_fully": ("truncate_fully_and_start_at", "truncate_fully_at"),
    "assign_epoch": ("maybe_assign_epoch_start_offset", "assign", "assign_epoch_start_offset", "open_epoch"),
    "delete_old_segments": ("delete_segments", "delete_segments_before"),
    "offset_for_leader_epoch": ("offsets_for_leader_epoch", "last_offset_for_leader_epoch", "leader_epoch_end_offset"),
    "list_offsets": ("fetch_offset_for_timestamp",),
    "offset_snapshot": ("fetch_offset_snapshot",),
    "maybe_shrink_isr": ("shrink_isr",),
    "alter_partition_complete": ("complete_alter_partition", "complete_isr_update"),
    "alter_partition_fail": ("fail_alter_partition", "fail_isr_update"),
    "checkpointed_hw": ("checkpoint_hw", "hw_checkpoint", "checkpoint", "set_checkpoint", "offset_checkpoint"),
    "remove_partition_during_truncate_to_high_watermark": (
        "remove_partition_during_truncate_to_hw",
        "remove_partition_during_truncation",
        "remove_partition_during_hw_truncation",
    ),
    "remove_partition_during_offset_for_leader_epoch": (
        "remove_partition_during_fetch_epochs",
        "remove_partition_during_epoch_request",
        "remove_partition_during_truncate_to_epoch_end_offsets",
        "remove_partition_during_fetch_epoch_end_offsets",
    ),
    "bounce_broker": ("restart_broker", "bounce_leader", "restart_leader", "bounce"),
    "stop_broker": ("shutdown_broker", "shut_down_broker"),
    "start_broker": ("startup_broker",),
    "start_brokers": ("brokers", "create_brokers"),
    "create_topic": ("create_topics", "create_partition"),
    "expect_metadata_leader_epoch": ("expect_leader_epoch",),
    "expect_leo": ("expect_log_end_offset",),
}
"""Operations, and how else a vector may call them."""

OTHER_FIELDS: dict[str, tuple[str, ...]] = {
    "leo": ("log_end_offset", "end_offset"),
    "hw": ("high_watermark",),
    "lso": ("last_stable_offset",),
    "log_start": ("log_start_offset", "start_offset"),
    "base_offset": ("first_offset", "offset"),
    "epoch_entries": ("entries", "epochs", "epoch_cache"),
    "entries": ("epoch_entries",),
    "latest_epoch_entry": ("latest_entry",),
    "epoch_entry_count": ("entry_count",),
    "maximal_isr": ("max_isr",),
    "leader_epoch_start": ("leader_epoch_start_offset", "epoch_start"),
    "last_caught_up": ("last_caught_up_time", "last_caught_up_time_ms"),
    "last_fetch_time": ("last_fetch_time_ms",),
    "last_fetch_leader_leo": ("last_fetch_leader_log_end_offset", "last_fetch_leader_end_offset"),
    "fetch_state": ("state",),
    "current_leader_epoch": ("leader_epoch",),
    "last_seq": ("last_sequence",),
    "first_seq": ("first_sequence",),
    "diverging_epoch": ("diverging", "divergence", "diverges", "epoch_end_offset"),
    "epoch": ("leader_epoch",),
    "leader_epoch": ("epoch",),
    "offset": ("end_offset",),
    "leader": ("node", "leader_id", "broker"),
    "leader_recovery": ("leader_recovery_state", "recovery"),
    "adding": ("adding_replicas",),
    "removing": ("removing_replicas",),
    "last_known_elr": ("last_known_eligible_leader_replicas",),
    "elr": ("eligible_leader_replicas",),
    "target_recovery": ("target_leader_recovery", "target_leader_recovery_state"),
    "target_adding": ("target_adding_replicas",),
    "target_removing": ("target_removing_replicas",),
    "target_elr": ("target_eligible_leader_replicas",),
    "unclean_shutdown": ("unclean_shutdown_replicas", "unclean_replicas"),
    "elr_enabled": ("eligible_leader_replicas_enabled", "is_elr_enabled", "elr"),
    "use_last_known_leader": (
        "use_last_known_leader_in_balanced_recovery",
        "last_known_leader_enabled",
        "last_known_leader",
    ),
    "min_isr": ("min_insync_replicas", "min_in_sync_replicas"),
    "record_version": ("version", "partition_change_record_version"),
    "assigned_replicas": ("assigned",),
    "new_epoch": ("is_new_epoch", "new_leader_epoch", "is_new_leader_epoch"),
    "is_new_leader": ("new_leader", "is_new"),
    "count": ("record_count", "size"),
    "duplicate": ("is_duplicate",),
    "duplicate_of": ("duplicate_of_offsets", "first_append"),
}
"""Fields of answers and states, and how else a vector may call them."""

SAYS_NOTHING = {"notes", "note", "comment", "description", "topic_id", "controller_epoch"}
"""Arguments that change nothing in what a component does."""

OTHER_ERRORS = {
    None: "NONE",
    "OK": "NONE",
    "SUCCESS": "NONE",
    "OUT_OF_ORDER_SEQUENCE": "OUT_OF_ORDER_SEQUENCE_NUMBER",
    "KAFKA_STORAGE": "KAFKA_STORAGE_ERROR",
    "STORAGE_ERROR": "KAFKA_STORAGE_ERROR",
    "IO": "KAFKA_STORAGE_ERROR",
    "NOT_LEADER_FOR_PARTITION": "NOT_LEADER_OR_FOLLOWER",
    "UNKNOWN_SERVER": "UNKNOWN_SERVER_ERROR",
    "NETWORK": "NETWORK_EXCEPTION",
}


def in_snake_case(name: str) -> str:
    """`replicaId` as `replica_id`, which is how Python and the reference vectors write names."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def error_name(error: object) -> str:
    """Kafka's name of an error that is given by its name, its code or its exception."""
    if isinstance(error, int) and not isinstance(error, bool):
        codes = [known.name for known in Error if known.value == error]
        if not codes:
            raise UnsupportedError(f"error code {error}")
        return codes[0]
    if not isinstance(error, str | None):
        raise UnsupportedError(f"error {error}")
    name = error
    if name is not None and name.endswith("Exception"):
        name = in_snake_case(name.removesuffix("Exception"))
    name = name if name is None else name.upper()
    return OTHER_ERRORS.get(name) or str(name)


def is_error_name(word: object) -> bool:
    """Whether a word can only be an error."""
    return isinstance(word, str) and (word.endswith("Exception") or error_name(word) in Error.__members__)


def field_of(state: Iterable[str], name: str) -> str | None:
    """The name under which a state or an answer has what a vector calls `name`."""
    fields = set(state)
    if name in fields:
        return name
    plain = in_snake_case(name)
    named = (field for field in sorted(fields) if field == plain or plain in OTHER_FIELDS.get(field, ()))
    return next(named, None)


def operation_of(component: object, name: str) -> Callable[..., Any] | None:
    """The method of a component that carries out what a vector calls `name`."""
    plain = in_snake_case(name)
    others = [operation for operation, names in OTHER_OPERATIONS.items() if plain in names]
    for candidate in (plain, *others):
        method = getattr(component, candidate, None)
        if callable(method) and not candidate.startswith("_") and candidate != "final_state":
            return cast(Callable[..., Any], method)
    return None


def bind(method: Callable[..., Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of an operation under the names and in the form that a component's method has.

    Raises `UnsupportedError` for a name that the method does not know, a value of another form, or a missing argument.
    """
    parameters, hints = signature(method).parameters, get_type_hints(method)
    takes_any = any(parameter.kind == Parameter.VAR_KEYWORD for parameter in parameters.values())
    known = [name for name, parameter in parameters.items() if parameter.kind != Parameter.VAR_KEYWORD]
    wanted = {in_snake_case(name): value for name, value in arguments.items()}
    bound = {name: value for name, value in wanted.items() if name in known}
    for name in [name for name in wanted if name not in known]:
        others = [parameter for parameter in known if parameter not in bound and name in OTHER_NAMES.get(parameter, ())]
        best = min(others, key=lambda parameter: OTHER_NAMES[parameter].index(name), default=None)
        if best is not None:
            bound[best] = wanted[name]
        elif takes_any:
            bound[name] = wanted[name]
        elif name not in SAYS_NOTHING:
            raise UnsupportedError(f"argument {name}")
    missing = [name for name in known if name not in bound and parameters[name].default is Parameter.empty]
    if missing:
        raise UnsupportedError(f"no argument {', '.join(missing)}")
    return {name: read_as(hints.get(name, Any), value, name) for name, value in bound.items()}


def read_as(hint: Any, value: Any, what: str) -> Any:
    """A value as a parameter with this type takes it: a number may be given as text, a set of pairs as an object."""
    for alternative in get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,):
        fits, read = _read_as(alternative, value)
        if fits:
            return read
    raise UnsupportedError(f"{what} {value!r}")


def _read_as(hint: Any, value: Any) -> tuple[bool, Any]:
    if hint is Any:
        return True, value
    if hint is NoneType:
        return value is None, None
    if hint is int and isinstance(value, str) and re.fullmatch(r"-?\d+", value):
        return True, int(value)
    if hint in (int, str, bool):
        return type(value) is hint, value
    if get_origin(hint) is list and isinstance(value, list):
        parts = [_read_as(get_args(hint)[0], part) for part in value]
        return all(fits for fits, _ in parts), [part for _, part in parts]
    if get_origin(hint) is dict and isinstance(value, dict):
        parts = [_read_as(get_args(hint)[1], part) for part in value.values()]
        return all(fits for fits, _ in parts), dict(zip(value, (part for _, part in parts), strict=True))
    return False, value
