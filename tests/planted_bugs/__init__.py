"""Small bugs, planted one at a time into the rules of `spec`, to see which property or test notices: docs/planted-bugs.md."""
