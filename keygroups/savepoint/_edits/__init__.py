"""Edits of a savepoint: the verbs of its operators and states, and the tasks that apply them."""
