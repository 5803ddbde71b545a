"""Arguments of Airflow's task classes as values in a file, where import paths stand for objects."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from datetime import timedelta
from functools import partial, reduce
from importlib import import_module
from typing import Annotated, Any

from airflow.providers.standard.operators.hitl import HITLOperator
from airflow.sdk import Asset, BaseOperator, BaseSensorOperator
from pydantic import BeforeValidator

_PATH = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*[:.][A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
_PLAIN = {"int": int, "str": str, "bool": bool, "float": float}


def imported(path: str) -> Any:
    """Import the object at an import path. Raises ValueError."""
    if not _PATH.fullmatch(path):
        raise ValueError(f"{path!r} is not an import path; write package.module:name")
    module, _, name = path.partition(":") if ":" in path else path.rpartition(".")
    try:
        return reduce(getattr, name.split("."), import_module(module))
    except ModuleNotFoundError as error:
        raise ValueError(
            f"{path!r}: there is no module {error.name}; install it, or put it into the folder of the DAGs "
            "or plugins, on every machine that reads this DAG"
        ) from None
    except AttributeError:
        raise ValueError(f"{path!r}: module {module} has no {name}; correct the name") from None
    except Exception as error:  # importing a module can raise anything
        raise ValueError(f"{path!r}: module {module} cannot be imported ({type(error).__name__}); correct it") from None


def _called(value: Any) -> Any:
    """Resolve a function or notifier from an object, an import path, or a table of path and arguments."""
    path, arguments = value, {}
    if isinstance(value, Mapping):
        if unknown := set(value) - {"path", "arguments"}:
            raise ValueError(f"{', '.join(sorted(unknown))} is unknown; write path and arguments")
        path, arguments = value.get("path"), value.get("arguments", {})
        if not isinstance(path, str) or not isinstance(arguments, Mapping):
            raise ValueError("write { path = 'package.module:name', arguments = { … } }")
    found = imported(path) if isinstance(path, str) else path
    try:
        if isinstance(found, type):
            found = found(**arguments)
        elif arguments:
            found = partial(found, **arguments)
    except TypeError as error:
        raise ValueError(f"{path!r} does not accept these arguments: {error}") from None
    if not callable(found):
        raise ValueError(f"{path!r} is neither a function nor a notifier; name one of these")
    return found


def _every_called(value: Any) -> Any:
    return [*map(_called, value)] if isinstance(value, list | tuple) else value if value is None else _called(value)


def _assets(value: Any) -> Any:
    def asset(one: Any) -> Any:
        return Asset(one) if isinstance(one, str) else Asset(**one) if isinstance(one, Mapping) else one

    try:
        return [*map(asset, value)] if isinstance(value, list | tuple) else [asset(value)]
    except TypeError as error:
        raise ValueError(f"is not an asset: {error}; write its URI, or a table of name, uri, group, extra") from None


CALLED = Annotated[Any, BeforeValidator(_every_called)]
"""Notifiers or functions, as objects or import paths."""
_SPECIAL: Mapping[str, Any] = {
    **dict.fromkeys(("retry_delay", "max_retry_delay", "execution_timeout", "response_timeout"), timedelta),
    **dict.fromkeys(("notifiers", "pre_execute", "post_execute"), CALLED),
    **dict.fromkeys(
        [f"on_{event}_callback" for event in ("execute", "failure", "success", "retry", "skipped")], CALLED
    ),
    **dict.fromkeys(("inlets", "outlets"), Annotated[Any, BeforeValidator(_assets)]),
}
# Arguments that the structure of the DAG (id, place) or the deployment (users) decides.
_DECIDED = {"task_id", "dag", "task_group", "default_args", "options", "multiple", "assigned_users"}


def arguments_of(cls: type[Any]) -> dict[str, Any]:
    """Map each argument of an Airflow class to the type that its value must have in a file."""
    parameters = inspect.signature(vars(cls)["__init__"]).parameters.values()
    named = (each for each in parameters if each.kind is inspect.Parameter.KEYWORD_ONLY)
    return {each.name: _type(each) for each in named if each.name not in _DECIDED}


def _type(parameter: inspect.Parameter) -> Any:
    if parameter.name in _SPECIAL:
        return _SPECIAL[parameter.name]
    words = [word.strip() for word in str(parameter.annotation).split("|")]
    kinds = [_PLAIN[word] for word in words if word in _PLAIN]
    if len(kinds) != 1 or len(words) - len(kinds) != words.count("None"):
        return Any  # the operator itself checks the value
    return kinds[0] | None if "None" in words else kinds[0]


TASK = {name: kind for name, kind in arguments_of(BaseOperator).items() if name != "owner"}
"""Arguments of any task."""
SENSOR = arguments_of(BaseSensorOperator)
"""Additional arguments of a sensor."""
APPROVAL = arguments_of(HITLOperator)
"""Additional arguments of an approval."""
