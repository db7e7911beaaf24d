"""What may be edited in a savepoint: its operators and their states."""
