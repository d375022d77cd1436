"""Options of Spark's JSON reader: no bound on the length of a text or a number.

Jackson refuses texts above 20,000,000 characters and numbers above 1,000 digits, to protect
services from strangers' requests. A column may hold both: PostgreSQL's text has up to a gigabyte,
its numeric 147,455 digits. Spark passes these options to Jackson (``JSONOptions``, Spark 3.5 and
4). Its functions that take a path (``get_json_object``, ``json_object_keys``) take no options and
give NULL, so they are not used on rows.
"""

from __future__ import annotations

ANY_LENGTH = {"maxStringLen": str(2**31 - 1), "maxNumLen": str(2**31 - 1)}
"""Spark holds a text in one array, so 2 GiB bound it in any case."""
