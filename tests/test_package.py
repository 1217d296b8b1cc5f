"""The package as a whole: its names, its layers, and what importing it does."""

import ast
import re
import subprocess
import sys
from importlib.metadata import metadata, requires
from pathlib import Path

import pytest

import mdal

PACKAGE = Path(mdal.__file__).parent
ROOT = Path(__file__).parent.parent

# From the lowest layer up: a module imports only those before it.
LAYERS = {
    0: ["_version", "_atomic", "_unchanged", "_validation"],
    1: [
        "_base",
        "_crossfit",
        "tables",
        "budget",
        "divergence",
        "bounds",
        "similarity",
        "scores",
        "strategies",
        "svm_text",
    ],
    2: [
        "_generators",
        "_threads",
        "modules",
        "losses",
        "perturbations",
        "objectives",
        "streams",
        "persistence",
        "net",
    ],
    3: ["model_selection", "learner"],
    4: [
        "datasets",
        "experiment",
        "plotting",
        "report",
        "_sheets",
        "labels",
        "exchange",
        "_pools",
        "session",
        "_commands",
        "__init__",
        "__main__",
    ],
}
ORDER = [module for layer in LAYERS.values() for module in layer]
FOLDERS = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}


MODULES = [name for name in ORDER if not name.startswith("_")]


def files(module):
    """The file of a module, or all files of a folder of modules."""
    return (
        [PACKAGE / f"{module}.py"]
        if module not in FOLDERS
        else sorted((PACKAGE / module).rglob("*.py"))
    )


def imports(module):
    """Pairs of an imported module's name and whether it is in this package.

    What the files of a folder import from each other is left out.
    """
    for path in files(module):
        outside = len(path.relative_to(PACKAGE).parts)
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                yield from ((alias.name, False) for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                yield node.module, False
            elif isinstance(node, ast.ImportFrom) and node.level == outside:
                names = [node.module] if node.module else [a.name for a in node.names]
                yield from ((name, True) for name in names)


def run(code):
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    return result.stdout.strip()


def test_every_module_has_a_layer():
    assert {path.stem for path in PACKAGE.glob("*.py")} | FOLDERS == set(ORDER)


@pytest.mark.parametrize("module", ORDER)
def test_imports_point_downwards(module):
    for name, ours in imports(module):
        if ours:
            assert ORDER.index(name) < ORDER.index(module), f"{module} imports {name}"
        else:
            assert not name.startswith("mdal"), "imports of our own are relative"
            # Private parts of other packages may change without notice.
            assert not any(part.startswith("_") for part in name.split("."))


@pytest.mark.parametrize("module", LAYERS[0] + LAYERS[1])
def test_the_maths_needs_no_torch(module):
    roots = {name.split(".")[0] for name, _ in imports(module)}
    assert not roots & {"torch", "skorch"}


def test_every_public_name_exists_and_is_documented():
    assert mdal.__all__ == sorted(mdal.__all__)
    assert set(MODULES) | {"CompositeActiveLearner", "__version__"} == set(mdal.__all__)
    for module_name in MODULES:
        module = getattr(mdal, module_name)
        assert module.__all__ == sorted(module.__all__)
        for name in module.__all__:
            public = getattr(module, name)
            if callable(public):
                assert "Examples\n" in public.__doc__, name
                assert ">>> " in public.__doc__, name


def test_importing_moves_no_global_state():
    code = """
import logging, random, warnings
import numpy, sklearn, torch
def state():
    root = logging.getLogger()
    return (repr(numpy.random.get_state()), torch.get_rng_state().tolist(),
            torch.get_default_dtype(), torch.get_num_threads(), random.getstate(),
            sklearn.get_config(), root.level, list(root.handlers),
            repr(numpy.geterr()))
before, filters = state(), list(warnings.filters)
import mdal
assert state() == before
print(len(warnings.filters) - len(filters))
"""
    # scikit-learn's and scipy's own imports may add filters; ours adds none.
    ours = run(code)
    theirs = run(
        code.replace(
            "import mdal",
            "import sklearn.kernel_approximation, sklearn.linear_model, sklearn.dummy,"
            " sklearn.pipeline, sklearn.metrics.pairwise, scipy.optimize, tqdm",
        )
    )
    assert ours == theirs


def test_importing_is_quick():
    def seconds(code):
        """Of the processor, which other work on the machine does not change."""
        measured = f"import time\n{code}\nprint(time.process_time())"
        return min(float(run(measured)) for _ in range(2))

    assert seconds("import mdal") < 1.5 * seconds("import torch, skorch")


def test_the_version_is_that_of_the_distribution():
    assert metadata("mdal-learn")["Version"] == mdal.__version__


def test_dependencies_have_lower_bounds_and_no_caps():
    for requirement in requires("mdal-learn"):
        assert re.fullmatch(r"[\w-]+>=[\d.]+(; .*)?", requirement), requirement


def test_the_readme_has_one_command_for_the_main_job_and_one_for_the_tests():
    lines = (ROOT / "README.md").read_text().splitlines()
    commands = [line for line in lines if line.startswith("python3 -m venv")]
    assert len(commands) == 2
    assert [("pytest" in command) for command in commands] == [False, True]
    for command in commands:
        assert "-c constraints.txt" in command
