"""The shop: every kind of change a source can make, with invariants that hold at every commit."""

from tests.workloads.shop.run import Schedule, Shop
from tests.workloads.shop.schema import CAPTURED, EXCLUDED, SIGNAL

__all__ = ["CAPTURED", "EXCLUDED", "SIGNAL", "Schedule", "Shop"]
