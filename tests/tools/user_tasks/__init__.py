"""The tasks of a new user, a module for each subject; `asking` runs them."""
