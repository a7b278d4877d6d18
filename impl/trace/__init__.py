"""The record of what a broker did: each step of a handler of `spec` as a line of JSON, and the same steps run again."""
