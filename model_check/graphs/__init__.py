"""The whole state graph of a model: built, written to files, measured, drawn, and searched for fair cycles."""
