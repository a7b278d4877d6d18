"""The handlers of a partition's leader; a follower also runs the handlers that only look something up."""
