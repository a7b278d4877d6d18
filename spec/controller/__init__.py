"""The KRaft controller: its state, its handlers, its decisions, and the rules in which releases differ."""
