"""``python -m tests.vectors``: which orders of arrival Hudi's own payload classes get wrong."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from lakeingest.session import session
from tests.vectors import own_payload
from tests.vectors.arrival import BINLOG, POSTGRESQL
from tests.vectors.judged import wrong

_CASES = ((own_payload.POSTGRESQL, POSTGRESQL), (own_payload.MYSQL, BINLOG))


def main() -> None:
    """Print each case that comes out wrong, by table type."""
    spark = session("vectors", cores=2, hudi=True)
    with tempfile.TemporaryDirectory(prefix="lakeingest-vectors-") as folder:
        for table_type in ("COPY_ON_WRITE", "MERGE_ON_READ"):
            for payload, vectors in _CASES:
                path = Path(folder) / f"{table_type}-{payload.name}"
                rows = own_payload.rows_of(spark, path, payload, table_type, vectors)
                differing = wrong(rows, vectors)
                sys.stdout.write(
                    f"{payload.name}, {table_type}: {len(differing)} of {len(vectors)} wrong\n"
                )
                sys.stdout.writelines(f"  {line}\n" for line in differing)
    spark.stop()


if __name__ == "__main__":
    main()
