"""A broker as a member of a cluster: it registers, follows the metadata log, fetches from leaders, and asks for ISRs."""
