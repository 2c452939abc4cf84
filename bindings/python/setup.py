"""The part of the build that pyproject.toml cannot describe: the extension, with the library that pkg-config finds."""
import os
import pathlib
import shlex
import subprocess

from setuptools import Extension, setup
from wheel.bdist_wheel import bdist_wheel

LIMITED_API = "0x03090000"


def asked(option):
    """Returns the flags of pkg-config for the library."""
    command = [*shlex.split(os.environ.get("PKG_CONFIG", "pkg-config")), option, "netlogger"]
    try:
        return shlex.split(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
    except (OSError, subprocess.CalledProcessError) as why:
        raise SystemExit(
            f"{shlex.join(command)}: {why}\nInstall NetLogger first, or set PKG_CONFIG_PATH=DIRECTORY/lib/pkgconfig"
        ) from None


def library_folders(flags):
    """Returns the directories of the library for the run-time linker, which may not search them by default."""
    if "NETLOGGER_RPATH" in os.environ:
        return os.environ["NETLOGGER_RPATH"].split()
    return [flag[2:] for flag in flags if flag.startswith("-L")]


class abi3_wheel(bdist_wheel):
    """The build makes one wheel for all versions of Python from 3.9 on."""

    def get_tag(self):
        python, abi, platform = super().get_tag()
        return ("cp39", "abi3", platform) if python.startswith("cp") else (python, abi, platform)


def extension():
    compile_flags = shlex.split(os.environ.get("NETLOGGER_CFLAGS", "")) or asked("--cflags")
    link_flags = shlex.split(os.environ.get("NETLOGGER_LIBS", "")) or asked("--libs")
    return Extension(
        "netlogger._core",
        sorted(str(path) for path in pathlib.Path("src").glob("*.c")),
        depends=["src/core.h"],
        define_macros=[("Py_LIMITED_API", LIMITED_API)],
        extra_compile_args=["-std=gnu11", "-fvisibility=hidden", *compile_flags],
        extra_link_args=[*link_flags, *(f"-Wl,-rpath,{folder}" for folder in library_folders(link_flags))],
        py_limited_api=True,
    )


os.chdir(pathlib.Path(__file__).resolve().parent)
setup(
    packages=["netlogger"],
    package_data={"netlogger": ["py.typed", "*.pyi"]},
    ext_modules=[extension()],
    cmdclass={"bdist_wheel": abi3_wheel},
)
