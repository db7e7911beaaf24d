"""What the keyed state of a savepoint weighs and what a rescale does to it, as text and page."""
