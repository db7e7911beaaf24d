"""Python counterparts of Java's values, their checks and hash codes; no key types."""
