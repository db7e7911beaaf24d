"""Python values as Java has them; no key types."""
