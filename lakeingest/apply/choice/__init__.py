"""Change the tables of a pipeline outside a run: retire one, or load it anew."""
