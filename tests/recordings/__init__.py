"""Oracle 2 and 3: recorded runs of real Debezium against the real database's own truth."""
