"""Reports of a savepoint's keyed state, its weight and a rescale of it, as text and page."""
