"""Steps on small tables: truncates, rows that live for one transaction, giants, nothing at all."""

from __future__ import annotations

import json
import uuid

from tests.workloads.crew import Transaction
from tests.workloads.session import NothingToDoError
from tests.workloads.shop.orders import instant
from tests.workloads.shop.schema import CAPTURED, SIGNAL, insert_bulk
from tests.workloads.shop.step import Floor
from tests.workloads.shop.values import ODD, decimal, json_text, maybe, moment, odd_text, some


def cart(tx: Transaction, floor: Floor) -> None:
    """A cart, filled."""
    key = floor.new_id()
    tx.insert("INSERT INTO carts VALUES (%s, %s, 1)", key, tx.rng.randint(1, 300))
    tx.update("UPDATE carts SET items = items + %s WHERE id = %s", tx.rng.randint(1, 5), key)


def stock(tx: Transaction, floor: Floor) -> None:
    """Movements of stock."""
    for _ in range(tx.rng.randint(1, 4)):
        sku, delta = maybe(tx.rng, f"sku-{tx.rng.randint(1, 500)}"), tx.rng.randint(-9, 9)
        tx.insert("INSERT INTO stock_log VALUES (%s, %s, %s)", floor.new_id(), sku, delta)


def cart_truncate(tx: Transaction, floor: Floor) -> None:
    """One table emptied, and a row after it in the same transaction."""
    tx.session.execute("TRUNCATE TABLE carts")
    tx.note("truncate")
    cart(tx, floor)


def stock_truncate(tx: Transaction, _: Floor) -> None:
    """One table emptied."""
    tx.session.execute("TRUNCATE TABLE stock_log")
    tx.note("truncate")


def both_truncate(tx: Transaction, floor: Floor) -> None:
    """Two tables emptied by one statement, where there is such a statement."""
    if floor.source.family == "postgresql":
        tx.session.execute("TRUNCATE TABLE carts, stock_log")
        tx.note("truncate of several")
    else:
        tx.session.execute("TRUNCATE TABLE carts")
        tx.session.execute("TRUNCATE TABLE stock_log")
        tx.note("truncate", 2)


def ephemeral(tx: Transaction, floor: Floor) -> None:
    """Inserted, updated and deleted in one transaction."""
    _flash(tx, floor.new_id())
    tx.note("insert update delete")


def ephemeral_again(tx: Transaction, floor: Floor) -> None:
    """Inserted, updated, deleted and inserted again."""
    key = floor.new_id()
    _flash(tx, key)
    tx.insert("INSERT INTO carts VALUES (%s, NULL, 7)", key)
    tx.note("insert update delete insert")


def scratch_only(tx: Transaction, floor: Floor) -> None:
    """Only the table that is not captured."""
    tx.session.execute("INSERT INTO scratch VALUES (%s, 1)", floor.new_id())
    tx.note("excluded only")


def scratch_too(tx: Transaction, floor: Floor) -> None:
    """The table that is not captured, between changes of one that is."""
    cart(tx, floor)
    tx.session.execute("INSERT INTO scratch VALUES (%s, 2)", floor.new_id())
    cart(tx, floor)
    tx.note("excluded too")


def empty(tx: Transaction, _: Floor) -> None:
    """A transaction that changes nothing, though it tries."""
    tx.session.execute("DELETE FROM carts WHERE id = -1")
    tx.note("empty")


def read_only(tx: Transaction, _: Floor) -> None:
    """A transaction that only reads."""
    tx.session.rows("SELECT count(*) FROM customers")
    tx.note("read only")


