"""Adapters to Delta's internals and log."""
