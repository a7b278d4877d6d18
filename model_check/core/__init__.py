"""What a model is (slots, actions, properties, fairness), what an engine is asked and what it answers."""
