"""Reading from one log: records, offsets of times and epochs, and what is deleted from its start."""
