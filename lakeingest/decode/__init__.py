"""Decode bytes to typed envelopes: JSON with and without schemas, logical types to Spark types."""
