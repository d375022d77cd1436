"""The whole way with real parts: database, Debezium, broker, registry, ingest, lake, checkers."""
