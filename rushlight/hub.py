"""`torch.hub`: files and models by their address, kept in a folder.

The folder is `set_dir`'s, or `$TORCH_HOME/hub`; TORCH_HOME is `$XDG_CACHE_HOME/torch` or `~/.cache/torch` where it isn't set.
A repository of models holds a `hubconf.py`, whose functions build them: it is the program of somebody else, and `load` runs it.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path
from types import ModuleType
from urllib.parse import urlparse
from urllib.request import Request, urlopen

from rushlight.core.lazy_module import LazyModule

serialization = LazyModule("rushlight.serialization")
__all__ = ["download_url_to_file", "get_dir", "help", "list", "load", "load_state_dict_from_url", "set_dir"]



def __getattr__(name: str):
    if name == "tqdm":  # an extra, which programs import from here
        from tqdm import tqdm

        return tqdm
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")
_chosen: str | None = None
_CHUNK = 128 << 10
_list = list


def _get_torch_home() -> str:
    default = os.path.join(os.environ.get("XDG_CACHE_HOME", "~/.cache"), "torch")
    return os.path.expanduser(os.environ.get("TORCH_HOME", default))


def get_dir() -> str:
    """Return the folder of downloaded repositories and, in `checkpoints`, of files of weights."""
    return _chosen if _chosen is not None else os.path.join(_get_torch_home(), "hub")


def set_dir(d: str | os.PathLike) -> None:
    """Choose the folder."""
    global _chosen
    _chosen = os.path.expanduser(os.fspath(d))


def download_url_to_file(url: str, dst: str, hash_prefix: str | None = None, progress: bool = True) -> None:
    """Fetch a file. It appears under `dst` when it is whole.

    `hash_prefix`: how its SHA-256 must begin; RuntimeError for another. `progress`: say so on standard error.
    """
    dst = os.path.expanduser(dst)
    digest = hashlib.sha256()
    with urlopen(Request(url, headers={"User-Agent": "rushlight.hub"})) as source:
        handle, temporary = tempfile.mkstemp(dir=os.path.dirname(os.path.abspath(dst)), suffix=".partial")
        try:
            with os.fdopen(handle, "wb") as target:
                total = 0
                while chunk := source.read(_CHUNK):
                    target.write(chunk)
                    digest.update(chunk)
                    total += len(chunk)
            if hash_prefix is not None and not digest.hexdigest().startswith(hash_prefix):
                raise RuntimeError(f'invalid hash value (expected "{hash_prefix}", got "{digest.hexdigest()}")')
            if progress:
                sys.stderr.write(f"{url}: {total:,} bytes\n")
            shutil.move(temporary, dst)
        finally:
            if os.path.exists(temporary):
                os.remove(temporary)


def load_state_dict_from_url(
    url: str,
    model_dir: str | None = None,
    map_location: object = None,
    progress: bool = True,
    check_hash: bool = False,
    file_name: str | None = None,
    weights_only: bool = True,
) -> dict:
    """Load the state dict in the file at an address. The file is downloaded once, into `model_dir`.

    `check_hash`: the name of the file ends in `-` and the beginning of its SHA-256, which must be right.
    """
    folder = model_dir if model_dir is not None else os.path.join(get_dir(), "checkpoints")
    os.makedirs(folder, exist_ok=True)
    name = file_name or os.path.basename(urlparse(url).path)
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        sys.stderr.write(f'Downloading: "{url}" to {path}\n')
        found = HASH_REGEX.search(name) if check_hash else None
        download_url_to_file(url, path, found[1] if found else None, progress=progress)
    return serialization.load(path, map_location=map_location, weights_only=weights_only)


# Repositories


def _parse_repo_info(github: str) -> tuple[str, str, str]:
    """Return owner, name and branch of "owner/name:branch"; ValueError for other text."""
    found = re.fullmatch(r"([\w.-]+)/([\w.-]+)(?::([\w./-]+))?", github)
    if found is None:
        raise ValueError(f"expected a repository as owner/name or owner/name:branch, got {github!r}")
    return found[1], found[2], found[3] or ""


def _fetch_repository(github: str, force_reload: bool, verbose: bool) -> str:
    owner, name, branch = _parse_repo_info(github)
    branch = branch or "main"
    folder = Path(get_dir()) / "_".join((owner, name, branch.replace("/", "_")))
    if folder.exists() and not force_reload:
        if verbose:
            sys.stderr.write(f"Using cache found in {folder}\n")
        return str(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as work:
        archive = os.path.join(work, "repository.zip")
        download_url_to_file(f"https://github.com/{owner}/{name}/zipball/{branch}", archive, progress=False)
        with zipfile.ZipFile(archive) as packed:
            packed.extractall(os.path.join(work, "files"))
        (content,) = Path(work, "files").iterdir()
        shutil.rmtree(folder, ignore_errors=True)
        shutil.move(str(content), folder)
    return str(folder)


def _ensure_trusted(github: str, trust_repo: object) -> None:
    """Ask the user whether to run a repository's code, unless it is trusted already; raise an exception if not."""
    if trust_repo is True:
        return
    owner, name, _ = _parse_repo_info(github)
    known = Path(get_dir()) / "trusted_list"
    if f"{owner}_{name}" in (known.read_text().split() if known.exists() else ()):
        return
    if trust_repo is False or trust_repo is None or trust_repo == "check":
        question = f"The repository {owner}/{name} is a program of somebody else, which will run. Do you trust it (y/N)? "
        if input(question).strip().lower() not in ("y", "yes"):
            raise Exception("Untrusted repository.")
        known.parent.mkdir(parents=True, exist_ok=True)
        with known.open("a") as target:
            target.write(f"{owner}_{name}\n")


