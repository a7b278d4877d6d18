"""The controller's rules for topics: names, creation, placement of replicas, deletion, settings, producer ids."""
