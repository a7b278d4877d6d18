"""A controller, by itself or in a broker's process: the metadata log, served to brokers, and the requests that change it.

A quorum of one. Standby controllers would stand here: they would fetch the log as brokers do (`fetching`), a quorum's rules
would be stated in `spec/`, and `dispatch` would answer with `spec.controller.state.refuse_as_inactive` while another leads.
"""
