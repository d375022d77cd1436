"""The rig's parts for its own tests; each starts when the first test asks for it."""

from tests.rig.fixtures import broker, connect, mariadb, postgres, registry

__all__ = ["broker", "connect", "mariadb", "postgres", "registry"]
