"""Tasks for other machines: parts of keyed state to be read."""
