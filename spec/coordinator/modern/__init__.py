"""Consumer groups (KIP-848): the coordinator assigns, and members reconcile to it, each by itself."""
