"""Writers of new savepoints, and of old ones with edits: the work of `SavepointWriter`."""
