"""Types of the ops of a module, for editors: ``python -m autograd_bridge.stubs my_ops jax > ops.pyi``."""

from __future__ import annotations

import importlib
import sys
from typing import Any

from .signature import Parameter, Signature

_TENSORS = {
    "numpy": ("import numpy", "numpy.ndarray"),
    "jax": ("import jax", "jax.Array"),
    "torch": ("import torch", "torch.Tensor"),
    "paddle": ("import paddle", "paddle.Tensor"),
}
_PLAIN = {"f64": "float", "f32": "float", "i64": "int", "i32": "int", "usize": "int", "bool": "bool", "String": "str"}


def stubs(module: Any, framework: str) -> str:
    """The text of a ``.pyi`` file with a function for each op of the module."""
    load, tensor = _TENSORS[framework]
    lines = ["from typing import Any", "", load, ""]
    for name, op in module.__ops__.items():
        signature = Signature(op)
        parameters = ", ".join(_parameter(of, tensor) for of in signature.parameters)
        outputs = [f"list[{tensor}]" if of.is_list else tensor for of in signature.outputs]
        returns = outputs[0] if len(outputs) == 1 else f"tuple[{', '.join(outputs)}]"
        lines.append(f"def {name}({parameters}) -> {returns}:")
        docs = [signature.docs, "", *(f"{of.name}: {_types(of)}" for of in signature.parameters)]
        if signature.shapes is not None:
            docs += ["", f"Shapes: {signature.shapes}"]
        lines += [f'    """{docs[0]}', *(f"    {line}".rstrip() for line in docs[1:]), '    """', ""]
    return "\n".join(lines)


def _parameter(of: Parameter, tensor: str) -> str:
    if of.form == "plain":
        kind = _PLAIN.get(of.rust, "str" if of.rust.endswith("str") else "Any")
        return f"{of.name}: {kind}" if of.default is None else f"{of.name}: {kind} = ..."
    kinds = {"tensor": tensor, "optional": f"{tensor} | None = None", "list": f"list[{tensor}]"}
    return f"{of.name}: {kinds[of.form]}"


def _types(of: Parameter) -> str:
    if of.form == "plain":
        return of.rust if of.default is None else f"{of.rust}, {of.default} if it is not given"
    return " or ".join(of.elements)


if __name__ == "__main__":
    sys.stdout.write(stubs(importlib.import_module(sys.argv[1]), sys.argv[2]))
