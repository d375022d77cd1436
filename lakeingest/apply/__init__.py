"""The half that acts: reads windows, applies batches to sinks, publishes them in the ledger."""
