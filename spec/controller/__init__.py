"""The KRaft controller: its state, its handlers, what it decides, and the rules that releases differ in."""
