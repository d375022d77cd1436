"""Adapters to engine internals: the only code that may touch the JVM behind Spark."""