def sample(tx: Transaction, floor: Floor) -> None:
    """A row of every type of column, with any value or NULL; changed, or deleted."""
    chance = tx.rng.random()
    if chance < 0.6:
        tx.insert(f"INSERT INTO samples VALUES ({', '.join(['%s'] * 17)})", *_values(tx, floor))
        return
    (key,) = floor.any_of(tx, "samples")
    if chance < 0.7:
        tx.delete("DELETE FROM samples WHERE id = %s", key)
        return
    values = _values(tx, floor)
    tx.update(
        "UPDATE samples SET exact = %s, flag = %s, raw = %s, token = %s, words = %s WHERE id = %s",
        *(values[at] for at in (5, 9, 10, 13, 14)),
        key,
    )


def giant_insert(tx: Transaction, floor: Floor) -> None:
    """Many rows in one transaction."""
    rows = floor.giant_rows
    tx.did["insert"] += insert_bulk(
        floor.source, tx.session, floor.new_bulk(rows), rows, batch=tx.client.next
    )
    tx.note("giant")


def giant_update(tx: Transaction, floor: Floor) -> None:
    """Half as many changed."""
    low, high = _half_of_bulk(tx, floor)
    tx.update("UPDATE bulk SET v = v + 1 WHERE id BETWEEN %s AND %s", low, high)
    tx.note("giant")


def giant_delete(tx: Transaction, floor: Floor) -> None:
    """Half as many deleted."""
    low, high = _half_of_bulk(tx, floor)
    tx.delete("DELETE FROM bulk WHERE id BETWEEN %s AND %s", low, high)
    tx.note("giant")


_SNAPSHOT_AGAIN = tuple(table for table in CAPTURED if table != "orders")
"""Not orders: a snapshot after its ALTER brings the new column's default for rows that nobody has
changed since, which the log does not tell of, and so no oracle that reads the log."""


def snapshot_signal(tx: Transaction, floor: Floor) -> None:
    """Ask the connector for an incremental snapshot of some tables while all goes on."""
    tables = tx.rng.sample(_SNAPSHOT_AGAIN, 2)
    data = {
        "data-collections": [f"{floor.source.namespace}.{table}" for table in tables],
        "type": "incremental",
    }
    tx.session.execute(
        f"INSERT INTO {SIGNAL} VALUES (%s, 'execute-snapshot', %s)",
        f"shop-{floor.new_id()}",
        json.dumps(data),
    )
    tx.note("signal")


def _flash(tx: Transaction, key: int) -> None:
    tx.insert("INSERT INTO carts VALUES (%s, NULL, 1)", key)
    tx.update("UPDATE carts SET items = 2 WHERE id = %s", key)
    tx.delete("DELETE FROM carts WHERE id = %s", key)


def _half_of_bulk(tx: Transaction, floor: Floor) -> tuple[int, int]:
    low = tx.session.value("SELECT min(id) FROM bulk")
    if low is None:
        raise NothingToDoError
    return low, low + floor.giant_rows // 2 - 1


def _values(tx: Transaction, floor: Floor) -> list[object]:
    """Return a row for samples; arrays are JSON text on MariaDB, which has none."""
    rng, source = tx.rng, floor.source
    words = some(rng, ODD, 3)
    numbers = some(rng, (0, 1, -1, 2**31 - 1, -(2**31)), 4)
    approx = rng.choice((0.0, -1.5, 1e-300, 1.7976931348623157e308, rng.random() * 10**6))
    lists = source.family == "postgresql"
    drawn: list[object] = [
        rng.choice((0, -32_768, 32_767)),
        rng.choice((0, -(2**31), 2**31 - 1)),
        approx,
        rng.randint(-(2**20), 2**20) / 4,
        decimal(rng, 20, 6),
        moment(rng, 1905)[:10],
        moment(rng, 1905),
        instant(tx, floor),
        rng.random() < 0.5,
        rng.randbytes(rng.randint(0, 64)),
        json_text(rng),
        json_text(rng),
        str(uuid.UUID(int=rng.getrandbits(128))),
        words if lists else json.dumps(words, ensure_ascii=False),
        numbers if lists else json.dumps(numbers),
        odd_text(rng) * 2,
    ]
    return [floor.new_id(), *(maybe(rng, value) for value in drawn)]
