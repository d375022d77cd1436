"""What holds in the shop at every commit, asked of the database itself in one consistent read."""

from __future__ import annotations

from contextlib import closing

from tests.workloads.source import Source

_QUERIES = {
    "orders whose line_count is not the number of their lines": """
        SELECT count(*) FROM orders o WHERE o.line_count <>
        (SELECT count(*) FROM order_lines l WHERE l.order_id = o.id)""",
    "orders whose total_cents is not the worth of their lines": """
        SELECT count(*) FROM orders o WHERE o.total_cents <>
        (SELECT coalesce(sum(l.qty * l.price_cents), 0) FROM order_lines l
         WHERE l.order_id = o.id)""",
    "lines without an order": """
        SELECT count(*) FROM order_lines l
        WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE o.id = l.order_id)""",
    "customers whose spent_cents is not the sum of their orders": """
        SELECT count(*) FROM customers c WHERE c.spent_cents <>
        (SELECT coalesce(sum(o.total_cents), 0) FROM orders o WHERE o.customer_id = c.id)""",
    "orders without a customer": """
        SELECT count(*) FROM orders o
        WHERE NOT EXISTS (SELECT 1 FROM customers c WHERE c.id = o.customer_id)""",
    "cents between the ledger's revenue and the orders": """
        SELECT abs((SELECT sum(revenue_cents) FROM ledger)
                   - (SELECT coalesce(sum(total_cents), 0) FROM orders))""",
    "clients with a gap in txlog": """
        SELECT count(*) FROM (SELECT client FROM txlog GROUP BY client
                              HAVING count(*) <> max(seq) OR min(seq) <> 1) AS gaps""",
    "rows under a key that a swap uses for a moment": """
        SELECT (SELECT count(*) FROM customers WHERE id < 0)
               + (SELECT count(*) FROM documents WHERE id < 0)""",
}


def violations(source: Source) -> list[str]:
    """Return what does not hold now; nothing if all is well."""
    with closing(source.session()) as session:
        session.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        if source.family == "mariadb":
            session.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")
        found = {what: session.value(query) for what, query in _QUERIES.items()}
        session.rollback()
    return [f"{n} {what}" for what, n in found.items() if n]
