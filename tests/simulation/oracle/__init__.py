"""What each handler of release `next` has to return, written from the texts of the rules; no rule is called."""
