"""What pages of doc/ have in fenced blocks: commands and files, taken out and run as a reader would.

A block's first line says what it is (the rest of that line is no part of what a reader sees):

    ```sh                       commands, all of a page in one shell, one after another; they must not fail
    ```sh not-run="REASON"      commands that want what a test has not: a kernel's tracefs, other hosts
    ```c file=server.c          a file that is to be there before the commands behind it; of any language
    ```text printed             what the commands before it print: each of its lines is found there, in which a number
                                stands for any other number, and the sign … for any text
    ```ulm record=NAME          records as they are written, and in another block the same in the other format (bp): each converts into the
                                other. ulm read, ulm written: what is read of the first is written as the second (fraction=microseconds is
                                how). ulm malformed, text why: none of these lines is read, for these reasons
    ```                         anything else is only shown

Commands find the programs in the build folder, a library to compile with (pkg-config), the drawings that come with nlv, and a shared
memory of their own.
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
    """One fenced block: its language, what else its first line says, its text, and the line where it begins."""
    language: str
    words: dict
    text: str
    line: int


def blocks(text):
    """The fenced blocks of a page, in order."""
    for found in FENCE.finditer(text):
        language, _, rest = found.group(1).partition(" ")
        words = dict(word.partition("=")[::2] for word in shlex.split(rest))
        yield Block(language, words, found.group(2), text.count("\n", 0, found.start()) + 1)


def plain(text):
    """The page without what its blocks' first lines say besides the language."""
    return FENCE.sub(lambda found: "```" + found.group(1).partition(" ")[0] + "\n" + found.group(2) + "```", text)


def is_command(block):
    return block.language == "sh" and "not-run" not in block.words


def environment(build, source, folder):
    """What commands of a page find around them. folder is for what is not the reader's: pkg-config's file, rings."""
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
    """A bash script of the page's commands; what each block prints goes into a file of its number in scratch/printed."""
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
    """What a line of a printed block matches: numbers are any numbers, runs of blanks any, … is anything."""
    words = (re.sub(r"\d+(?:\\\.\d+)*", lambda _: r"[\d.]+", re.escape(word)).replace("…", ".*") for word in line.split())
    return re.compile(r"\s+".join(words))


class Failed(Exception):
    """A page's commands do not do what the page says; str() says where and how."""


def run(path, scratch, build, source, timeout=300):
    """Runs a page's commands in the folder scratch/work, which is then the reader's; Failed says what went wrong.

    In namespaces of its own where there may be some: so the ports that a reader uses are free, and nothing runs on afterwards.
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
