"""Prints the directory below PREFIX (folder.py PREFIX) in which this Python searches for modules, or the usual directory if it searches none there."""
import os
import site
import sys


def folder(prefix):
    usual = os.path.join(prefix, "lib", "python%d.%d" % sys.version_info[:2], "site-packages")
    # Skip /usr/lib, which is for the distribution's packages; there, the directory for all versions of Python comes
    # first.
    known = [path for path in site.getsitepackages() if path.startswith(os.path.join(prefix, "lib", "python"))]
    return os.path.relpath(([path for path in known if path.endswith("python3/dist-packages")] or known or [usual])[0], prefix)


print(folder(os.path.normpath(sys.argv[1])))
