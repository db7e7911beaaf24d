"""What is sent to another machine: to read, to write, to verify."""
