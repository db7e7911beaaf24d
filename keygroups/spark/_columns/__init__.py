"""From the columns of a key to its hash code: what the functions of the adapter stand on."""
