"""What the six published TLA+ models do and a broker does otherwise. No broker runs anything in here.

The models (`model_check/models/published/`) are steps over the same small rules that a broker runs: the fence of a request,
what a fetch is answered, the ISR with and without a replica, one step of truncation. This room has the rest. In a published
model there is no time, a message and its answer are one step, and a leader learns a follower's log end at once. So its rules
are about larger steps. Each says in its docstring how it departs (**Departs:**) from the rule that a broker runs, and
`tests/spec/published/test_laws.py` says on which inputs the two agree.

`versions` has the models' rules as records, `mutants` the rules weakened by name. Who looks for Kafka's protocol reads
`spec.broker` and `spec.controller`.
"""
