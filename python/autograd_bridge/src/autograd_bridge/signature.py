"""The signature of an op, and how the arguments of a call are matched with it."""

from __future__ import annotations

from typing import Any, Callable, Iterable, NamedTuple, Sequence


class Parameter(NamedTuple):
    name: str
    form: str
    rust: str
    elements: list[str]
    differentiable: bool
    default: str | None


class Output(NamedTuple):
    rust: str
    is_list: bool
    elements: list[str]


class Missing:
    """Stands for an argument that was not given."""


class Signature:
    """What an exported op takes and returns."""

    def __init__(self, op: Any) -> None:
        described = op.description()
        self.op = op
        self.name: str = described["name"]
        self.docs: str = described["docs"]
        self.keeps_attrs: bool = described["keeps_attrs"]
        self.has_backward: bool = described["has_backward"]
        self.is_formula: bool = described["is_formula"]
        self.shapes: str | None = described["shapes"]
        self._shapes_text: str | None = described["shapes_python"]
        self.parameters = [Parameter(*of) for of in described["parameters"]]
        self.outputs = [Output(*of) for of in described["outputs"]]
        self.positions = {of.name: at for at, of in enumerate(self.parameters)}
        self.plain = [of.form == "plain" for of in self.parameters]

    def arguments(self, args: Sequence[Any], keywords: dict[str, Any]) -> list[Any]:
        """One argument for each parameter; ``None`` for a default or an absent tensor."""
        if not keywords and len(args) == len(self.parameters):
            return list(args)
        if len(args) > len(self.parameters):
            raise TypeError(f"{self.name}: expected {len(self.parameters)} arguments, found {len(args)}")
        given: list[Any] = list(args) + [Missing] * (len(self.parameters) - len(args))
        for name, value in keywords.items():
            at = self.positions.get(name)
            if at is None:
                names = ", ".join(f"`{of.name}`" for of in self.parameters)
                raise TypeError(f"{self.name}: there is no parameter `{name}`; there are {names}")
            if given[at] is not Missing:
                raise TypeError(f"{self.name}: `{name}` was given before")
            given[at] = value
        for at, parameter in enumerate(self.parameters):
            if given[at] is Missing:
                if parameter.form != "optional" and parameter.default is None:
                    raise TypeError(f"{self.name}: `{parameter.name}` is missing")
                given[at] = None
        return given

    def split(self, given: Sequence[Any], tensor: Callable[[Any, str, Parameter], Any]) -> tuple[list[Any], list[Any], tuple[Any, ...], list[bool]]:
        """The arguments with converted tensors; these tensors, list by list; the structure, to be hashed; and for each
        tensor whether its parameter is differentiable."""
        args: list[Any] = []
        tensors: list[Any] = []
        form: list[Any] = []
        differentiable: list[bool] = []
        for parameter, value in zip(self.parameters, given):
            if parameter.form == "plain":
                args.append(value)
                form.append(None)
            elif parameter.form == "list":
                if not isinstance(value, (list, tuple)):
                    raise TypeError(f"{self.name}: `{parameter.name}` must be a list of tensors, found {type(value).__name__}")
                each = [tensor(of, f"{parameter.name}[{i}]", parameter) for i, of in enumerate(value)]
                args.append(each)
                form.append(len(each))
                tensors.extend(each)
                differentiable.extend([parameter.differentiable] * len(each))
            elif parameter.form == "optional" and value is None:
                args.append(None)
                form.append(-1)
            else:
                one = tensor(value, parameter.name, parameter)
                args.append(one)
                form.append(0)
                tensors.append(one)
                differentiable.append(parameter.differentiable)
        return args, tensors, tuple(form), differentiable

    def join(self, form: Sequence[Any], plain: Sequence[Any], tensors: Iterable[Any]) -> list[Any]:
        """The arguments of a call, from the structure, the plain arguments and the tensors."""
        values, each = iter(plain), iter(tensors)
        args: list[Any] = []
        for of in form:
            if of is None:
                args.append(next(values))
            elif of == -1:
                args.append(None)
            elif of == 0:
                args.append(next(each))
            else:
                args.append([next(each) for _ in range(of)])
        return args

    def static(self, parameter: Parameter, value: Any) -> Any:
        """A plain argument in the type of Python that its type in Rust has."""
        if value is None:
            return None
        kind = {"f64": float, "f32": float, "i64": int, "i32": int, "usize": int, "bool": bool, "String": str}
        to = kind.get(parameter.rust, str if parameter.rust.endswith("str") else None)
        if to is str or to is bool:
            if not isinstance(value, to):
                raise TypeError(f"{self.name}: `{parameter.name}` must be a {to.__name__}, found {value!r}")
            return value
        try:
            return to(value) if to is not None else value
        except (TypeError, ValueError):
            raise TypeError(f"{self.name}: `{parameter.name}` must be a number, found {value!r}") from None

    def abstract(self, form: Any, plain: Any, specs: Any) -> list[tuple[str, tuple[int, ...]]] | None:
        """The element types and shapes of the outputs by the op's ``shapes(..)``; ``None`` if it says nothing."""
        if self._shapes_text is None:
            return None
        scope: dict[str, Any] = {}
        exec(compile(self._shapes_text, f"<shapes of {self.name}>", "exec"), scope)
        shaped = [_Shaped(shape) for _, shape in specs]
        args = self.join(form, [value for value, is_plain in zip(plain, self.plain) if is_plain], shaped)
        names = {of.name: value for of, value in zip(self.parameters, args)}
        function = scope["shapes"]
        wanted = function.__code__.co_varnames[1 : function.__code__.co_argcount]
        found = function(lambda shape: shape, *(names[name] for name in wanted))
        found = [found] if len(self.outputs) == 1 else list(found)
        if any(shape is None or None in shape for shape in found):
            return None
        own = next((dtype for (dtype, _), of in zip(specs, self.parameters) if len(of.elements) > 1), "")
        all = []
        for shape, output in zip(found, self.outputs):
            dtype = output.elements[0] if len(output.elements) == 1 else own
            all.extend([(dtype, one) for one in shape] if output.is_list else [(dtype, shape)])
        return all

    def results(self, tensors: Sequence[Any]) -> Any:
        """The tensors of all outputs as what a call returns: one, or a tuple; a list for an output that is one."""
        if len(self.outputs) == 1:
            return list(tensors) if self.outputs[0].is_list else tensors[0]
        lists = [at for at, of in enumerate(self.outputs) if of.is_list]
        if not lists:
            return tuple(tensors)
        if len(lists) > 1:
            raise RuntimeError(f"{self.name}: only one output can be a list")
        count = len(tensors) - len(self.outputs) + 1
        at = lists[0]
        return (*tensors[:at], list(tensors[at : at + count]), *tensors[at + count :])


