"""Private neural networks: skorch nets, and modules that need no torch code.

torch, skorch and Opacus are loaded when one of the names is first used; the extra ``nn`` installs
them.
"""

import re

# Names stand only in the stub, which type checkers and editors read.
_STUB = __spec__.loader.get_data(f"{__path__[0]}/__init__.pyi").decode()
_IMPORTED = re.findall(r"(?m)^from (skdptune\S+) import\W+(\w+)", _STUB)
_MODULES = {name: module for module, name in _IMPORTED}
__all__ = sorted(_MODULES)


def __getattr__(name: str) -> object:
    """Load a public name, which also loads torch."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    from skdptune._validation import installed

    with installed(f"{name} needs", "nn"):
        return getattr(importlib.import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    """List the public classes."""
    return list(__all__)
