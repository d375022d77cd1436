"""A session that lakeingest itself opened without Hudi, and a lake of Hudi tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.session.test_session import run_in

pytestmark = [pytest.mark.slow, pytest.mark.soak]

PROGRAM = """
import sys
from pathlib import Path

import lakeingest
from lakeingest.demo import demo_folder
from lakeingest.errors import ConfigError

recording, lake = demo_folder(), Path(sys.argv[1])
spark = lakeingest.session(cores=2)
settings = [
    "lakeingest.source.path=%s" % recording,
    "lakeingest.source.topics=t1.public.carts",
    "lakeingest.target.path=%s" % lake,
]
config = recording / "pipeline.properties"
hudi = "lakeingest.table.public.carts.format=hudi"
try:
    lakeingest.run(spark, lakeingest.load_config(config, [*settings, hudi]))
except ConfigError as error:
    print("write:", error)
assert not lake.exists()
lakeingest.run(spark, lakeingest.load_config(config, settings), max_batches=1)
table = lake / "public.carts"
(table / ".hoodie").mkdir(parents=True, exist_ok=True)
(table / ".hoodie" / "hoodie.properties").write_text("hoodie.table.name=carts")
try:
    lakeingest.open(spark, str(lake)).snapshot().table("public.carts")
except ConfigError as error:
    print("read:", error)
spark.stop()
"""


def test_writing_and_reading_hudi_tables_says_what_is_missing_and_how_to_have_it(
    tmp_path: Path,
) -> None:
    write, read = run_in(tmp_path, PROGRAM, str(tmp_path / "lake")).stdout.splitlines()
    for said in (write, read):
        assert "the Hudi bundle on its class path" in said
        assert "open one by lakeingest.session(hudi=True). A command" in said
        assert said.endswith(".format=hudi to the command")
    assert write.startswith("write: the running Spark session is not made for Hudi tables")
    assert "spark.serializer=org.apache.spark.serializer.KryoSerializer" in write
    assert "HoodieSparkSessionExtension" in write
    assert "spark.serializer" not in read
