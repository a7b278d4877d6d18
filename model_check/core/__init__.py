"""The definition of a model (slots, actions, properties, fairness), and the input and output of an engine."""
