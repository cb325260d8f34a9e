"""Ops of Rust in the frameworks of Python.

A module that ``autograd_python::export!`` made has ops as values. ``bind`` of one of the modules here turns them into
functions of a framework::

    import my_ops
    from autograd_bridge.jax import bind  # or .numpy, .torch, .paddle

    ops = bind(my_ops)
    y = ops.cus_tanh(x)

``python -m autograd_bridge.stubs my_ops jax`` writes their types for editors.
"""
