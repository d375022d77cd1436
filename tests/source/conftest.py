"""The broker for the tests of this folder; it starts when the first test asks for it."""

from tests.rig.kafka import broker

__all__ = ["broker"]
