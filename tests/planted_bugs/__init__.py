"""Small bugs, planted one at a time into the rules of `spec`, to see what notices them: docs/planted-bugs.md."""
