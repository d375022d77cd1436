"""The ledger: the table of publications and transactions, and the writer's claim."""
