"""Steps around orders: what the invariants speak of.

A step locks the order, or the customer, before it changes their sums, and changes sums by adding to
them. The ledger comes last, because all clients wait for its few rows.
"""

from __future__ import annotations

import json

from tests.workloads.crew import Transaction
from tests.workloads.shop.schema import LEDGERS
from tests.workloads.shop.step import Floor
from tests.workloads.shop.values import json_text, maybe, moment, odd_text


def new_order(tx: Transaction, floor: Floor) -> None:
    """An order of 1 to 5 lines."""
    (customer,) = floor.any_of(tx, "customers")
    _earn(tx, customer, _insert_order(tx, floor, floor.new_id(), customer))


def change_order(tx: Transaction, floor: Floor) -> None:
    """An order whose lines are changed, added and taken away."""
    order, customer, total = floor.any_of(tx, "orders", "id, customer_id, total_cents")
    lines = tx.session.rows("SELECT line_no FROM order_lines WHERE order_id = %s", order)
    chosen = tx.rng.choice(lines)[0]
    if len(lines) > 1 and tx.rng.random() < 0.4:
        tx.delete("DELETE FROM order_lines WHERE order_id = %s AND line_no = %s", order, chosen)
    else:
        tx.update(
            "UPDATE order_lines SET qty = qty + 1, price_cents = %s"
            " WHERE order_id = %s AND line_no = %s",
            tx.rng.randint(100, 99_999),
            order,
            chosen,
        )
    if tx.rng.random() < 0.5:
        _insert_line(tx, order, max(line[0] for line in lines) + 1)
    count, worth = tx.session.rows(
        "SELECT count(*), sum(qty * price_cents) FROM order_lines WHERE order_id = %s", order
    )[0]
    tx.update_one(
        "UPDATE orders SET status = 'changed', line_count = %s, total_cents = %s, amount = %s,"
        " note = %s WHERE id = %s",
        count,
        int(worth),
        _amount(int(worth)),
        maybe(tx.rng, odd_text(tx.rng)),
        order,
    )
    _earn(tx, customer, int(worth) - total)


def cancel_order(tx: Transaction, floor: Floor) -> None:
    """An order and its lines, gone."""
    order, customer, total = floor.any_of(tx, "orders", "id, customer_id, total_cents")
    tx.delete("DELETE FROM order_lines WHERE order_id = %s", order)
    tx.delete("DELETE FROM orders WHERE id = %s", order)
    _earn(tx, customer, -total)


def order_key(tx: Transaction, floor: Floor) -> None:
    """An order with a new key; its lines, whose key holds it, follow."""
    (order,) = floor.any_of(tx, "orders")
    new = floor.new_id()
    tx.update_one("UPDATE orders SET id = %s WHERE id = %s", new, order)
    moved = tx.update("UPDATE order_lines SET order_id = %s WHERE order_id = %s", new, order)
    tx.note("key change", 1 + moved)


def customer(tx: Transaction, floor: Floor) -> None:
    """One or two customers changed, or a new one."""
    if tx.rng.random() < 0.3:
        tx.insert(
            "INSERT INTO customers VALUES (%s, %s, %s, %s, 0, %s, %s, %s)",
            floor.new_id(),
            f"New {odd_text(tx.rng)}"[:60],
            maybe(tx.rng, odd_text(tx.rng)),
            maybe(tx.rng, tx.rng.randint(0, 9)),
            maybe(tx.rng, tx.rng.random() < 0.5),
            maybe(tx.rng, json_text(tx.rng)),
            maybe(tx.rng, instant(tx, floor)),
        )
    for key in floor.two_of(tx, "customers"):
        tx.update_one(
            "UPDATE customers SET email = %s, prefs = %s, updated_at = %s WHERE id = %s",
            odd_text(tx.rng),
            json_text(tx.rng),
            instant(tx, floor),
            key,
        )
    tx.note("odd string", 2)


def null_edges(tx: Transaction, floor: Floor) -> None:
    """Everything that may be NULL set to it, also where the column has a default; or back."""
    (key,) = floor.any_of(tx, "customers")
    tx.update_one(
        "UPDATE customers SET email = NULL, tier = NULL, active = NULL, prefs = NULL,"
        " updated_at = NULL WHERE id = %s",
        key,
    )
    if tx.rng.random() < 0.5:
        tx.update_one(
            "UPDATE customers SET email = '', tier = 0, active = %s, prefs = %s WHERE id = %s",
            False,
            json.dumps({}),
            key,
        )
    tx.note("null")


def customer_key(tx: Transaction, floor: Floor) -> None:
    """A customer with a new key; the orders follow."""
    (old,) = floor.any_of(tx, "customers")
    _rename(tx, old, floor.new_id())
    tx.note("key change")


