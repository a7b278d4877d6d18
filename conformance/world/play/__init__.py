"""The play: who plays whom, what is said, what is written, what is seen, and whether it is what the model says."""
