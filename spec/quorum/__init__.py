"""The quorum of controllers: KRaft's Raft, by which voters agree on the metadata log.

A replica elects a leader with the others, and fetches from it. Read `replica` first (its state), then `elections` (votes and
time-outs), `leading`, `following`, `starting`. `requests` says what a replica would send. Rules in which releases differ are
fields of `QuorumProtocol`.
"""