def customer_swap(tx: Transaction, floor: Floor) -> None:
    """Two customers exchange their keys, by way of a third that is there for a moment."""
    one, other = floor.two_of(tx, "customers")
    for old, new in ((one, -one), (other, one), (-one, other)):
        _rename(tx, old, new)
    tx.note("key swap")


def long_order(tx: Transaction, floor: Floor) -> None:
    """A slow transaction: others begin and commit between its statements."""
    for _ in range(3):
        tx.insert("INSERT INTO carts VALUES (%s, %s, 1)", floor.new_id(), tx.client.number)
        floor.stopping.wait(tx.rng.uniform(0.02, 0.15))
    new_order(tx, floor)
    tx.note("long")


def savepoint(tx: Transaction, floor: Floor) -> None:
    """An order, changes that are rolled back to a savepoint, and another order."""
    new_order(tx, floor)
    before = tx.did.copy()
    tx.session.execute("SAVEPOINT here")
    new_order(tx, floor)
    tx.delete("DELETE FROM carts")
    tx.session.execute("ROLLBACK TO SAVEPOINT here")
    tx.did = before
    tx.note("savepoint rollback")


def rollback(tx: Transaction, floor: Floor) -> None:
    """Many changes, and then none."""
    new_order(tx, floor)
    tx.delete("DELETE FROM carts")
    floor_id = floor.new_id()
    tx.insert("INSERT INTO documents VALUES (%s, 0, 'never', %s, NULL)", floor_id, "x" * 5_000)


def add_channel(tx: Transaction, floor: Floor) -> None:
    """ALTER TABLE ADD COLUMN with a default, in the middle of everything; used by later ones.

    A row in the same transaction makes PostgreSQL's connector ask for the default before every
    session sees the ALTER: now and then it then knows of none, and no consumer can.
    """
    if not floor.altered.is_set():
        tx.session.execute("ALTER TABLE orders ADD COLUMN channel varchar(12) DEFAULT 'web'")
        tx.note("alter")


def instant(tx: Transaction, floor: Floor) -> str:
    """Return a time in UTC, as the database wants it written."""
    text = moment(tx.rng, 1971)
    return floor.source.pick(postgresql=f"{text}+00", mariadb=text)


def _insert_order(tx: Transaction, floor: Floor, order: int, customer: int) -> int:
    """Insert an order with its lines, and return its total."""
    count = tx.rng.randint(1, 5)
    total = sum(_insert_line(tx, order, number) for number in range(1, count + 1))
    columns = "id, customer_id, status, line_count, total_cents, amount, discount, placed_on,"
    tx.insert(
        f"INSERT INTO orders ({columns} placed_at, note)"
        " VALUES (%s, %s, 'new', %s, %s, %s, %s, %s, %s, %s)",
        order,
        customer,
        count,
        total,
        _amount(total),
        tx.rng.choice(("0.00", "99.99", "-1.50", None)),
        maybe(tx.rng, moment(tx.rng, 1905)[:10]),
        maybe(tx.rng, moment(tx.rng, 1905)),
        maybe(tx.rng, odd_text(tx.rng)),
    )
    if floor.altered.is_set() and tx.rng.random() < 0.5:
        tx.update("UPDATE orders SET channel = %s WHERE id = %s", "phone", order)
    return total


def _insert_line(tx: Transaction, order: int, number: int) -> int:
    """Insert a line and return what it is worth."""
    qty, price = tx.rng.randint(1, 9), tx.rng.randint(100, 99_999)
    sku = f"sku-{tx.rng.randint(1, 500)}"
    tx.insert("INSERT INTO order_lines VALUES (%s, %s, %s, %s, %s)", order, number, sku, qty, price)
    return qty * price


def _earn(tx: Transaction, customer: int, cents: int) -> None:
    """Add to what a customer spent, and to one of the ledgers."""
    tx.update_one(
        "UPDATE customers SET spent_cents = spent_cents + %s WHERE id = %s", cents, customer
    )
    tx.update_one(
        "UPDATE ledger SET revenue_cents = revenue_cents + %s, n = n + 1 WHERE id = %s",
        cents,
        tx.rng.randint(1, LEDGERS),
    )


def _rename(tx: Transaction, old: int, new: int) -> None:
    tx.update_one("UPDATE customers SET id = %s WHERE id = %s", new, old)
    tx.update("UPDATE orders SET customer_id = %s WHERE customer_id = %s", new, old)


def _amount(cents: int) -> str:
    return f"{cents // 100}.{cents % 100:02}"
