"""Debezium's and Connect's logical types: their form on the wire and their type in the lake."""
