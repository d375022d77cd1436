"""Adapters to Hudi's client and timeline."""
