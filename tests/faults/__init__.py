"""Kill the run at any moment, look at the lake meanwhile, run again: the same tables."""
