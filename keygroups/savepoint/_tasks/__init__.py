"""Tasks for other machines: to read, to write, to verify."""
