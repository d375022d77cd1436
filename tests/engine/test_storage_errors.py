"""What failures of a storage become; each is thrown by Hadoop or Java in a real JVM."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from lakeingest.engine.delta.log import commit_name
from lakeingest.engine.storage_errors import storage, storage_error
from lakeingest.errors import AccessError, ConfigError, TransientError, UnavailableError
from tests.delta_log import forget_log
from tests.engine.web_storage import closed_storage, refusing_storage

LAKE = "s3a://lake/shop"


def test_a_refusal_in_the_driver_and_in_a_task_is_an_access_error(spark: SparkSession) -> None:
    for listed in (False, True):
        with refusing_storage(listed=listed) as root:
            refused = pytest.raises(AccessError, match=f"'{root}/lake' refused access")
            with refused as raised, storage(f"{root}/lake"):
                spark.read.text(f"{root}/lake/part.txt").count()
            assert "hadoop.security.AccessControlException" in str(raised.value)
            assert "hunter2" not in str(raised.value)


@pytest.mark.parametrize(
    ("place", "cause"),
    [
        (closed_storage, "java.net.ConnectException"),
        (lambda: "webhdfs://no-such-host.invalid", "java.net.UnknownHostException"),
    ],
    ids=["nobody listens", "no such host"],
)
def test_a_storage_that_is_not_there_is_unavailable(
    spark: SparkSession, place: Callable[[], str], cause: str
) -> None:
    root = place()
    unavailable = pytest.raises(UnavailableError, match=f"'{root}' cannot be reached .*{cause}")
    with unavailable, storage(root):
        spark.read.text(f"{root}/lake/part.txt").count()


@pytest.mark.parametrize("path", ["s3a://lake/shop", "nosuch://lake/shop"])
def test_a_scheme_that_spark_cannot_read_says_which_jars_are_missing(
    spark: SparkSession, path: str
) -> None:
    refused = pytest.raises(ConfigError, match=f"no file system for '{path}'.*jars.packages")
    with refused, storage(path):
        spark.read.text(path).count()


def test_a_log_whose_listing_lacks_an_entry_is_to_be_read_again(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = tmp_path / "table"
    for _ in range(3):
        spark.range(1).write.format("delta").mode("append").save(str(table))
    (table / "_delta_log" / commit_name(1)).rename(tmp_path / "later.json")
    forget_log(spark, table)
    with (
        pytest.raises(TransientError, match=f"below '{tmp_path}' .*without entry 1,"),
        storage(str(tmp_path)),
    ):
        spark.read.format("delta").load(str(table)).count()


def test_the_folder_that_the_exception_names_is_named(spark: SparkSession) -> None:
    error = thrown(spark, "java.nio.file.AccessDeniedException", f"{LAKE}/orders: 403")
    assert f"'{LAKE}'" in str(storage_error(error, "s3a://other/lake", LAKE))


def test_a_refusal_is_found_below_what_spark_wraps_it_in(spark: SparkSession) -> None:
    name, text = "java.nio.file.AccessDeniedException", "s3a://lake/k: getFileStatus"
    wrapped = thrown(spark, "org.apache.spark.SparkException", "Job aborted", name, text)
    assert isinstance(storage_error(wrapped, LAKE), AccessError)


@pytest.mark.parametrize("root", ["/lake/shop", "/lake/shop/", "file:///lake/shop"])
def test_a_file_that_may_not_be_read_is_the_storages_only_where_it_lies_there(
    spark: SparkSession, root: str
) -> None:
    for path, refused in (
        ("/lake/shop/part-0.parquet", True),
        ("/lake/shop-2/part-0.parquet", False),
        ("/etc/client.jks", False),
    ):
        name, text = "java.io.FileNotFoundException", f"{path} (Permission denied)"
        error = thrown(spark, "org.apache.spark.SparkException", "Job aborted", name, text)
        own_error = storage_error(error, "/other", root)
        assert isinstance(own_error, AccessError) is refused
        assert own_error is None or f"'{root}'" in str(own_error)


@pytest.mark.parametrize(
    "text",
    [
        "row: java.nio.file.AccessDeniedException, Status Code: 403, (Permission denied)",
        "Caused by: java.net.ConnectException: Connection refused",
    ],
)
def test_words_in_a_row_are_not_taken_for_a_failure_of_the_storage(
    spark: SparkSession, text: str
) -> None:
    assert storage_error(thrown(spark, "java.lang.RuntimeException", text), LAKE) is None
    with pytest.raises(Py4JJavaError), storage(LAKE):
        raise thrown(spark, "java.lang.RuntimeException", text)


def test_a_broker_that_is_away_is_not_the_storage(spark: SparkSession) -> None:
    kafka = "org.apache.kafka.common.KafkaException"
    error = thrown(spark, kafka, "no broker", "java.net.ConnectException", "refused")
    assert storage_error(error, LAKE) is None


def test_a_node_of_spark_that_is_away_is_not_the_storage(spark: SparkSession) -> None:
    jvm: Any = spark._jvm
    group = jvm.io.netty.channel.nio.NioEventLoopGroup(1)
    channel = jvm.java.lang.Class.forName("io.netty.channel.socket.nio.NioSocketChannel")
    handler = jvm.io.netty.channel.ChannelInboundHandlerAdapter()
    node = jvm.io.netty.bootstrap.Bootstrap().group(group).channel(channel).handler(handler)
    port = int(closed_storage().rpartition(":")[2])
    cause = getattr(node.connect("127.0.0.1", port), "await")().cause()
    group.shutdownGracefully()
    assert cause.getClass().getSuperclass().getName() == "java.net.ConnectException"
    assert storage_error(Py4JJavaError("An error occurred", cause), LAKE) is None


def thrown(
    spark: SparkSession, name: str, text: str, cause: str | None = None, because: str = ""
) -> Exception:
    """Return a Java exception as it comes out of a call of the JVM."""
    jvm: Any = spark._jvm

    def made(of: str, *arguments: object) -> Any:
        return reduce(getattr, of.split("."), jvm)(*arguments)

    java = made(name, text) if cause is None else made(name, text, made(cause, because))
    error: Exception = Py4JJavaError("An error occurred", java)
    return error
