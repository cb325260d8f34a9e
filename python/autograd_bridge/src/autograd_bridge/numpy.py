"""Ops on arrays of NumPy. NumPy has no graph: ``forward`` returns what ``backward`` needs."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .signature import Ops, Parameter, Signature


class Kept(NamedTuple):
    """What a call keeps for its backward. The arrays in it must not be changed before."""

    state: Any
    saved: list[np.ndarray]
    tensors: int


class Op:
    """An op on arrays: a call returns its outputs."""

    def __init__(self, signature: Signature) -> None:
        self.signature = signature

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        return self._forward(args, keywords, False)[0]

    def forward(self, *args: Any, **keywords: Any) -> tuple[Any, Kept]:
        """The outputs, and what ``backward`` needs."""
        outputs, kept = self._forward(args, keywords, True)
        return outputs, kept

    def _forward(self, args: Any, keywords: Any, keeps: bool) -> tuple[Any, Any]:
        signature = self.signature
        given = signature.arguments(args, keywords)
        args, tensors, _, _ = signature.split(given, lambda value, name, of: _array(value, of))
        needs = [] if keeps else [False] * len(tensors)
        outputs, saved, state = signature.op.forward(args, needs)
        arrays = [np.asarray(output) for output in outputs]
        if not keeps:
            return signature.results(arrays), None
        place = {"input": tensors, "output": arrays}
        saved = [np.asarray(own) if own is not None else place[kind][at] for kind, at, own in saved]
        return signature.results(arrays), Kept(state, saved, len(tensors))

    def backward(self, kept: Kept, *grads: Any, needs: Any = None) -> tuple[Any, ...]:
        """The gradients of the arrays among the arguments, from those of the outputs, which may be ``None``. ``needs``
        says for each array whether its gradient is wanted."""
        signature = self.signature
        of = Parameter("a gradient", "tensor", "", [], False, None)
        grads = tuple(None if grad is None else _array(grad, of) for grad in grads)
        found = signature.op.backward(kept.state, kept.saved, list(grads), list(needs or []))
        return tuple(None if grad is None else np.asarray(grad) for grad in found)


def _array(value: Any, parameter: Parameter) -> Any:
    if isinstance(value, np.ndarray):
        # DLPack has no form for other bytes than the machine's, nor NumPy before 2.1 for arrays that are read-only.
        if not value.flags.writeable and not _READ_ONLY:
            return value.copy()
        return value if value.dtype.isnative else value.astype(value.dtype.newbyteorder("="))
    if isinstance(value, (bool, int, float, list, tuple)) and parameter.elements:
        return np.asarray(value, dtype=parameter.elements[0])
    if isinstance(value, np.generic):
        return np.asarray(value)
    return value


def _read_only() -> bool:
    array = np.zeros(1, np.float32)
    array.flags.writeable = False
    try:
        array.__dlpack__(max_version=(1, 0))
    except (TypeError, BufferError):
        return False
    return True


_READ_ONLY = _read_only()


def bind(module: Any) -> Any:
    """The ops of a module, as functions of arrays with ``forward`` and ``backward``."""
    return Ops(module, lambda module, signature: Op(signature))
