"""Adopt tables that another writer made, at a source commit."""
