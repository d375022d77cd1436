"""Open the ledger and the sinks of a pipeline, as its configuration says."""

from __future__ import annotations

from pyspark.sql import SparkSession

from lakeingest.config.model import PipelineConfig
from lakeingest.decode.encodings import Encodings
from lakeingest.engine.delta.log_store import fences, log_store_of
from lakeingest.errors import ConfigError
from lakeingest.ledger.delta import DeltaLedger
from lakeingest.session import require_hudi
from lakeingest.sink.contract import Sink
from lakeingest.sink.delta.sink import DeltaSink
from lakeingest.sink.hudi.adopt import HudiAdoption
from lakeingest.sink.hudi.adopted_table import Placeholders
from lakeingest.sink.hudi.options import HudiSettings, TableType
from lakeingest.sink.hudi.sink import HudiSink
from lakeingest.sink.routed import RoutedSink
from lakeingest.sink.settings import SinkSettings


def open_ledger(spark: SparkSession, config: PipelineConfig, run: str) -> DeltaLedger:
    """Return the ledger. It is a Delta table for every table format.

    A publication must be fenced. Hudi's timeline has no compare-and-set, so a revived driver could
    publish in it.
    """
    return DeltaLedger(
        spark,
        config.folders.ledger,
        config.name,
        run,
        direct=config.target.delta_commit == "direct",
        transaction_topic=config.source.transaction_topic,
    )


def refuse_unfenced(spark: SparkSession, config: PipelineConfig) -> tuple[str, ...]:
    """Stop where two drivers could commit the same version of the ledger or of a Delta table.

    Hudi's timeline never shows it (``sink/hudi/commit.py``); the ledger does for Hudi tables.

    Returns:
        The same findings as warnings, if the user guarantees that there is one driver.

    Raises:
        ConfigError: The user gives no such guarantee.
    """
    delta = (name for name in config.tables if config.format_of(name) == "delta")
    folders = (config.target.path, *(config.folders.table(name) for name in delta))
    folder_by_store = {log_store_of(spark, folder): folder for folder in reversed(folders)}
    warnings = []
    for (scheme, store), folder in folder_by_store.items():
        if fences(scheme, store):
            continue
        what = (
            f"Nothing fences a second driver at '{folder}': there Delta's log store {store} knows "
            "the writers of its own process alone, or relies on what the file system does not do, "
            "so of two runs at a time one could replace what the other committed."
        )
        if config.target.single_writer != "guaranteed":
            message = (
                f"{what} Nothing was written. Set spark.delta.logStore.{scheme}.impl to a store "
                "that fences, on S3 io.delta.storage.S3DynamoDBLogStore (its jar is "
                "delta-storage-s3-dynamodb), for every writer of this lake: in spark-defaults.conf "
                "or in lakeingest.session(extra=…). Or, if you make sure that two runs never "
                "overlap, set lakeingest.single.writer=guaranteed."
            )
            raise ConfigError(message)
        warnings.append(f"{what} lakeingest.single.writer=guaranteed says that you see to it.")
    return tuple(warnings)


def storage_of(config: PipelineConfig) -> tuple[str, ...]:
    """Return the folders of a pipeline: the lake's, and the recording's where there is one."""
    recording = config.source.path if config.source.kind == "recorded" else None
    return (config.target.path, recording) if recording else (config.target.path,)


def open_sink(spark: SparkSession, config: PipelineConfig) -> Sink:
    """Return the sink that writes the tables, whatever their formats.

    A note that a table's own log has lost is read from the ledger.

    Raises:
        ConfigError: A table is a Hudi table, and the session is not made for Hudi.
    """
    delta = DeltaSink(
        spark,
        _settings(spark, config, "delta"),
        direct=config.target.delta_commit == "direct",
        deletion_vectors=config.target.delta_deletion_vectors,
    )
    if config.formats() == {"delta"}:
        return delta
    hudi = _open_hudi(spark, config)
    return RoutedSink({"delta": delta, "hudi": hudi}, config.format_of)


def _open_hudi(spark: SparkSession, config: PipelineConfig) -> HudiSink:
    require_hudi(spark, write=True)
    table_type = TableType(config.target.hudi_table_type)
    hudi = HudiSettings(table_type, config.target.hudi_writer_options())
    return HudiSink(spark, _settings(spark, config, "hudi"), hudi)


def _settings(spark: SparkSession, config: PipelineConfig, table_format: str) -> SinkSettings:
    return SinkSettings(
        folders=config.folders,
        pipeline=config.name,
        names=config.metadata(),
        hard=config.deletes_are_hard(table_format),
        null_missing=config.toast_missing == "null",
        foreign=config.foreign_changes == "accept",
        notes=open_ledger(spark, config, "").notes,
    )


def open_adoption(spark: SparkSession, config: PipelineConfig) -> HudiAdoption:
    """Return the adoption, which takes over tables that Hudi Streamer wrote."""
    encodings = Encodings(placeholder=config.unavailable_placeholder)
    placeholders = Placeholders(encodings.text_marks(), encodings.placeholder_bytes())
    return HudiAdoption(spark, _open_hudi(spark, config), placeholders)
