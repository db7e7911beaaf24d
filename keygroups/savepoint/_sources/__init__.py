"""Where the sources of a job go on: their splits and what assigns them."""
