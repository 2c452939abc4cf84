"""Runs the commands in the fenced blocks of pages of doc/, as a reader would.

The first line of a block has the language and attributes. The site does not show the attributes:

    ```sh                       commands. All commands of a page run in one shell, in order; none may fail
    ```sh not-run="REASON"      commands that a test cannot run, for example because they need other hosts
    ```c file=server.c          a file, in any language, that the following commands use
    ```text printed             lines that the preceding commands print. A number matches any number, and … matches any text
    ```ulm record=NAME          records in ULM. The bp block with the same NAME has the same records in BP
    ```ulm read                 lines that nlconv reads. It writes them as in the following block, "ulm written"; fraction=microseconds
                                selects this option
    ```ulm malformed            lines that nlconv rejects, for the reasons in the following block, "text why"
    ```                         other blocks are only shown

The commands find the programs in the build directory, the library (with pkg-config) and nlv's drawings. They have their own shared memory.
"""
import dataclasses
import os
import pathlib
import re
import shlex
import shutil
import subprocess

FENCE = re.compile(r"^```(.*)\n((?:(?!```$).*\n)*)```$", re.M)
PROGRAM_FOLDERS = ("netlogd", "nlsort", "nltools", "nlv", "nlagent", "nlkernel", "examples/dpss", "examples/adaptive")


@dataclasses.dataclass
class Block:
    """A fenced block: its language, its attributes, its text, and the number of its first line."""
    language: str
    words: dict
    text: str
    line: int


def blocks(text):
    """Yields the fenced blocks of a page, in order."""
    for found in FENCE.finditer(text):
        language, _, rest = found.group(1).partition(" ")
        words = dict(word.partition("=")[::2] for word in shlex.split(rest))
        yield Block(language, words, found.group(2), text.count("\n", 0, found.start()) + 1)


def plain(text):
    """Returns the page without the attributes of its blocks."""
    return FENCE.sub(lambda found: "```" + found.group(1).partition(" ")[0] + "\n" + found.group(2) + "```", text)


def is_command(block):
    return block.language == "sh" and "not-run" not in block.words


def environment(build, source, folder):
    """Returns the environment of a page's commands. `folder` is for files that a reader would not see, such as rings."""
    library = build / "libnetlogger" / ".libs"
    (folder / "rings").mkdir(parents=True, exist_ok=True)
    (folder / "netlogger.pc").write_text(
        f"Name: netlogger\nDescription: d\nVersion: 0\nCflags: -I{source}/libnetlogger/include\n"
        f"Libs: -L{library} -lnetlogger -Wl,-rpath,{library}\n")
    drawings = folder / "share" / "netlogger" / "drawings"
    drawings.mkdir(parents=True)
    for path in [*(source / "nlv" / "drawings").glob("*.nlv"), source / "examples" / "dpss" / "dpss.nlv"]:
        shutil.copy(path, drawings)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("NETLOGGER_")}
    return {**kept, "PATH": ":".join(str(build / name) for name in PROGRAM_FOLDERS) + f":{os.environ['PATH']}:/usr/sbin",
            "PKG_CONFIG_PATH": str(folder), "NETLOGGER_SHM": str(folder / "rings"), "HOME": str(folder), "XDG_DATA_HOME": str(folder / "share"),
            "LC_ALL": "C.UTF-8",
            "ASAN_OPTIONS": "detect_leaks=0"}


def script(page, scratch):
    """Returns a bash script of the page's commands. The script writes the output of block N to scratch/printed/N."""
    lines = ["set -eu", "trap 'kill $(jobs -p) 2>/dev/null || true' EXIT"]
    for number, block in enumerate(page):
        if "file" in block.words:
            text = scratch / "files" / str(number)
            text.parent.mkdir(exist_ok=True)
            text.write_text(block.text)
            lines.append(f"cp {shlex.quote(str(text))} {shlex.quote(block.words['file'])}")
        elif is_command(block):
            printed = shlex.quote(str(scratch / "printed" / str(number)))
            lines += [f"echo {number} >{shlex.quote(str(scratch / 'at'))}", "{", block.text.rstrip("\n"), f"}} >{printed} 2>&1"]
    return "\n".join(lines) + "\n"


def pattern(line):
    """Returns a pattern for a line of a printed block. Numbers match any numbers, blanks any blanks, and … any text."""
    words = (re.sub(r"\d+(?:\\\.\d+)*", lambda _: r"[\d.]+", re.escape(word)).replace("…", ".*") for word in line.split())
    return re.compile(r"\s+".join(words))


class Failed(Exception):
    """A page's command failed, or printed other text than the page shows. str() returns the place and the reason."""


def run(path, scratch, build, source, timeout=300):
    """Runs a page's commands in the directory scratch/work. Raises Failed if a command fails or prints other text.

    If possible, runs the commands in new namespaces, so that all ports are free, and no process remains afterwards.
    """
    page = list(blocks(path.read_text()))
    for folder in "work", "printed", "surroundings":
        (scratch / folder).mkdir(parents=True)
    text = script(page, scratch)
    (scratch / "script").write_text(text)
    alone = ["unshare", "-rn", "--pid", "--fork", "--kill-child", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
    if subprocess.run([*alone, "true"], capture_output=True).returncode != 0:
        alone = []
    try:
        result = subprocess.run([*alone, "bash", str(scratch / "script")], cwd=scratch / "work", stdin=subprocess.DEVNULL,
                                env=environment(build, source, scratch / "surroundings"), timeout=timeout, capture_output=True, text=True)
        status, message = result.returncode, result.stderr
    except subprocess.TimeoutExpired:
        status, message = 1, f"not done within {timeout} s"
    if status != 0:
        number = int((scratch / "at").read_text())
        printed = (scratch / "printed" / str(number)).read_text(errors="replace")
        raise Failed(f"{path.name}:{page[number].line}: exit status {status}: {message}{printed[-2000:]}")
    printed = ""
    for number, block in enumerate(page):
        if is_command(block):
            printed = (scratch / "printed" / str(number)).read_text(errors="replace")
        elif "printed" in block.words:
            for line in block.text.splitlines():
                if line.strip() and not pattern(line).search(printed):
                    raise Failed(f"{path.name}:{block.line}: {line.strip()!r} is not what is printed:\n{printed[-4000:]}")
