"""What an entry of state looks like, in each format."""
