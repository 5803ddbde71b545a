"""Attributes and methods of what a program names: of classes and their objects, modules, paths, texts, expressions."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace

from airflow_flinkcompat.frontends.pyflink import constants, inputs, standard
from airflow_flinkcompat.frontends.pyflink.evaluation import dotted
from airflow_flinkcompat.frontends.pyflink.objects import Arguments, Class, Function, Instance, Module, NameScope, Super
from airflow_flinkcompat.frontends.pyflink.operations import Operators
from airflow_flinkcompat.frontends.table_api import expression_sql as e
from airflow_flinkcompat.frontends.table_api import validation
from airflow_flinkcompat.frontends.table_api.values import (
    Asked,
    Const,
    Constant,
    Container,
    Expr,
    GroupedTable,
    NotRead,
    Path,
    Ref,
    TableValue,
    UnknownValue,
    Value,
)

_ODD = (
    "__setattr__",
    "__getattr__",
    "__getattribute__",
    "__new__",
    "__init_subclass__",
    "__set_name__",
    "__slots__",
    "__del__",
)
"""What makes attributes mean something else than they say."""

Args = Sequence[Value]
Names = Mapping[str, Value]


class Objects(Operators):
    """Evaluates attributes and methods of texts too, and makes objects of the program's classes."""

    @abstractmethod
    def inlined(self, function: Function, args: Sequence[Value], names: Mapping[str, Value]) -> Value:
        """What a call of a function of the program gives."""

    def attribute(self, owner: Value, node: ast.Attribute, frame: NameScope) -> Value:
        name = node.attr
        if (written := dotted(node)) in self.given:
            return Const(self.given[written])
        match owner:
            case Expr():
                self.session.note(node, validation.trap(owner, name))
                return e.attribute(owner, name)
            case TableValue():
                return Expr("column", (name,))
            case Ref(path) if name in ("__file__", "__version__"):
                return inputs.named(f"{path}.{name}", reason=f"where {path} lies is not known")
            case Ref(path):
                return Ref(f"{path}.{name}")
            case Class() | Instance() | Super():
                return self.member(owner, name)
            case Module():
                return self.of_module(owner, name)
            case Arguments(parsed=True):
                return self._argument(name, owner)
            case Path():
                return standard.of_path(owner, name) or UnknownValue(f"{name} of a path is not known")
            case UnknownValue():
                return self._of_unknown(owner, name, written)
        tabled = self.touches(owner)
        return UnknownValue(f"{name} held as a value is not read" if tabled else f"{name} is not known", tables=tabled)

    def _of_unknown(self, owner: UnknownValue, name: str, written: str) -> UnknownValue:
        if owner.tables:
            return owner
        if owner.name and self.known_input(owner) is owner:
            return inputs.named(f"{owner.name}.{name}", (owner,))
        ask = written and owner.reason and not isinstance(owner.reason, Asked)
        return UnknownValue(Asked(owner.reason, written)) if ask else owner

    def of_module(self, module: Module, name: str) -> Value:
        """What a name of a module that lies beside the program stands for."""
        found = module.frame.names.get(name) or self.submodule(module.name, name)
        return found or UnknownValue(f"{name} is not in {module.name}, as far as that was read", tables=True)

    @abstractmethod
    def submodule(self, module: str, name: str) -> Value | None:
        """The module ``name`` of a package that lies beside the program."""

    def _argument(self, name: str, arguments: Arguments) -> Value:
        if name in self.given and (kind := arguments.types.get(name, "str")) is not None:
            found = constants.converted(kind, self.given[name])
            if found is not None:
                return found
        why = Asked("the command line decides", name)
        return self.surroundings.input(arguments.names.get(name, ""), why, text=True)

    # -------------------------------------------------------------------------------------------- classes and objects
    def member(self, owner: Class | Instance | Super, name: str) -> Value:
        """``owner.name``: an attribute of the object, or of its class and the bases of that."""
        _private(owner, name)
        match owner:
            case Instance():
                own = self._own(owner, name)
                if own is not None:
                    return own
                kind: Class | None = owner.type
                receiver: Value = owner
            case Super():
                kind, receiver = owner.type.base, owner.receiver
                if kind is None and name in ("__init__", "__post_init__", "__init_subclass__"):
                    return Ref("builtins.object")
            case Class():
                if name == "__name__":
                    return Const(owner.node.name)
                kind, receiver = owner, owner
        found = None if kind is None else kind.find(name)
        line = () if kind is None else kind.line()
        if found is None or any(each.broken for each in line):
            doubt = "" if kind is None else kind.doubt
            return UnknownValue(doubt or f"{name} is not there, as far as the program was read", tables=True)
        if isinstance(found, Instance) and found.type.find("__get__") is not None:
            return UnknownValue("a descriptor is not read", tables=True)
        if not isinstance(found, Function) or found.receiver is not None or found.bound or found.named:
            return found
        return self._method(found, owner, receiver)

    def _own(self, owner: Instance, name: str) -> Value | None:
        """What an object itself holds under a name; None where its class decides."""
        if name == "__class__":
            return owner.type
        if name == "__dict__":
            raise NotRead("the attributes of an object taken all at once are not read")
        return UnknownValue(owner.broken, tables=self.touches(owner)) if owner.broken else owner.names.get(name)

    def _method(self, found: Function, owner: Value, receiver: Value) -> Value:
        kind = receiver.type if isinstance(receiver, Instance) else receiver
        match found.how:
            case "staticmethod":
                return found
            case "classmethod":
                return replace(found, receiver=kind)
            case "property" if isinstance(receiver, Instance):
                return self.inlined(replace(found, receiver=receiver), (), {})
            case "cached property" if isinstance(receiver, Instance):
                value = self.inlined(replace(found, receiver=receiver), (), {})
                receiver.names[found.name] = value
                return value
            case "property" | "cached property":
                return UnknownValue("a property of a class is not read", tables=self.touches(found))
        return found if isinstance(owner, Class) else replace(found, receiver=receiver)

    def instance(self, kind: Class, args: Sequence[Value], names: Mapping[str, Value]) -> Value:
        """An object of a class of the program, its ``__init__`` read."""
        why = kind.doubt
        odd = next((name for name in _ODD if kind.find(name) is not None), "")
        if why or odd:
            why = why or f"{odd} of class {kind.node.name} is not read"
            if self.touches(kind) or any(map(self.touches, (*args, *names.values()))):
                raise NotRead(why)
            return UnknownValue(why)
        made = Instance(kind)
        start = kind.find("__init__")
        if isinstance(start, Function):
            self.inlined(replace(start, receiver=made), args, names)
            return made
        if start is not None:
            raise NotRead(f"__init__ of class {kind.node.name} is not read")
        fields = kind.parameters
        if fields is None:
            if args or names:
                raise NotRead(f"class {kind.node.name} is called with arguments it does not have")
            return made
        self._fill(made, fields, args, names)
        after = kind.find("__post_init__")
        if isinstance(after, Function):
            self.inlined(replace(after, receiver=made), (), {})
        return made

    def _fill(self, made: Instance, fields: Sequence[str], args: Sequence[Value], names: Mapping[str, Value]) -> None:
        """The fields of a dataclass, given or by default."""
        if len(args) > len(fields) or any(name not in fields for name in names):
            raise NotRead(f"class {made.type.node.name} is called with arguments it does not have")
        made.names |= dict(zip(fields, args, strict=False)) | dict(names)
        for name in fields:
            if name in made.names:
                continue
            default = next((each.filled[name] for each in made.type.line() if name in each.filled), None)
            match default:
                case None:
                    raise NotRead(f"class {made.type.node.name} is called without a field it needs")
                case Container(kind="factory", value=[maker]):
                    made.names[name] = self.make(maker)
                case UnknownValue() | Const() | Ref() | Container() | Instance() | Path():
                    made.names[name] = default
                case _:
                    raise NotRead(f"the default of the field {name} is not read")

    @abstractmethod
    def make(self, maker: Value) -> Value:
        """What a call without arguments gives."""

    def set_attribute(self, owner: Value, name: str, value: Value) -> None:
        """``owner.name = value``. Raises :class:`NotRead` where it matters and what it does is not known."""
        if isinstance(owner, Class | Instance):
            _private(owner, name)
        match owner:
            case Instance(broken=""):
                setter = owner.type.find(name)
                odd = any(owner.type.find(each) is not None for each in _ODD)
                odd |= isinstance(setter, UnknownValue) and setter.tables
                odd |= isinstance(setter, Instance) and setter.type.find("__set__") is not None
                if not odd and not (isinstance(setter, Function) and setter.how.endswith("property")):
                    owner.names[name] = value
                    return
            case Class(opaque="", broken=""):
                owner.names[name] = value
                return
            case Module():
                owner.frame.names[name] = value
                return
            case TableValue() | Expr() | GroupedTable():
                raise NotRead("an attribute of a table that is set is not read")
        if self.touches(value) or self.touches(owner) or isinstance(owner, Function | Ref | Arguments | Instance):
            raise NotRead("an attribute that is set is not read")

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
        if name in ("parse_args", "parse_known_args"):
            of_line = not names and all(inputs.canonical(arg).startswith("(sys.argv)[1::]") for arg in args)
            found = replace(parser, parsed=True, names=parser.names if of_line and parser.plain else {})
            rest = UnknownValue("the rest of the command line")
            return found if name == "parse_args" else Container([found, rest], kind="tuple")
        if name in ("set_defaults", "add_subparsers"):
            raise NotRead(f"{name} of argparse is not read")
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
                    if not flags or not flags[0].startswith("-"):
                        dest = flags[0] if flags else ""
            kind = names.get("type", Ref("builtins.str"))
            plain = isinstance(kind, Ref) and kind.path in ("builtins.str", "builtins.int", "builtins.float")
            odd = {"action", "nargs", "const"} & names.keys()
            parser.types[dest] = kind.name if isinstance(kind, Ref) and plain and not odd else None
            words = {
                key: inputs.canonical(names[key]) for key in ("default", "action", "nargs", "const") if key in names
            }
            if isinstance(kind, Ref) and all(words.values()):
                made = {**words, **({"type": kind.path.removeprefix("builtins.")} if "type" in names else {})}
                parser.names[dest] = "--" + " ".join([dest, *(f"{key}={made[key]}" for key in sorted(made))])
            return UnknownValue("an argument of the command line")
        return None


def _private(owner: Class | Instance | Super, name: str) -> None:
    """A private name is another one in each class. Raises :class:`NotRead` where there are several."""
    kind = owner if isinstance(owner, Class) else owner.type
    if name.startswith("__") and not name.endswith("__") and (len(kind.line()) > 1 or isinstance(owner, Super)):
        raise NotRead(f"{name} is another name in each class of those that extend each other: it is not read")
