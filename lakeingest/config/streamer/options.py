"""Define each option of Hudi's streamer: its meaning in lakeingest, or why it has none.

The table holds all options of ``HoodieStreamer`` in Hudi 1.2. So a user can keep a command as it
is, and lakeingest can tell a misspelt option from an unnecessary one. An option that stands for a
setting is read as that setting. Any other option is refused if it would change the table's content.
If it would not, lakeingest warns about it, once for each reason.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from lakeingest.config.streamer import settings as hudi


@dataclass(frozen=True)
class Option:
    """An option of the command.

    Attributes:
        names: The option's names with blanks between them, the current one first.
        value: The name of its value in the help; ``None``: the option has no value.
        help: The option's effect in lakeingest, for the help.
        key: The setting for which the option stands.
        is_idle: Whether the option has no effect in lakeingest; ``help`` says why.
        is_refused: Whether lakeingest cannot follow the option; ``help`` says why and the remedy.
        usual: Value (a class without its package) that lakeingest follows anyway: no message.
    """

    names: str
    value: str | None
    help: str
    key: hudi.HudiKey | None = None
    is_idle: bool = False
    is_refused: bool = False
    usual: str | None = None

    @property
    def name(self) -> str:
        """The option's current name."""
        return self.names.split()[0]


_idle = partial(Option, is_idle=True)
_refused = partial(Option, is_refused=True)

PROPS = Option("--props", "FILE", "Settings; a local path or file: URI.")
CONF = Option("--hoodie-conf", "KEY=VALUE", "Replaces a setting of the file. Repeatable.")
CONTINUOUS = Option("--continuous", None, "Go on as new events arrive, until stopped.")
INTERVAL = Option(
    "--min-sync-interval-seconds", "N", "Seconds from one batch's start to the next, at least."
)
MASTER = Option("--spark-master", "URL", "Spark master, where no session is there yet.")
APP_NAME = Option("--spark-app-name", "NAME", "Name that a new Spark session shows.")
CHECKPOINT = Option("--checkpoint", "TEXT", "Where the adopted table stands; else refused.")

BASE_PATH = Option(
    "--target-base-path", "PATH", "Folder of the table; the ledger lies in it.", hudi.BASE_PATH
)
TABLE = Option("--target-table", "NAME", "Name of the pipeline.", hudi.TABLE_NAME)
TABLE_TYPE = Option("--table-type", "TYPE", "COPY_ON_WRITE or MERGE_ON_READ.", hudi.TABLE_TYPE)

_SYNC = "lakeingest registers the table in no catalog: create it there once, at its path"
_SERVICES = "compaction and clustering are as the settings hoodie.compact.* and the like say"
_SHARES = "one run writes its tables side by side, without shares of the cluster"
_AGAIN = "lakeingest repeats a request to a service that is away in any case"
_CLASSES = "there is no such class here"
_BOOTSTRAP = (
    "a table is loaded from Debezium's own snapshot in the topic, not from files; remove it"
)
_WHERE = "the ledger, in the commit of the data, says where reading goes on; remove it"

OPTIONS: tuple[Option, ...] = (
    PROPS,
    CONF,
    BASE_PATH,
    TABLE,
    TABLE_TYPE,
    Option(
        "--source-class",
        "CLASS",
        "PostgresDebeziumSource or MysqlDebeziumSource.",
        hudi.SOURCE_CLASS,
    ),
    Option(
        "--source-ordering-fields --source-ordering-field",
        "COLUMNS",
        "Rows are always ordered by their place in the source's log.",
        hudi.ORDERING,
    ),
    Option(
        "--payload-class", "CLASS", "The Debezium payloads are what is done anyway.", hudi.PAYLOAD
    ),
    Option(
        "--merge-mode --record-merge-mode",
        "MODE",
        "EVENT_TIME_ORDERING is what is done anyway.",
        hudi.MERGE_MODE,
    ),
    Option(
        "--merge-strategy-id --record-merge-strategy-id",
        "ID",
        "Hudi's own ids; one of a class is refused.",
        hudi.MERGE_STRATEGY,
    ),
    Option(
        "--merge-impl-classes --record-merge-custom-implementation-classes",
        "CLASSES",
        "Hudi's own classes; any other is refused.",
        hudi.MERGER,
    ),
    Option("--op", "OP", "Only UPSERT.", hudi.OPERATION),
    Option("--source-limit", "N", "Events that a batch aims at.", hudi.MAX_EVENTS),
    CONTINUOUS,
    INTERVAL,
    MASTER,
    APP_NAME,
    _idle("--enable-sync", None, _SYNC),
    _idle("--enable-hive-sync", None, _SYNC),
    _idle("--force-empty-sync", None, _SYNC),
    _idle("--sync-tool-classes", "CLASSES", _SYNC),
    _idle("--enable-hive-support", None, _SYNC),
    _idle("--disable-compaction", None, _SERVICES),
    _idle("--max-pending-compactions", "N", _SERVICES),
    _idle("--max-pending-clustering", "N", _SERVICES),
    _idle("--retry-last-pending-inline-clustering -rc", None, _SERVICES),
    _idle("--retry-last-pending-inline-compaction", None, _SERVICES),
    *(
        _idle(f"--{service}-scheduling-{setting}", "N", _SHARES)
        for service in ("delta-sync", "compact", "cluster")
        for setting in ("weight", "minshare")
    ),
    _idle("--retry-on-source-failures", None, _AGAIN),
    _idle("--retry-interval-seconds", "N", _AGAIN),
    _idle("--max-retry-count", "N", _AGAIN),
    _idle(
        "--schemaprovider-class",
        "CLASS",
        "each event names its own schema",
        usual="SchemaRegistryProvider",
    ),
    _idle("--filter-dupes", None, "a repeated event changes nothing anyway"),
    _idle("--commit-on-errors", None, "a record that fails stops the run, nothing is left out"),
    _idle(
        "--allow-commit-on-no-checkpoint-change", None, "a run without new events commits nothing"
    ),
    _idle("--ingestion-metrics-class", "CLASS", _CLASSES),
    _idle("--config-hot-update-strategy-class", "CLASS", _CLASSES),
    _idle("--bootstrap-index-class", "CLASS", _CLASSES),
    Option(
        "--transformer-class", "CLASSES", "Refused: rows are not transformed.", hudi.TRANSFORMER
    ),
    CHECKPOINT,
    _refused("--initial-checkpoint-provider", "CLASS", _WHERE),
    _refused("--ignore-checkpoint", "TEXT", _WHERE),
    _refused("--run-bootstrap", None, _BOOTSTRAP),
    _refused("--bootstrap-overwrite", None, _BOOTSTRAP),
    _refused("--base-file-format", "FORMAT", "only PARQUET; remove it", usual="PARQUET"),
    _refused(
        "--post-write-termination-strategy-class",
        "CLASS",
        "run without --continuous: it ends when there is nothing new",
    ),
)
"""Every option of ``HoodieStreamer``."""
