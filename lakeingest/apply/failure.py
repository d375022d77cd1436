"""Translate the failure of a window into one of our errors; a defect stays as it is.

Every exception that a window can raise passes here before ``attempts.py`` decides whether to retry.
The classes of Java exceptions decide (``engine/java_errors.py``), not their texts, because texts
quote rows. A broker that is unreachable is asked for nothing: its absence must not look like loss.
"""

from __future__ import annotations

from collections.abc import Sequence

from lakeingest.engine.java_errors import engine_is_gone, java_errors
from lakeingest.engine.service_errors import service_error
from lakeingest.engine.storage_errors import storage_error
from lakeingest.errors import LakeingestError, TransientError
from lakeingest.source.bounds import data_loss_error
from lakeingest.source.contract import Source


def classify_failure(error: Exception, source: Source, roots: Sequence[str]) -> Exception:
    """Return the error that a failure means to a user; the failure itself if it is a defect.

    Args:
        error: Exception that a window raised.
        source: Gives its bounds where Kafka says that offsets are gone.
        roots: Folders of the lake and of a recording.
    """
    if isinstance(error, LakeingestError):
        return error
    if engine_is_gone(error):
        return TransientError(
            "Spark's driver process is gone (often: out of memory, or ended by the cluster). The "
            "lake stands at its last publication; run again, with more spark.driver.memory if it "
            "comes again."
        )
    loss = data_loss_error(error, source)
    if loss is not None:
        return loss
    return service_error(java_errors(error)) or storage_error(error, *roots) or error
