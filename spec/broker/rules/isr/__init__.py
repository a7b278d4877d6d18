"""The in-sync replicas as their leader sees them: membership, proposals, requests, answers, announcements."""
