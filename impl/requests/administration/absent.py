"""Requests about what there is not: authentication, authorization, quotas. None changes anything."""

from collections import Counter
from collections.abc import Callable

from kspec.impl.broker.calls import Call, Effect
from kspec.impl.wire.values import Message
from kspec.spec.broker.clients.absent_features import (
    check_acl_request,
    check_described_scram_user,
    check_quota_change,
    check_quota_filter,
    check_sasl_request,
    check_scram_deletion,
    check_scram_upsertion,
    check_token_request,
)
from kspec.spec.values import Error, Instant

NO_AUTHORIZER = "there is no authorizer: everybody may do everything"
NO_AUTHENTICATION = "this listener is plain: there is no authentication"
NO_QUOTAS = "this cluster has no quotas of clients, and would not keep to one"
ANONYMOUS = {
    "principal_type": "User",
    "principal_name": "ANONYMOUS",
    "token_requester_principal_type": "User",
    "token_requester_principal_name": "ANONYMOUS",
}
"""The principal of all requests. Kafka: `KafkaPrincipal.ANONYMOUS`."""

FIRST_WITH_REQUESTER = 3
NO_TIME = -1


def sasl_handshake(node: object, call: Call, now: Instant) -> list[Effect]:
    """A client wants to authenticate. **Kafka:** `KafkaApis.handleSaslHandshakeRequest`."""
    return [call.respond(error_code=check_sasl_request().value, mechanisms=[])]


def sasl_authenticate(node: object, call: Call, now: Instant) -> list[Effect]:
    """A client authenticates. **Kafka:** `KafkaApis.handleSaslAuthenticateRequest`."""
    return [call.respond(error_code=check_sasl_request().value, error_message=NO_AUTHENTICATION, auth_bytes=b"")]


def describe_acls(node: object, call: Call, now: Instant) -> list[Effect]:
    """Access rules: there are none. **Kafka:** `AclApis.handleDescribeAcls`."""
    return [call.respond(error_code=check_acl_request().value, error_message=NO_AUTHORIZER, resources=[])]


def create_acls(node: object, call: Call, now: Instant) -> list[Effect]:
    """Allow or forbid something. **Kafka:** `AclApis.handleCreateAcls`."""
    refused = Message(error_code=check_acl_request().value, error_message=NO_AUTHORIZER)
    return [call.respond(results=[refused for _ in call.message.creations])]


def delete_acls(node: object, call: Call, now: Instant) -> list[Effect]:
    """Allow or forbid something no more. **Kafka:** `AclApis.handleDeleteAcls`."""
    refused = Message(error_code=check_acl_request().value, error_message=NO_AUTHORIZER, matching_acls=[])
    return [call.respond(filter_results=[refused for _ in call.message.filters])]


def create_delegation_token(node: object, call: Call, now: Instant) -> list[Effect]:
    """A client wants a token. **Kafka:** `KafkaApis.handleCreateTokenRequest`."""
    requester = call.version >= FIRST_WITH_REQUESTER
    whose = {name: value for name, value in ANONYMOUS.items() if requester or not name.startswith("token_")}
    times = dict.fromkeys(("issue_timestamp_ms", "expiry_timestamp_ms", "max_timestamp_ms"), NO_TIME)
    return [call.respond(error_code=check_token_request().value, **whose, **times, token_id="", hmac=b"")]


def change_delegation_token(node: object, call: Call, now: Instant) -> list[Effect]:
    """A client wants to keep a token, or to give it up. **Kafka:** `handleRenewTokenRequest`, `handleExpireTokenRequest`."""
    return [call.respond(error_code=check_token_request().value, expiry_timestamp_ms=NO_TIME)]


def describe_delegation_token(node: object, call: Call, now: Instant) -> list[Effect]:
    """Delegation tokens: there are none. **Kafka:** `KafkaApis.handleDescribeTokensRequest`."""
    return [call.respond(error_code=check_token_request().value, tokens=[])]


def describe_client_quotas(node: object, call: Call, now: Instant) -> list[Effect]:
    """Client quotas: there are none. **Kafka:** `KafkaApis.handleDescribeClientQuotasRequest`."""
    components = tuple((one.entity_type, one.match_type, one.match is not None) for one in call.message.components)
    error = check_quota_filter(components)
    if error != Error.NONE:
        return [call.respond(error_code=error.value, error_message=error.name, entries=None)]
    return [call.respond(error_code=0, error_message=None, entries=[])]


def alter_client_quotas(node: object, call: Call, now: Instant) -> list[Effect]:
    """Set or remove quotas. **Kafka:** `ControllerApis.handleAlterClientQuotas`."""
    error = check_quota_change()
    entries = [
        Message(
            error_code=error.value,
            error_message=NO_QUOTAS,
            entity=[Message(entity_type=part.entity_type, entity_name=part.entity_name) for part in one.entity],
        )
        for one in call.message.entries
    ]
    return [call.respond(entries=entries)]


def describe_user_scram_credentials(node: object, call: Call, now: Instant) -> list[Effect]:
    """SCRAM credentials: there are none. **Kafka:** `KafkaApis.handleDescribeUserScramCredentialsRequest`."""
    results = []
    for name, times in Counter(one.name for one in call.message.users or ()).items():
        error = check_described_scram_user(times)
        results.append(Message(user=name, error_code=error.value, error_message=error.name, credential_infos=[]))
    return [call.respond(error_code=0, error_message=None, results=results)]


def alter_user_scram_credentials(node: object, call: Call, now: Instant) -> list[Effect]:
    """Give a user a credential, or take it. **Kafka:** `ScramControlManager.alterCredentials`."""
    errors: dict[str, Error] = {}
    for one in call.message.deletions:
        errors.setdefault(one.name, check_scram_deletion(one.name, one.mechanism))
    for one in call.message.upsertions:
        errors.setdefault(one.name, check_scram_upsertion(one.name, one.mechanism, one.iterations))
    results = [Message(user=name, error_code=error.value, error_message=error.name) for name, error in errors.items()]
    return [call.respond(results=results)]


ABSENT_HANDLERS: dict[str, Callable[[object, Call, Instant], list[Effect]]] = {
    "SaslHandshake": sasl_handshake,
    "SaslAuthenticate": sasl_authenticate,
    "DescribeAcls": describe_acls,
    "CreateAcls": create_acls,
    "DeleteAcls": delete_acls,
    "CreateDelegationToken": create_delegation_token,
    "RenewDelegationToken": change_delegation_token,
    "ExpireDelegationToken": change_delegation_token,
    "DescribeDelegationToken": describe_delegation_token,
    "AlterClientQuotas": alter_client_quotas,
    "AlterUserScramCredentials": alter_user_scram_credentials,
}
"""Those that brokers and controllers answer."""

OF_BROKERS: dict[str, Callable[[object, Call, Instant], list[Effect]]] = {
    "DescribeClientQuotas": describe_client_quotas,
    "DescribeUserScramCredentials": describe_user_scram_credentials,
}
"""Those that brokers alone answer."""
