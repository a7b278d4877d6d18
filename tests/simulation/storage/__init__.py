"""What a simulated replica stores, and the records that it stores."""
