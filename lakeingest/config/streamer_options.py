"""Define each option of Hudi's streamer: its meaning in lakeingest, or why it has none.

The table holds all options of ``HoodieStreamer`` in Hudi 1.2. So a user can keep a command as it
is, and lakeingest can tell a misspelt option from an unnecessary one. An option that stands for a
setting is read as that setting. Any other option is refused if it would change the table's content.
If it would not, lakeingest warns about it, once for each reason.
"""

from __future__ import annotations

from dataclasses import dataclass

from lakeingest.config import hudi_keys
from lakeingest.config.hudi_keys import HudiKey


@dataclass(frozen=True)
class Option:
    """An option of the command.

    Attributes:
        names: The option's names, the current one first.
        value: The name of its value in the help; ``None``: the option has no value.
        said: The option's effect in lakeingest, for the help.
        key: The setting for which the option stands.
        idle: Why the option has no effect in lakeingest; ``None``: it has one.
        refused: Why lakeingest cannot follow the option, and the remedy; ``None``: it can.
        usual: Values (a class without its package) that lakeingest follows anyway: no message.
    """

    names: tuple[str, ...]
    value: str | None
    said: str
    key: HudiKey | None = None
    idle: str | None = None
    refused: str | None = None
    usual: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The option's current name."""
        return self.names[0]


def _means(key: HudiKey, value: str, help_text: str, *names: str) -> Option:
    return Option(names, value, help_text, key=key)


def _idle(
    reason: str, *names: str, value: str | None = None, usual: tuple[str, ...] = ()
) -> Option:
    return Option(names, value, reason, idle=reason, usual=usual)


def _refused(
    reason: str, *names: str, value: str | None = None, usual: tuple[str, ...] = ()
) -> Option:
    return Option(names, value, reason, refused=reason, usual=usual)


PROPS = Option(("--props",), "FILE", "Settings; a local path or file: URI.")
CONF = Option(("--hoodie-conf",), "KEY=VALUE", "Replaces a setting of the file. Repeatable.")
CONTINUOUS = Option(("--continuous",), None, "Go on as new events arrive, until stopped.")
INTERVAL = Option(
    ("--min-sync-interval-seconds",), "N", "Seconds from one batch's start to the next, at least."
)
MASTER = Option(("--spark-master",), "URL", "Spark master, where no session is there yet.")
APP_NAME = Option(("--spark-app-name",), "NAME", "Name that a new Spark session shows.")
CHECKPOINT = Option(("--checkpoint",), "TEXT", "Where the adopted table stands; else refused.")

BASE_PATH = _means(
    hudi_keys.BASE_PATH, "PATH", "Folder of the table; the ledger lies in it.", "--target-base-path"
)
TABLE = _means(hudi_keys.TABLE_NAME, "NAME", "Name of the pipeline.", "--target-table")
TABLE_TYPE = _means(hudi_keys.TABLE_TYPE, "TYPE", "COPY_ON_WRITE or MERGE_ON_READ.", "--table-type")

_SYNC = "lakeingest registers the table in no catalog: create it there once, at its path"
_SERVICES = "compaction and clustering are as the settings hoodie.compact.* and the like say"
_SHARES = "one run writes its tables side by side, without shares of the cluster"
_AGAIN = "a service that is away is asked again anyway"
_CLASSES = "there is no such class here"
_BOOTSTRAP = (
    "a table is loaded from Debezium's own snapshot in the topic, not from files; remove it"
)
_WHERE = "where reading goes on is in the ledger, in the commit of the data; remove it"

OPTIONS: tuple[Option, ...] = (
    PROPS,
    CONF,
    BASE_PATH,
    TABLE,
    TABLE_TYPE,
    _means(
        hudi_keys.SOURCE_CLASS,
        "CLASS",
        "PostgresDebeziumSource or MysqlDebeziumSource.",
        "--source-class",
    ),
    _means(
        hudi_keys.ORDERING,
        "COLUMNS",
        "Rows are always ordered by their place in the source's log.",
        "--source-ordering-fields",
        "--source-ordering-field",
    ),
    _means(
        hudi_keys.PAYLOAD,
        "CLASS",
        "The Debezium payloads are what is done anyway.",
        "--payload-class",
    ),
    _means(
        hudi_keys.MERGE_MODE,
        "MODE",
        "EVENT_TIME_ORDERING is what is done anyway.",
        "--merge-mode",
        "--record-merge-mode",
    ),
    _means(
        hudi_keys.MERGE_STRATEGY,
        "ID",
        "Hudi's own ids; one of a class is refused.",
        "--merge-strategy-id",
        "--record-merge-strategy-id",
    ),
    _means(
        hudi_keys.MERGER,
        "CLASSES",
        "Hudi's own classes; any other is refused.",
        "--merge-impl-classes",
        "--record-merge-custom-implementation-classes",
    ),
    _means(hudi_keys.OPERATION, "OP", "Only UPSERT.", "--op"),
    _means(hudi_keys.MAX_EVENTS, "N", "Events that a batch aims at.", "--source-limit"),
    CONTINUOUS,
    INTERVAL,
    MASTER,
    APP_NAME,
    _idle(_SYNC, "--enable-sync"),
    _idle(_SYNC, "--enable-hive-sync"),
    _idle(_SYNC, "--force-empty-sync"),
    _idle(_SYNC, "--sync-tool-classes", value="CLASSES"),
    _idle(_SYNC, "--enable-hive-support"),
    _idle(_SERVICES, "--disable-compaction"),
    _idle(_SERVICES, "--max-pending-compactions", value="N"),
    _idle(_SERVICES, "--max-pending-clustering", value="N"),
    _idle(_SERVICES, "--retry-last-pending-inline-clustering", "-rc"),
    _idle(_SERVICES, "--retry-last-pending-inline-compaction"),
    *(
        _idle(_SHARES, f"--{what}-scheduling-{share}", value="N")
        for what in ("delta-sync", "compact", "cluster")
        for share in ("weight", "minshare")
    ),
    _idle(_AGAIN, "--retry-on-source-failures"),
    _idle(_AGAIN, "--retry-interval-seconds", value="N"),
    _idle(_AGAIN, "--max-retry-count", value="N"),
    _idle(
        "each event names its own schema",
        "--schemaprovider-class",
        value="CLASS",
        usual=("SchemaRegistryProvider",),
    ),
    _idle("a repeated event changes nothing anyway", "--filter-dupes"),
    _idle("a record that fails stops the run, nothing is left out", "--commit-on-errors"),
    _idle("a run without news commits nothing", "--allow-commit-on-no-checkpoint-change"),
    _idle(_CLASSES, "--ingestion-metrics-class", value="CLASS"),
    _idle(_CLASSES, "--config-hot-update-strategy-class", value="CLASS"),
    _idle(_CLASSES, "--bootstrap-index-class", value="CLASS"),
    _means(
        hudi_keys.TRANSFORMER,
        "CLASSES",
        "Refused: rows are not transformed.",
        "--transformer-class",
    ),
    CHECKPOINT,
    _refused(_WHERE, "--initial-checkpoint-provider", value="CLASS"),
    _refused(_WHERE, "--ignore-checkpoint", value="TEXT"),
    _refused(_BOOTSTRAP, "--run-bootstrap"),
    _refused(_BOOTSTRAP, "--bootstrap-overwrite"),
    _refused("only PARQUET; remove it", "--base-file-format", value="FORMAT", usual=("PARQUET",)),
    _refused(
        "run without --continuous: it ends when there is nothing new",
        "--post-write-termination-strategy-class",
        value="CLASS",
    ),
)
"""Every option of ``HoodieStreamer``."""
