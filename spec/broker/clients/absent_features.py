"""Requests about what a broker does without: authentication, authorization, quotas, a second log directory.

Each is answered as Apache Kafka answers where the feature is not configured; a change of it is refused with an error that
says so. A connection that is closed would tell a client nothing.
"""

from collections.abc import Set as AbstractSet

from kspec.spec.values import Error

QUOTA_ENTITIES = frozenset({"user", "client-id", "ip"})
"""Kafka: `ClientQuotaEntity.isValidEntityType`."""

LEAST_ITERATIONS, MOST_ITERATIONS = 4096, 16384
"""Kafka: `ScramMechanism.minIterations`, `ScramControlManager.MAX_ITERATIONS`."""

SCRAM_MECHANISMS = (1, 2)
"""SCRAM-SHA-256 and SCRAM-SHA-512. Kafka: `ScramMechanism.type`."""


def check_sasl_request() -> Error:
    """Whether a client may authenticate: never, where its listener is plain; the client then says why at once.

    Errors: `ILLEGAL_SASL_STATE`.

    **Kafka:** `KafkaApis.handleSaslHandshakeRequest`, `handleSaslAuthenticateRequest`.
    """
    return Error.ILLEGAL_SASL_STATE


def check_acl_request() -> Error:
    """Whether access control lists are shown or changed: never, where there is no authorizer. Errors: `SECURITY_DISABLED`.

    **Kafka:** `AclApis.handleDescribeAcls`, `handleCreateAcls`, `handleDeleteAcls`.
    """
    return Error.SECURITY_DISABLED


def check_token_request() -> Error:
    """Whether a client may have delegation tokens: never, where nobody is authenticated.

    Errors: `DELEGATION_TOKEN_REQUEST_NOT_ALLOWED`.

    **Kafka:** `KafkaApis.allowTokenRequests`.
    """
    return Error.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED


def check_quota_filter(components: tuple[tuple[str, int, bool], ...]) -> Error:
    """Whether quotas are looked for by what there is: users, client ids, addresses; no kind twice, no address with another.

    Of each component: the kind; 0 for a name, 1 for the default, 2 for any; whether a name is given.

    Errors: `INVALID_REQUEST`, `UNSUPPORTED_VERSION` (another kind).

    **Kafka:** `ClientQuotasImage.describe`.
    """
    seen: set[str] = set()
    for entity_type, match_type, has_name in components:
        if entity_type == "" or entity_type in seen:
            return Error.INVALID_REQUEST
        if entity_type not in QUOTA_ENTITIES:
            return Error.UNSUPPORTED_VERSION
        if match_type not in (0, 1, 2) or has_name != (match_type == 0):
            return Error.INVALID_REQUEST
        seen.add(entity_type)
    return Error.INVALID_REQUEST if "ip" in seen and len(seen) > 1 else Error.NONE


def check_quota_change() -> Error:
    """Whether a client's quota may be set: never, as nobody would keep to it. Errors: `INVALID_REQUEST`.

    **Kafka:** `ClientQuotaControlManager.alterClientQuotas`, which takes it.
    """
    return Error.INVALID_REQUEST


def check_described_scram_user(times_named: int) -> Error:
    """The answer about a user's SCRAM credentials: nobody has any. `times_named`: how often the request names the user.

    Errors: `DUPLICATE_RESOURCE`, `RESOURCE_NOT_FOUND`.

    **Kafka:** `ScramImage.describe`.
    """
    return Error.DUPLICATE_RESOURCE if times_named > 1 else Error.RESOURCE_NOT_FOUND


def check_scram_deletion(name: str, mechanism: int) -> Error:
    """Whether a user's SCRAM credential may be deleted: nobody has any.

    Errors: `UNACCEPTABLE_CREDENTIAL` (no name), `UNSUPPORTED_SASL_MECHANISM`, `RESOURCE_NOT_FOUND`.

    **Kafka:** `ScramControlManager.validateDeletion`, `validateScramUsernameAndMechanism`.
    """
    if name == "":
        return Error.UNACCEPTABLE_CREDENTIAL
    return Error.RESOURCE_NOT_FOUND if mechanism in SCRAM_MECHANISMS else Error.UNSUPPORTED_SASL_MECHANISM


def check_scram_upsertion(name: str, mechanism: int, iterations: int) -> Error:
    """Whether a user may be given a SCRAM credential: never, as no listener authenticates by it.

    Errors: `UNACCEPTABLE_CREDENTIAL` (no name, too few or too many iterations), `UNSUPPORTED_SASL_MECHANISM`.

    **Kafka:** `ScramControlManager.validateUpsertion`, which takes one that is acceptable.
    """
    wrong_count = mechanism in SCRAM_MECHANISMS and not LEAST_ITERATIONS <= iterations <= MOST_ITERATIONS
    return Error.UNACCEPTABLE_CREDENTIAL if name == "" or wrong_count else Error.UNSUPPORTED_SASL_MECHANISM


def check_directory_change(directories: AbstractSet[str], wanted: str, has_replica: bool) -> Error:
    """Whether a replica may lie in a log directory of this broker. With one directory it does so already.

    Errors: `LOG_DIR_NOT_FOUND`, `REPLICA_NOT_AVAILABLE`.

    **Kafka:** `ReplicaManager.alterReplicaLogDirs`.
    """
    if wanted not in directories:
        return Error.LOG_DIR_NOT_FOUND
    return Error.NONE if has_replica else Error.REPLICA_NOT_AVAILABLE
