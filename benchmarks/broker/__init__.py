"""What a broker costs."""
