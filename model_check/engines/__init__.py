"""The engines that explore a model. They know no particular model. `explorer` gives them by name."""