def _repository(repo_or_dir: str, source: str, trust_repo: object, force_reload: bool, verbose: bool) -> ModuleType:
    if source not in ("github", "local"):
        raise ValueError(f'Unknown source: "{source}". Allowed values: "github" | "local".')
    if source == "github":
        _ensure_trusted(repo_or_dir, trust_repo)
        repo_or_dir = _fetch_repository(repo_or_dir, force_reload, verbose)
    path = os.path.join(repo_or_dir, "hubconf.py")
    if not os.path.exists(path):
        raise FileNotFoundError(f"{repo_or_dir} has no hubconf.py, which would say which models it has")
    sys.path.insert(0, repo_or_dir)
    try:
        spec = importlib.util.spec_from_file_location("hubconf", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(repo_or_dir)
    missing = [name for name in getattr(module, "dependencies", ()) if importlib.util.find_spec(name) is None]
    if missing:
        raise RuntimeError(f"Missing dependencies: {', '.join(missing)}")
    return module


def _entry(module: ModuleType, model: str):
    if not isinstance(model, str):
        raise ValueError("Invalid input: model should be a string of function name")
    function = getattr(module, model, None)
    if not callable(function):
        raise RuntimeError(f"Cannot find callable {model} in hubconf")
    return function


def load(
    repo_or_dir: str,
    model: str,
    *args: object,
    source: str = "github",
    trust_repo: object = None,
    force_reload: bool = False,
    verbose: bool = True,
    skip_validation: bool = False,
    **kwargs: object,
) -> object:
    """Call the function `model` of a repository's hubconf.py with the other arguments, and return its result.

    `repo_or_dir`: "owner/name:branch" of GitHub, or with source="local" a folder. `trust_repo=True`: don't ask first.
    `force_reload`: fetch it anew. `skip_validation` is for forks, which are not looked for here.
    """
    return _entry(_repository(repo_or_dir, source, trust_repo, force_reload, verbose), model)(*args, **kwargs)


def list(  # noqa: A001  (torch's name)
    github: str, force_reload: bool = False, skip_validation: bool = False, trust_repo: object = None, verbose: bool = True
) -> _list[str]:
    """Return the names of a repository's models."""
    module = _repository(github, "github", trust_repo, force_reload, verbose)
    return [name for name, value in vars(module).items() if callable(value) and not name.startswith("_")]


def help(  # noqa: A001  (torch's name)
    github: str, model: str, force_reload: bool = False, skip_validation: bool = False, trust_repo: object = None
) -> str | None:
    """Return a repository's description of one of its models."""
    return _entry(_repository(github, "github", trust_repo, force_reload, True), model).__doc__
