from __future__ import annotations

import pytest

from tests.oracles.binlog import Columns, Group, groups
from tests.oracles.changes import Change, Field

TABLES: dict[str, Columns] = {
    "t": [("id", "sum"), ("name", "crc"), ("amount", None)],
    "u": [("id", "sum")],
}
BEGIN = rb"#261122 10:38:14 server id 1  end_log_pos 805 CRC32 0xb6d95d08 	GTID 0-1-3 trans"
END = rb"#261122 10:38:14 server id 1  end_log_pos 1715 CRC32 0xfee13f53 	Xid = 12"
DDL = rb"#261122 10:38:14 server id 1  end_log_pos 900 CRC32 0x3bcce813 	GTID 0-1-8 ddl"
QUERY = rb"#261122 10:38:14 server id 1  end_log_pos 999 CRC32 0x13e3f9c1 	Query	xid=0"
COMMIT = rb"COMMIT/*!*/;"


def read(*lines: bytes) -> list[Group]:
    return list(groups([line + b"\n" for line in lines], "shop", TABLES))


def test_a_row_has_names_and_kinds_by_the_numbers_of_its_columns() -> None:
    (group,) = read(
        BEGIN,
        b"### UPDATE `shop`.`t`",
        b"### WHERE",
        b"###   @1=-3 (18446744073709551613) /* LONGINT meta=0 nullable=0 is_null=0 */",
        rb"###   @2='it's \ \x0a /* INT meta=0 nullable=1 is_null=1 */'"
        rb" /* VARSTRING(800) meta=800 nullable=1 is_null=0 */",
        b"### SET",
        b"###   @1=7 /* LONGINT meta=0 nullable=0 is_null=0 */",
        b"###   @2=NULL /* VARSTRING(800) meta=800 nullable=1 is_null=1 */",
        b"###   @3=1.50 /* DECIMAL(12,2) meta=3074 nullable=1 is_null=0 */",
        b"# Number of rows: 1",
        END,
        COMMIT,
    )
    text = "it's \\ \n /* INT meta=0 nullable=1 is_null=1 */"
    assert group == Group(
        "0-1-3",
        1715,
        touched=True,
        changes=[
            Change(
                "update",
                "t",
                before={"id": Field("sum", "-3"), "name": Field("crc", text)},
                after={
                    "id": Field("sum", "7"),
                    "name": Field("crc", None),
                    "amount": Field(None, ""),
                },
            )
        ],
    )


def test_rows_of_other_tables_and_databases_are_left_out_but_the_commit_is_told() -> None:
    row = [b"### SET", b"###   @1=7 /* INT meta=0 nullable=0 is_null=0 */"]
    scratch = [BEGIN, b"### INSERT INTO `shop`.`scratch`", *row, END, COMMIT]
    foreign = [BEGIN, b"### INSERT INTO `other`.`t`", *row, END, COMMIT]
    one, two = read(*scratch, *foreign)
    assert (one.touched, one.changes) == (True, [])
    assert (two.touched, two.changes) == (False, [])


def test_each_row_of_a_statement_is_a_change() -> None:
    def row(number: int) -> list[bytes]:
        value = f"###   @1={number} /* INT meta=0 nullable=0 is_null=0 */"
        return [b"### DELETE FROM `shop`.`u`", b"### WHERE", value.encode()]

    (group,) = read(BEGIN, *row(1), *row(2), b"# Number of rows: 2", END, COMMIT)
    assert [change.before["id"].value for change in group.changes] == ["1", "2"]


def test_a_truncate_is_a_commit_and_other_ddl_is_none() -> None:
    alter = [DDL, QUERY, b"use `shop`/*!*/;", b"ALTER TABLE t ADD COLUMN z int", b"/*!*/;"]
    (group,) = read(*alter, DDL, QUERY, b"TRUNCATE TABLE u", b"/*!*/;")
    assert group == Group("0-1-8", 999, touched=True, changes=[Change("truncate", "u")])


def test_a_group_without_its_end_is_not_told() -> None:
    row = [b"### SET", b"###   @1=7 /* INT meta=0 nullable=0 is_null=0 */"]
    assert read(BEGIN, b"### INSERT INTO `shop`.`u`", *row) == []


def test_what_the_program_never_prints_is_refused() -> None:
    with pytest.raises(ValueError, match="not a line of mariadb-binlog"):
        read(BEGIN, b"### INSERT INTO `shop`.`u`", b"### SET", b"###   rubbish")
