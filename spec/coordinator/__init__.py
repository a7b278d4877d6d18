"""The group coordinator: the classic protocol of consumer groups, and the offsets that groups commit."""
