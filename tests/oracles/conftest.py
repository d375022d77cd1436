"""The databases under the oracles, from the rig."""

from tests.rig.fixtures import mariadb, postgres

__all__ = ["mariadb", "postgres"]
