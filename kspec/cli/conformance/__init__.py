"""`kspec conformance`: cases for any broker."""
