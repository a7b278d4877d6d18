"""Small bugs that operators plant, one at a time, into the rules of `spec`, and what notices them: docs/planted-bugs.md."""
