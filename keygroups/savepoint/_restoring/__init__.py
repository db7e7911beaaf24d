"""The work of `keygroups.savepoint.restoring`."""