class _Shaped(NamedTuple):
    shape: tuple[int, ...]


def _word(value: Any) -> str:
    if value is None:
        return "d"
    if isinstance(value, bool):
        return f"b{int(value)}"
    if isinstance(value, int):
        return f"i{value}"
    if isinstance(value, float):
        return f"f{value!r}"
    return "s" + str(value).encode().hex()


def plan(signature: Signature, again: bool, needs: Sequence[bool], form: Any, plain: Any, specs: Any) -> str:
    """The static part of a call whose tensors have these element types and shapes, as ``plan.rs`` reads it."""
    words = {None: None, -1: "-", 0: "t"}
    args = [
        _word(value) if of is None else words.get(of, f"l{of}") for of, value in zip(form, plain)
    ]
    tensors = [f"{dtype}:{','.join(map(str, shape))}" for dtype, shape in specs]
    bits = "".join("1" if of else "0" for of in needs)
    mode = "again" if again else "saved"
    return "\n".join([signature.name, mode, bits, " ".join(args), " ".join(tensors)])


class Ops:
    """The ops of a module as functions of a framework."""

    def __init__(self, module: Any, bind: Callable[[Any, Signature], Any]) -> None:
        self._names = list(module.__ops__)
        for name, op in module.__ops__.items():
            signature = Signature(op)
            bound = bind(module, signature)
            bound.__name__ = name
            bound.__doc__ = signature.docs
            setattr(self, name, bound)

    def __dir__(self) -> list[str]:
        return self._names

    def __getattr__(self, name: str) -> Any:
        names = ", ".join(self._names)
        raise AttributeError(f"there is no op `{name}`; there are {names}")
