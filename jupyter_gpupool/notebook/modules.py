"""Finds the modules beside a notebook or script, for its claim's workers to import.

Called by `greeting`, in a thread. What a folder holds besides Python sources stays where it is.
"""

import sys
import sysconfig
import zipfile
from functools import lru_cache
from io import BytesIO
from pathlib import Path

from .modules_plugin import ModulesBeside, fingerprint, python_files

_MOST_BYTES = 10 * 10**6


def modules_beside() -> ModulesBeside | None:
    """Those that this Python itself imports from beside what it runs; None if there are none."""
    try:
        folder = _own_folder()
        mark = "" if folder is None or _is_installed(folder) else fingerprint(str(folder))
        return _of(str(folder), mark) if mark else None
    except OSError:
        # It moved away meanwhile, or is no longer ours to read.
        return None


@lru_cache(maxsize=4)
def _of(folder: str, mark: str) -> ModulesBeside:
    return ModulesBeside(folder=folder, fingerprint=mark, copy=_zipped(folder))


def _own_folder() -> Path | None:
    if "" in sys.path:
        return Path.cwd()
    main = sys.modules.get("__main__")
    script, spec = getattr(main, "__file__", None), getattr(main, "__spec__", None)
    if not script:
        return None
    # Run by `python -m a.b`, it imports from where `a` is.
    return Path(script).resolve().parents[spec.name.count(".") if spec else 0]


def _is_installed(folder: Path) -> bool:
    """Whether it is a command's own folder, or that of a package: no user's."""
    paths = sysconfig.get_paths()
    places = [Path(paths[kind]).resolve() for kind in ("purelib", "platlib", "stdlib", "scripts")]
    return any(folder.resolve().is_relative_to(place) for place in places)


def _zipped(folder: str) -> bytes | None:
    files = list(python_files(folder))
    if sum(stat.st_size for _name, stat in files) > _MOST_BYTES:
        return None
    packed = BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, _stat in files:
            archive.writestr(name, Path(folder, name).read_bytes())
    return packed.getvalue()
