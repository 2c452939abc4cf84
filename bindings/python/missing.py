"""If this Python lacks something that building the module requires, prints the first such requirement and exits with status 1."""
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
