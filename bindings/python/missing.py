"""If this Python lacks something that building the module requires, prints the first such requirement and exits with status 1."""
import importlib.util
import os
import sys
import sysconfig

REMEDY = "run packaging/install-dependencies build, or configure with BINDING_PYTHON=PROGRAM"


def missing():
    if sys.version_info < (3, 9):
        return f"{sys.executable} is older than 3.9; {REMEDY}"
    for name in ("setuptools", "wheel"):
        if importlib.util.find_spec(name) is None:
            return f"no {name} in {sys.executable}; {REMEDY}"
    if not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")):
        return f"no Python.h of {sys.executable}; {REMEDY}"
    return None


sys.exit(missing())
