"""Hash codes of keys given as columns: the expressions under the adapter's functions."""
