"""The state of PyFlink's jobs, which the header of a savepoint has as arrays of bytes."""
