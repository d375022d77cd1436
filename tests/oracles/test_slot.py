from __future__ import annotations

import pytest

from tests.oracles.changes import UNCHANGED, Change, Field
from tests.oracles.slot import lsn_number, parse_line


def test_an_insert_has_every_value_with_its_kind() -> None:
    line = (
        "table public.t: INSERT: id[bigint]:-7 name[character varying]:'it''s [x]:''y'' old-key: '"
        ' "odd "" name"[text]:null ok[boolean]:true tags[text[]]:\'{a,"b c"}\''
        " at[timestamp without time zone]:'2026-01-02 03:04:05' amount[numeric]:1.50"
    )
    (change,) = parse_line(line, "public")
    assert change == Change(
        "insert",
        "t",
        after={
            "id": Field("sum", "-7"),
            "name": Field("crc", "it's [x]:'y' old-key: "),
            'odd " name': Field("crc", None),
            "ok": Field("bool", "true"),
            "tags": Field(None, '{a,"b c"}'),
            "at": Field(None, "2026-01-02 03:04:05"),
            "amount": Field(None, "1.50"),
        },
    )


def test_an_update_of_a_key_has_the_old_one_and_no_value_that_was_not_logged() -> None:
    line = (
        "table public.t: UPDATE: old-key: id[bigint]:1"
        " new-tuple: id[bigint]:2 body[text]:unchanged-toast-datum"
    )
    (change,) = parse_line(line, "public")
    assert change.before == {"id": Field("sum", "1")}
    assert change.after == {"id": Field("sum", "2"), "body": Field("crc", UNCHANGED)}


def test_a_text_may_look_like_the_plugins_own_words() -> None:
    (change,) = parse_line("table public.t: UPDATE: b[text]:' new-tuple: x'", "public")
    assert change.after == {"b": Field("crc", " new-tuple: x")}


def test_a_truncate_of_several_tables_is_a_change_of_each() -> None:
    changes = parse_line("table public.a, other.b, public.c: TRUNCATE: (no-flags)", "public")
    assert changes == [Change("truncate", "a"), Change("truncate", "c")]


def test_lines_break_inside_a_value() -> None:
    (change,) = parse_line("table public.t: DELETE: id[text]:'a\nb\r\nc'", "public")
    assert change.before == {"id": Field("crc", "a\nb\r\nc")}


def test_what_the_plugin_never_prints_is_refused() -> None:
    with pytest.raises(ValueError, match="not columns"):
        parse_line("table public.t: INSERT: id[bigint]:1 rubbish", "public")


def test_positions_are_numbers_as_debezium_has_them() -> None:
    assert lsn_number("0/9660D08") == 157_682_952
    assert lsn_number("1/0") == 1 << 32
