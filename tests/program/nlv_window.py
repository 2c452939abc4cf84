"""nlv's window on a virtual display, operated by real input events, and seen as by a screen reader."""
import collections.abc
import datetime
import functools
import json
import os
import pathlib
import random
import re
import shutil
import struct
import subprocess
import time

import support


def requests(count=50):
    """Returns a log of requests on two hosts, with the load of one host."""
    lines = []
    for i in range(count):
        t = i * 10000
        for step, (event, host, offset) in enumerate([("Client.Send", "c", 0), ("Server.Recv", "s", 1000),
                                                      ("Server.Done", "s", 6000), ("Client.Recv", "c", 7000)]):
            lines.append((t + offset, f"HOST={host} PROG=p LVL=Usage NL.EVNT={event} REQ.ID=r{i} KIND={i % 2}"))
        lines.append((t + 5, f"HOST=s PROG=sensor LVL=System NL.EVNT=Load LOAD={i % 7}.5"))
    lines.append((1234, "HOST=s PROG=p LVL=Error NL.EVNT=Oops"))
    return "".join(f"DATE=20260101120000.{t:06d} {rest}\n" for t, rest in lines)


def branching_requests(count, slow=(), failed=(), seed=1):
    """Returns a log of requests that branch: a web server calls a database and a cache on two other hosts at the same time, and
    then renders the page. In the requests `slow`, the database takes 250 ms; the requests `failed` end with status 500."""
    draw = random.Random(seed)
    lines, begin = [], 0
    for i in range(count):
        begin += int(draw.expovariate(1 / 2000)) + 1
        query = 250000 if i in slow else int(draw.lognormvariate(7.6, 0.35))
        cache, render = int(draw.lognormvariate(7, 0.4)), int(draw.lognormvariate(6.5, 0.3))
        end = begin + 400 + max(query, cache) + render
        for time_us, host, event, more in [
                (begin, "web", "Serve.start", ""), (begin + 100, "db", "Query.start", ""), (begin + 120, "cache", "Lookup.start", ""),
                (begin + 120 + cache, "cache", "Lookup.end", ""), (begin + 100 + query, "db", "Query.end", ""),
                (end - render, "web", "Render.start", ""), (end - 20, "web", "Render.end", ""),
                (end, "web", "Serve.end", f" STATUS={500 if i in failed else 200}")]:
            lines.append((time_us, f"HOST={host} PROG=shop LVL={'Error' if more.endswith('500') else 'Usage'} NL.EVNT={event} REQ.ID=r{i}{more}"))
    lines.sort()
    start = datetime.datetime(2026, 1, 1, 12)
    return "".join(f"DATE={start + datetime.timedelta(microseconds=t):%Y%m%d%H%M%S.%f} {rest}\n" for t, rest in lines)


def threads(count):
    """Returns a log of threads on two hosts. Each thread runs a span of 80 ms with a nested span, in which it waits for a disk."""
    lines = []
    for i in range(count):
        tid, host, t = 100 + i, f"h{i % 2}", 10000 + i * 10
        lines += [(t + 80000, f"HOST={host} PROG=app LVL=Usage NL.EVNT=Serve PID=9 TID={tid} DUR.MS=80"),
                  (t + 60000, f"HOST={host} PROG=app LVL=Usage NL.EVNT=Query PID=9 TID={tid} DUR.MS=40")]
        for at, before, after, state in [(0, 0, tid, 0), (20000, tid, 0, 2), (60000, 0, tid, 0), (80000, tid, 0, 1)]:
            lines.append((t + at, f"HOST={host} PROG=app LVL=System NL.EVNT=sched.sched_switch CPU={i} TID={before} PREV.COMM=app "
                                  f"PREV.PID={before} PREV.STATE={state} NEXT.COMM=app NEXT.PID={after}"))
    return "".join(f"DATE=20260101120000.{t:06d} {rest}\n" for t, rest in sorted(lines))


