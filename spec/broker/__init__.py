"""The protocol of a broker: a partition's state, its handlers by role, and the rules that they call, by subject.

Start with `partition` (the state) and `leader` or `follower` (the handlers). `protocol` lists the rules in which releases
differ.
"""
