"""What two savepoints have in common, and what not."""