def measurements(hosts, fields):
    """Returns a log with a measurement of each field on each host. The values of a host and field never change."""
    return "".join(
        f"DATE=20260101120000.{100000 + i * 1000 + host:06d} HOST=h{host} PROG=p LVL=Usage NL.EVNT=E{field // 2} "
        f"V{field}={(host + 1) * 10 + i % 2} V{field + 1}={(host + 1) * 10 + i % 2}\n"
        for i in range(300) for field in range(0, fields, 2) for host in range(1, hosts + 1))


def strips(picture, x, top, bottom):
    """Returns the colors and heights of the strips that a vertical line crosses."""
    found = []
    for y in range(top, bottom):
        pixel = picture[y][x]
        if max(pixel) - min(pixel) < 15:
            continue
        if found and found[-1][0] == pixel and found[-1][2] == y:
            found[-1] = (pixel, found[-1][1] + 1, y + 1)
        else:
            found.append((pixel, 1, y + 1))
    return [(color, height) for color, height, _ in found if height > 1]  # without the edges of strips


class Picture(collections.abc.Sequence):
    """The pixels of the display as rows of (red, green, blue). Decodes a row when it is first used."""

    def __init__(self, rows, step):
        """The rows are bytes, and each pixel has `step` bytes: blue, green, red, unused."""
        self.rows, self.step, self.decoded = rows, step, {}

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, y):
        if isinstance(y, slice):
            return [self[i] for i in range(*y.indices(len(self)))]
        if y not in self.decoded:
            row = self.rows[y]
            self.decoded[y] = list(zip(row[2::self.step], row[1::self.step], row[0::self.step]))
        return self.decoded[y]

    def __eq__(self, other):
        return self.rows == other.rows

    def places(self, color):
        """Returns the places (x, y) of all pixels of a color."""
        wanted = bytes(reversed(color))
        return [(x, y) for y, row in enumerate(self.rows) if wanted in row for x, pixel in enumerate(self[y]) if pixel == color]


@functools.cache
def has_screen_reader_interface():
    return subprocess.run(["/usr/bin/python3", "-c", "import gi; gi.require_version('Atspi', '2.0')"], capture_output=True).returncode == 0


