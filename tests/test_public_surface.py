"""Commands, settings and Python names that users rely on, against a list kept in the repository.

A change shows up in this list. Where it is meant, renew the list and look at its difference:
``python -m tests.test_public_surface > tests/public_surface.txt``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from enum import Enum
from pathlib import Path
from typing import Any, get_args

from typer.models import OptionInfo

import lakeingest
from lakeingest.cli.main import app
from lakeingest.cli.main import lakeingest as lakeingest_callback
from lakeingest.config.keys import KEYS, TABLE_KEYS
from lakeingest.config.streamer.options import OPTIONS, Option
from lakeingest.config.streamer.settings import HUDI_KEYS
from lakeingest.config.streamer.tables import MULTI_TABLE_OPTIONS

STORED = Path(__file__).with_name("public_surface.txt")


def surface() -> Iterator[str]:
    """Yield one line for each thing that users may rely on."""
    callbacks = {"": lakeingest_callback}
    for command in app.registered_commands:
        assert command.callback is not None
        name = command.name or command.callback.__name__.replace("_", "-")
        callbacks[f" {name}"] = command.callback
    for name, callback in sorted(callbacks.items()):
        yield f"lakeingest{name}"
        yield from (f"lakeingest{name} {text}" for text in _parameters(callback))
    for name, options in (
        ("hoodie-streamer", OPTIONS),
        ("hoodie-multi-table-streamer", MULTI_TABLE_OPTIONS),
    ):
        yield from (f"lakeingest {name} {_option(option)}" for option in options)
    for key in (*KEYS, *TABLE_KEYS.values()):
        yield f"{key.name} = {key.default or ''} ({key.type_name})"
    for hudi_key in HUDI_KEYS:
        yield f"{' | '.join(hudi_key.names)} -> {hudi_key.becomes or ''}"
    for name in sorted(lakeingest.__all__):
        yield f"lakeingest.{name}{inspect.signature(getattr(lakeingest, name))}"


def _parameters(callback: Callable[..., Any]) -> Iterator[str]:
    """Yield the arguments and options of a command, as its function declares them for typer."""
    for parameter in inspect.signature(callback, eval_str=True).parameters.values():
        kind, *infos = get_args(parameter.annotation) or (parameter.annotation,)
        names, default = parameter.name, parameter.default
        for info in infos:
            if isinstance(info, OptionInfo):
                # In ``Annotated``, typer takes the first name for the default.
                written = [str(name) for name in (info.default, *(info.param_decls or ()))]
                given = [name for name in written if name.startswith("-")]
                names = "/".join(given or [f"--{parameter.name.replace('_', '-')}"])
        if infos:
            is_enum = isinstance(kind, type) and issubclass(kind, Enum)
            values = "|".join(item.value for item in kind) if is_enum else _name_of(kind)
            shown = default.value if isinstance(default, Enum) else default
            yield f"{names} ({values})" + (
                " required" if default is inspect.Parameter.empty else f" = {shown}"
            )


def _name_of(kind: Any) -> str:
    return kind.__name__ if isinstance(kind, type) and not get_args(kind) else str(kind)


def _option(option: Option) -> str:
    effect = "refused" if option.is_refused else "no effect" if option.is_idle else "read"
    return f"{option.names} {option.value or ''} ({effect})".replace("  ", " ")


def test_what_users_rely_on_is_what_the_list_says() -> None:
    stored = STORED.read_text("utf-8").splitlines()
    now = list(surface())
    gone, new = [line for line in stored if line not in now], [n for n in now if n not in stored]
    assert (gone, new) == ([], [])
    assert now == stored


def test_the_list_is_long_enough_to_mean_something() -> None:
    stored = STORED.read_text("utf-8")
    for line in ("lakeingest run --continuous", "lakeingest.deletes = soft", "lakeingest.open("):
        assert line in stored
    assert len(stored.splitlines()) > 150


if __name__ == "__main__":
    print("\n".join(surface()))
