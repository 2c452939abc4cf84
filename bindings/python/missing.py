"""Prints the requirement for building the library's module that this Python lacks, and exits with 1. Prints nothing if all are met."""
import importlib.util
import os
import sys
import sysconfig


def missing():
    if sys.version_info < (3, 9):
        return "Python is older than 3.9"
    for name in ("setuptools", "wheel"):
        if importlib.util.find_spec(name) is None:
            return f"no {name}"
    if not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")):
        return "no Python.h"
    return None


sys.exit(missing())