class WindowCase(support.Case):
    def setUp(self):
        super().setUp()
        self.nlv = support.program("nlv/nlv")
        for tool in ["Xvfb", "xdotool"]:
            if shutil.which(tool) is None:
                self.skipTest(f"no {tool} here")
        read_end, write_end = os.pipe()
        # Without this option, Xvfb would restart when its last client (such as xdotool) disconnects, and would reject clients
        # during the restart.
        self.start("Xvfb", "-noreset", "-displayfd", str(write_end), "-screen", "0", "1280x900x24", "-nolisten", "tcp",
                   pass_fds=[write_end], stderr=subprocess.DEVNULL)
        os.close(write_end)
        with os.fdopen(read_end) as pipe:
            display = pipe.readline().strip()
        self.environment = {**os.environ, "DISPLAY": f":{display}", "GDK_BACKEND": "x11", "NO_AT_BRIDGE": "1",
                            "HOME": str(self.scratch), "XDG_CACHE_HOME": str(self.scratch / "cache"),
                            "DBUS_SESSION_BUS_ADDRESS": "unix:path=/nonexistent"}  # a test does not start it
        # Animations and blinking cursors would redraw the window many times.
        settings = self.scratch / ".config" / "gtk-3.0" / "settings.ini"
        settings.parent.mkdir(parents=True)
        settings.write_text("[Settings]\ngtk-enable-animations=0\ngtk-cursor-blink=0\n")
        self.environment.pop("XDG_CONFIG_HOME", None)
        self.screen_reader = None
        self.log = self.scratch / "a.log"
        self.log.write_text(requests())

    def start_bus(self):
        """Starts a bus for accessible(), which shows the window as a screen reader sees it."""
        for tool in ["/usr/bin/python3", "dbus-daemon"]:
            if shutil.which(tool) is None:
                self.skipTest(f"no {tool} here")
        if not has_screen_reader_interface():
            self.skipTest("no AT-SPI for Python here")
        read_end, write_end = os.pipe()
        self.start("dbus-daemon", "--session", "--nofork", f"--print-address={write_end}", pass_fds=[write_end],
                   env=self.environment, stderr=subprocess.DEVNULL)
        os.close(write_end)
        with os.fdopen(read_end) as pipe:
            self.environment["DBUS_SESSION_BUS_ADDRESS"] = pipe.readline().strip()
        del self.environment["NO_AT_BRIDGE"]

    def accessible(self, *words):
        """Returns the output of accessible.py. It waits a few seconds for an object that does not exist yet."""
        if not self.screen_reader:
            script = pathlib.Path(__file__).with_name("accessible.py")
            self.screen_reader = self.start("/usr/bin/python3", "-W", "ignore", script, "nlv", env=self.environment, text=True,
                                            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        print(json.dumps(words), file=self.screen_reader.stdin, flush=True)
        status, output, errors = json.loads(self.screen_reader.stdout.readline())
        self.assertEqual(status, 0, (words, errors))
        return [json.loads(line) for line in output.splitlines()]

    def texts(self):
        return self.accessible("texts")

    def focus(self, name):
        """Gives the keyboard focus to a window with this title, as a window manager would."""
        support.wait_until(lambda: self.xdotool("search", "--onlyvisible", "--name", name), what=f"a window {name}")
        self.xdotool("search", "--onlyvisible", "--name", name, "windowfocus", "--sync")
        time.sleep(0.5)

    def quit(self, viewer):
        """Returns the exit status. A key is lost if another window still has the focus."""
        for _ in range(10):
            self.focus("^nlv")
            self.xdotool("key", "ctrl+q")
            try:
                return viewer.wait(5)
            except subprocess.TimeoutExpired:
                pass
        return viewer.wait(5)

    def xdotool(self, *words):
        return self.run_program("xdotool", *words, env=self.environment).stdout.strip()

    def title(self):
        return self.xdotool("search", "--onlyvisible", "--name", "^nlv", "getwindowname")

    def range(self):
        found = re.search(r"(\S+) to (\S+?)Z?(  real time)?$", self.title())
        return found.groups()[:2] if found and found.group(1).startswith("2") else None

    def settled(self, before, what):
        """Returns the visible range after it has changed and is stable, because several input events can be pending."""

        def steady():
            first = self.range()
            time.sleep(0.3)
            return first and first != before and self.range() == first and first

        return support.wait_until(steady, what=what)

    def seconds(self, text):
        return sum(float(part) * scale for part, scale in zip(text.split("T")[1].split(":"), (3600, 60, 1)))

    def open(self, *arguments):
        process = self.start(self.nlv, *arguments, env=self.environment, cwd=self.scratch, stderr=subprocess.DEVNULL)
        self.settled(None, "the window shows the log")
        return process

    def save_drawing(self, path):
        """Saves the drawing from the editor, which is open. Returns the content of the file."""
        self.accessible("press", "push button", "Save…")
        return self.save_as("Save the drawing", path)

    def save_as(self, title, path):
        """Enters the name in the open dialog with this title. Returns the content of the file."""
        self.focus(title)
        self.xdotool("key", "ctrl+a")
        self.xdotool("type", str(path))
        self.xdotool("key", "Return")
        support.wait_until(path.exists, what="it is saved")
        return path.read_text()

    def display(self):
        """Returns the rows of the display as bytes, and the number of bytes of a pixel: blue, green, red, unused."""
        dump = subprocess.run(["xwd", "-root", "-silent"], env=self.environment, capture_output=True, timeout=60).stdout
        header = struct.unpack(">25I", dump[:100])
        size, width, height, order, line, colors = header[0], header[4], header[5], header[7], header[12], header[19]
        self.assertEqual(order, 0, "little-endian")
        pixels, step = dump[size + 12 * colors :], header[11] // 8
        return [pixels[y * line : y * line + step * width] for y in range(height)], step

    def picture(self):
        """Returns the pixels of the display as rows of (red, green, blue)."""
        return Picture(*self.display())

    def pixels(self, *places):
        """Returns (red, green, blue) of each place (x, y) of the display."""
        picture = self.picture()
        return [picture[y][x] for x, y in places]
