"""What others are held against: Kafka's own processes, played against by the specification."""
