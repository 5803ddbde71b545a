"""Methods of texts that are known, and what ``argparse`` makes of the command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from airflow_flinkcompat.frontends.pyflink import constants
from airflow_flinkcompat.frontends.pyflink.attributes import Objects
from airflow_flinkcompat.frontends.pyflink.objects import Arguments
from airflow_flinkcompat.frontends.table_api.values import Const, Constant, Container, Ref, Unknown, Value

Args = Sequence[Value]
Names = Mapping[str, Value]


class Texts(Objects):
    """Evaluates methods of texts too."""

    def of_text(self, text: str, name: str, args: Args, names: Names) -> Value | None:
        self.step(len(text) // 1000)
        known = [arg.value for arg in args if isinstance(arg, Const)]
        if name == "join" and len(args) == 1 and not names:
            parts = self.iterate(args[0])
            texts = [part.value for part in parts or () if isinstance(part, Const) and isinstance(part.value, str)]
            return constants.joined(texts, text) if parts is not None and len(texts) == len(parts) else None
        if name == "format":
            shown = [self.text(arg) for arg in args]
            given = self.constants_of(names)
            if given is None or None in shown:
                return None
            values = [arg.value if isinstance(arg, Const) else word for arg, word in zip(args, shown, strict=True)]
            return constants.formatted(text, values, given)
        if name == "format_map":
            given = self.constants_of(self.mapping(args, names))
            return None if given is None else constants.formatted(text, (), given)
        if names or len(known) != len(args):
            return None
        words = constants.split(text, name, known)
        if words is not None:
            self.step(len(words))
            return Container([Const(word) for word in words], kind="tuple" if "partition" in name else "list")
        return constants.text_method(text, name, known)

    def mapping(self, args: Args, names: Names) -> Names | None:
        match list(args):
            case [Container(dict(inner), "")]:
                return {**inner, **names}
        return None

    def constants_of(self, names: Names | None) -> dict[str, Constant] | None:
        """The values of names; None where one of them is not known."""
        shown = {} if names is None else {key: self.text(value) for key, value in names.items()}
        if names is None or None in shown.values():
            return None
        return {key: value.value if isinstance(value, Const) else shown[key] for key, value in names.items()}

    def parser(self, parser: Arguments, name: str, args: Args, names: Names) -> Value | None:
        if name == "parse_args":
            return Arguments(parser.types, parsed=True)
        if name == "parse_known_args":
            return Container(
                [Arguments(parser.types, parsed=True), Unknown("the rest of the command line")], kind="tuple"
            )
        if name in ("add_argument_group", "add_mutually_exclusive_group"):
            return parser
        if name == "add_argument":
            flags = [arg.value for arg in args if isinstance(arg, Const) and isinstance(arg.value, str)]
            long = [flag for flag in flags if flag.startswith("--")] or flags
            match names.get("dest"):
                case Const(str(dest)):
                    pass
                case _:
                    dest = long[0].lstrip("-").replace("-", "_") if long else ""
            kind = names.get("type", Ref("builtins.str"))
            plain = isinstance(kind, Ref) and kind.path in ("builtins.str", "builtins.int", "builtins.float")
            odd = {"action", "nargs", "const"} & names.keys()
            parser.types[dest] = kind.name if isinstance(kind, Ref) and plain and not odd else None
            return Unknown("an argument of the command line")
        return None
