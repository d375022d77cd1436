"""Refuse a lake or log that the configuration does not fit."""
