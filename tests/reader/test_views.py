"""Which view shows which table."""

from __future__ import annotations

from lakeingest.reader.views import Views, view_names


def test_a_view_is_named_like_its_table_with_underscores() -> None:
    assert view_names(["public.order_lines", "public.orders"], "at_") == {
        "at_public_order_lines": "public.order_lines",
        "at_public_orders": "public.orders",
    }


def test_tables_whose_views_would_be_one_get_names_of_their_own() -> None:
    tables = ["app.log_x", "app_log.x", "public.ORDERS", "public.Orders", "public.orders"]
    names = view_names(tables)
    assert list(names.values()) == tables
    assert len({name.casefold() for name in names}) == len(tables)
    assert "app_log_x" not in names


def test_a_view_of_its_own_keeps_its_name_when_more_tables_arrive() -> None:
    few = view_names(["app.log_x", "app_log.x", "public.orders"])
    more = view_names(["app.log_x", "app_log.x", "public.orders", "a.b", "app.log.x"])
    assert set(few) < set(more)


def test_a_name_of_its_own_is_no_other_tables() -> None:
    (one, other) = view_names(["app.log_x", "app_log.x"])
    names = view_names(["app.log_x", "app_log.x", one])
    assert (names[one], names[other]) == (one, "app_log.x")
    assert len({name.casefold() for name in names}) == 3


def test_views_are_a_list_of_their_names_that_knows_the_tables() -> None:
    views = Views({"public_orders": "public.orders"})
    assert (views, views.tables) == (["public_orders"], {"public_orders": "public.orders"})
