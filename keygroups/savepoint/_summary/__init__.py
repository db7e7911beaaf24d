"""Summary of a savepoint: what each state of each operator holds."""
