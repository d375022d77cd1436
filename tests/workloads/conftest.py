"""The databases under the workloads, from the rig."""

from tests.rig.fixtures import mariadb, postgres

__all__ = ["mariadb", "postgres"]
