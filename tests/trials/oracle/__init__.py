"""Expected results of each handler of release `next`, written from the texts of the rules; no rule is called."""
