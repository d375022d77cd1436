"""Look at a pipeline without changing it: status, validate, explain."""
