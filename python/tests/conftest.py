"""The module of the example, and how frameworks are found."""

import gc
import importlib.util
import os

import pytest

# Results are compared, not timed.
os.environ.setdefault("JAX_PLATFORMS", "cpu")

FRAMEWORKS = ("jax", "paddle", "torch")


def pytest_ignore_collect(collection_path, config):
    """A framework that is not installed is named once, and its tests are not collected."""
    for name in FRAMEWORKS:
        if collection_path.name.startswith(f"test_{name}") and importlib.util.find_spec(name) is None:
            return True
    return None


def pytest_report_header(config):
    absent = [name for name in FRAMEWORKS if importlib.util.find_spec(name) is None]
    return [f"{name} is not installed: its tests are skipped" for name in absent]


@pytest.fixture(autouse=True)
def imports_are_freed():
    import my_ops

    before = my_ops.live_imports()
    yield
    # A collection takes longer than most tests.
    if my_ops.live_imports() > before:
        gc.collect()
    assert my_ops.live_imports() <= before
