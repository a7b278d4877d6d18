"""How claims are tried: each strategy proves any claim, or does not, within the same effort."""
