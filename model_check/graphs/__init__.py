"""The whole state graph of a model: made, written to files, measured, drawn, and searched for fair cycles."""
