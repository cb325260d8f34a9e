"""The types of the ops, for editors."""

import ast

import my_ops
import pytest
from autograd_bridge.stubs import stubs


@pytest.mark.parametrize("framework", ["numpy", "jax", "torch", "paddle"])
def test_the_types_are_python(framework):
    text = stubs(my_ops, framework)
    functions = [of for of in ast.parse(text).body if isinstance(of, ast.FunctionDef)]
    assert [of.name for of in functions] == list(my_ops.__ops__)
    gate = next(of for of in functions if of.name == "gate")
    assert [of.arg for of in gate.args.args] == ["x", "rows", "by"] and len(gate.args.defaults) == 1
    assert "by: f64, 2.0 if it is not given" in ast.get_docstring(gate)
    assert "Shapes: x: [n..] -> [n..]" in ast.get_docstring(functions[0])
