"""Steps on wide rows: an update says nothing of a column out of line that it leaves untouched."""

from __future__ import annotations

from tests.workloads.crew import Transaction
from tests.workloads.session import NothingToDoError
from tests.workloads.shop.step import Floor
from tests.workloads.shop.values import long_text, maybe, odd_text

_INSERT = "INSERT INTO documents VALUES (%s, %s, %s, %s, %s)"


def doc_new(tx: Transaction, floor: Floor) -> None:
    """A new document."""
    _insert(tx, floor.new_id())


def doc_touch(tx: Transaction, floor: Floor) -> None:
    """A narrow column changed, the wide ones not."""
    (key,) = floor.any_of(tx, "documents")
    tx.update_one("UPDATE documents SET n = n + 1, title = %s WHERE id = %s", odd_text(tx.rng), key)
    tx.note("unchanged toast")


def doc_body(tx: Transaction, floor: Floor) -> None:
    """One wide column changed, the other not; it may become short, or NULL."""
    (key,) = floor.any_of(tx, "documents")
    body = tx.rng.choice((long_text(tx.rng), odd_text(tx.rng), None))
    tx.update_one("UPDATE documents SET n = n + 1, body = %s WHERE id = %s", body, key)


def doc_key(tx: Transaction, floor: Floor) -> None:
    """A new key and nothing else: the row appears under it without its wide columns."""
    (key,) = floor.any_of(tx, "documents")
    tx.update_one("UPDATE documents SET id = %s WHERE id = %s", floor.new_id(), key)
    tx.note("key change")
    tx.note("unchanged toast in key change")


def doc_swap(tx: Transaction, floor: Floor) -> None:
    """Two documents exchange their keys, wide columns untouched."""
    one, other = floor.two_of(tx, "documents")
    for old, new in ((one, -one), (other, one), (-one, other)):
        tx.update_one("UPDATE documents SET id = %s WHERE id = %s", new, old)
    tx.note("key swap")
    tx.note("unchanged toast in key change", 3)


def doc_fresh(tx: Transaction, floor: Floor) -> None:
    """Inserted and touched in one transaction: the value is nowhere but in the same one."""
    key = floor.new_id()
    _insert(tx, key)
    tx.update_one("UPDATE documents SET n = n + 1 WHERE id = %s", key)
    tx.note("unchanged toast of same transaction")


def doc_fresh_key(tx: Transaction, floor: Floor) -> None:
    """Inserted, given another key, and touched, all in one transaction."""
    key, new = floor.new_id(), floor.new_id()
    _insert(tx, key)
    tx.update_one("UPDATE documents SET id = %s WHERE id = %s", new, key)
    tx.update_one("UPDATE documents SET n = n + 1 WHERE id = %s", new)
    tx.note("key change")
    tx.note("unchanged toast in key change")
    tx.note("unchanged toast of same transaction")


def doc_gone(tx: Transaction, floor: Floor) -> None:
    """A document deleted; its key may be used again by a later transaction."""
    (key,) = floor.any_of(tx, "documents")
    tx.delete("DELETE FROM documents WHERE id = %s", key)
    # Should this not be committed, whoever takes the key again meets a conflict, or inserts it.
    floor.deleted.append(key)


def doc_again(tx: Transaction, floor: Floor) -> None:
    """The key of a document that an earlier transaction deleted, used again."""
    try:
        key = floor.deleted.popleft()
    except IndexError as error:
        raise NothingToDoError from error
    if tx.session.row("SELECT 1 FROM documents WHERE id = %s", key):
        raise NothingToDoError
    _insert(tx, key)
    tx.note("key used again")


def doc_reborn(tx: Transaction, floor: Floor) -> None:
    """Deleted and inserted again in one transaction."""
    (key,) = floor.any_of(tx, "documents")
    tx.delete("DELETE FROM documents WHERE id = %s", key)
    _insert(tx, key)
    tx.note("delete and insert")


def _insert(tx: Transaction, key: int) -> None:
    extra = maybe(tx.rng, long_text(tx.rng))
    tx.insert(_INSERT, key, tx.rng.randint(0, 9), odd_text(tx.rng), long_text(tx.rng), extra)
