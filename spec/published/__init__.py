"""The rules of the six published TLA+ models that differ from a broker's. No broker runs this code.

The models (`model_check/models/published/`) are steps over the same small rules that a broker runs: the fence of a request,
what a fetch is answered, the ISR with and without a replica, one step of truncation. This folder has the rest. A published
model has no time, a message and its answer are one step, and a leader learns a follower's log end at once. So its rules are
about larger steps. Each says in its docstring how it departs (**Departs:**) from the rule that a broker runs, and
`tests/spec/published/test_laws.py` says on which inputs the two agree.

`versions` has the models' rules as records, `mutants` the rules weakened by name. Kafka's own protocol is in `spec.broker`
and `spec.controller`.
"""
