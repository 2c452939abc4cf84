"""nlv: pictures without a display, automatic drawings, and the window on a virtual display."""
import collections
import ctypes
import json
import os
import pathlib
import random
import re
import shutil
import struct
import subprocess
import time
import unittest
import zlib

import blocks
import nlv_window
import support
from nlv_window import measurements, requests, strips


def decompress_png(path):
    """Width, height, bytes per pixel and filtered rows of an 8-bit RGB or RGBA picture, which must be complete."""
    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, pixels, width, height, depth = 8, b"", 0, 0, 0
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at : at + 8])
        body = data[at + 8 : at + 8 + size]
        if kind == b"IHDR":
            width, height, bits, color = struct.unpack(">IIBB", body[:10])
            assert bits == 8
            depth = {2: 3, 6: 4}[color]
        elif kind == b"IDAT":
            pixels += body
        at += 12 + size
    raw = zlib.decompress(pixels)
    assert len(raw) == height * (width * depth + 1)
    return width, height, depth, raw


def png_size(path):
    return decompress_png(path)[:2]


def read_png(path):
    """Width, height and pixels (nlv_window.Picture) of an 8-bit RGB or RGBA picture without transparent pixels, which cairo decodes."""
    width, height = png_size(path)
    cairo = ctypes.CDLL("libcairo.so.2")
    for function in cairo.cairo_image_surface_create_from_png, cairo.cairo_image_surface_get_data:
        function.restype = ctypes.c_void_p
    surface = ctypes.c_void_p(cairo.cairo_image_surface_create_from_png(os.fsencode(path)))
    stride = cairo.cairo_image_surface_get_stride(surface)
    assert (cairo.cairo_surface_status(surface), cairo.cairo_image_surface_get_height(surface)) == (0, height)
    data = ctypes.string_at(cairo.cairo_image_surface_get_data(surface), stride * height)
    cairo.cairo_surface_destroy(surface)
    return width, height, nlv_window.Picture([data[y * stride : y * stride + 4 * width] for y in range(height)], 4)


def near(pixel, color, distance):
    return all(abs(a - b) < distance for a, b in zip(pixel, color))


class Render(support.Case):
    def setUp(self):
        super().setUp()
        self.nlv = support.program("nlv/nlv")
        self.log = self.scratch / "a.log"
        self.log.write_text(requests())

    def render(self, name, *arguments, env=None):
        environment = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "WAYLAND_DISPLAY")}
        return self.run_program(self.nlv, "--render", self.scratch / name, *arguments, env=environment)

    def test_lack_of_a_temporary_file_is_one_message(self):
        with self.log.open("rb") as log:
            cat = self.start("cat", stdin=log, stdout=subprocess.PIPE)
        with cat.stdout:
            result = self.run_program(self.nlv, "--render", self.scratch / "p.svg", "-", stdin=cat.stdout, env=os.environ | {"TMPDIR": "/no-such-folder"})
        self.assertEqual((result.returncode, result.stderr), (1, "nlv: standard input cannot be read completely: create a temporary file in /no-such-folder: "
                                                                 "No such file or directory; nlv keeps the records that have arrived\n"))

    def test_another_time_zone_is_reported(self):
        """A picture of a workflow whose jobs begin in another time zone: nlv corrects the times, and prints by how much."""
        log, config = self.scratch / "a.bp", self.scratch / "c.nlv"
        config.write_text("[lifeline Task]\nevents=inv.start;inv.end\nid=inv.id\n")
        for early in (8, 0):
            log.write_text("".join(f"ts=2012-03-14T{22 - early:02d}:{i:02d}:10.0Z event=inv.start level=Info inv.id={i} host=w\n"
                                   f"ts=2012-03-14T22:{i:02d}:20.0Z event=inv.end level=Info inv.id={i} host=w dur=4.5\n"
                                   for i in range(30)))
            result = self.render("a.svg", "--config", config, log)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual("30 inv.start events on w were logged 8 h too early: the durations" in result.stderr, early == 8)
            self.assertNotIn("different time zones", result.stderr)

    def test_events_in_the_zone_of_such_spans(self):
        """If spans prove another time zone, the events that always precede them by this difference are also corrected. Then the requests
        take some minutes, and the overview shows only the side of the gap to which the view belongs."""
        log = self.scratch / "a.bp"
        for late in (0, 1):  # with 1, a request has the event "plan" in the right zone
            lines = [f"ts=2012-03-14T14:{i % 5:02d}:05.0Z event=plan level=Info job={i} host=w\n" for i in range(late, 30)]
            lines += ["ts=2012-03-14T22:00:05.0Z event=plan level=Info job=0 host=w\n"] * late
            for i in range(30):
                lines += [f"ts=2012-03-14T14:{i + 6:02d}:10.0Z event=inv.start level=Info job={i} host=w\n",
                          f"ts=2012-03-14T22:{i + 6:02d}:20.0Z event=inv.end level=Info job={i} host=w dur=4.5\n"]
            log.write_text("".join(sorted(lines)))
            result = self.render("a.png", "--size", "1000x600", log)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn("30 inv.start events on w were logged 8 h too early: the durations", result.stderr)
            self.assertEqual("30 plan events on w were logged 8 h too early: these events are in the time zone" in result.stderr, not late, result.stderr)

    def test_png_has_the_lines_where_they_belong(self):
        config = self.scratch / "c.nlv"
        config.write_text("[lifeline R]\nevents=Client.Send;Client.Recv\nid=REQ.ID\n")
        one = self.scratch / "one.log"
        one.write_text("DATE=20260101000000 NL.EVNT=Client.Send REQ.ID=1 HOST=h\n"
                       "DATE=20260101000010 NL.EVNT=Client.Recv REQ.ID=1 HOST=h\n")
        result = self.render("a.png", "--config", config, "--size", "600x400", one)
        self.assertEqual(result.returncode, 0, result.stderr)
        width, height, rows = read_png(self.scratch / "a.png")
        self.assertEqual((width, height), (600, 400))
        blue = [(x, y) for y in range(80, 350) for x in range(width)
                if rows[y][x][2] > rows[y][x][0] + 100 and rows[y][x][2] > 120]
        self.assertGreater(len(blue), 200)
        left, right = min(blue), max(blue)
        self.assertLess(right[1], left[1], "the line rises: the first event is at the bottom")
        slope = (right[1] - left[1]) / (right[0] - left[0])
        for x, y in blue:
            self.assertLess(abs(left[1] + slope * (x - left[0]) - y), 6, "nothing blue but the line and its marks")

    def test_legend_of_requests_that_visit_the_same_hosts(self):
        """The legend names the host of all requests, but not one of several hosts that every request visits."""
        for hosts, has_legend in [(["a"], True), (["a", "b", "c"], False)]:
            self.log.write_text("".join(
                f"DATE=202601011200{i:02d}.{j}00000 HOST={host} PROG=p LVL=Usage NL.EVNT=E{host} REQ.ID=r{i}\n"
                f"DATE=202601011200{i:02d}.{j}50000 HOST={host} PROG=p LVL=Usage NL.EVNT=F{host} REQ.ID=r{i}\n"
                for i in range(30) for j, host in enumerate(hosts)))
            self.assertEqual(self.render("legend.png", self.log).returncode, 0)
            _, _, rows = read_png(self.scratch / "legend.png")
            colors = {pixel for row in rows[38:54] for pixel in row}
            self.assertEqual(len(colors) > 1, has_legend, hosts)

    def legend_colors(self, name):
        """Returns the colors of the series in the row of the legend."""
        _, _, rows = read_png(self.scratch / name)
        found = {pixel for row in rows[38:54] for pixel in row}
        return [color for color in [(0, 0x72, 0xb2), (0xd5, 0x5e, 0), (0, 0x9e, 0x73)] if color in found]

    def test_access_log(self):
        """Records of requests without an event are drawn as bars, above a heat map of their durations. 5 of 3000 requests have failed."""
        path, chance = self.scratch / "access.json", random.Random(5)
        path.write_text("".join(json.dumps({"ts": 1767225600 + number / 50, "host": f"web{number % 2}", "duration": chance.lognormvariate(-4, 0.5),
                                            "status": 502 if number % 600 == 9 else 200}) + "\n" for number in range(3000)))
        drawing = self.run_program(self.nlv, "--write-config", "-", path)
        self.assertEqual((drawing.returncode, drawing.stdout), (0, "[point request]\nevent=request\n"), drawing.stderr)
        rows = self.pixels_of("access.png", "--size", "1000x600", path)
        bars, heat = ([pixel for row in rows[top:bottom] for pixel in row[100:800]] for top, bottom in ((60, 280), (360, 560)))
        for color in (0, 114, 178), (213, 94, 0):  # the two hosts
            self.assertGreater(sum(near(pixel, color, 60) for pixel in bars), 200, color)
        self.assertGreater(sum(near(pixel, (0, 114, 178), 90) for pixel in heat), 1000)
        self.assertTrue(any(near(pixel, (0xc2, 0, 0x6b), 30) for pixel in heat), "the failures")

    def test_access_logs_of_two_tiers(self):
        """A request is in the access logs of a proxy and of a server. nlv draws a row for each program, and joins the records of a request."""
        logs = []
        for program, extra in ("proxy", 0.004), ("server", 0):
            logs.append(self.scratch / f"{program}.json")
            logs[-1].write_text("".join(json.dumps({
                "ts": 1767225600 + number / 10 + 0.02 + extra / 2, "host": f"{program}1", "prog": program, "request_id": f"r{number}",
                "duration": 0.02 + extra, "status": 200}) + "\n" for number in range(500)))
        config = self.scratch / "tiers.nlv"
        written = self.run_program(self.nlv, "--write-config", config, *logs)
        self.assertEqual(written.returncode, 0, written.stderr)
        self.assertRegex(config.read_text(), r"events=request of server;request of proxy;\nid=request_id;")
        for more in ["--config", config], ["--config", config, "--where", 'span("request").self >= 20ms']:
            measured = self.run_program(support.program("nltools/nlstat"), *more, *logs)
            self.assertRegex(measured.stdout, r"Requests by request_id: 500, ")
            self.assertRegex(measured.stdout, r"request of server @server +83\.3 % +500 ")
        rows = self.pixels_of("tiers.png", "--size", "1000x600", *logs)
        lines = sum(near(pixel, (0, 114, 178), 90) for row in rows[200:300] for pixel in row[140:900])
        self.assertGreater(lines, 400, "lines between the two rows")

    def test_text_about_the_longest_line_covers_no_lines(self):
        """20 nearly vertical requests: their lines are visible at each height between the first row and the last row."""
        self.log.write_text("".join(
            f"DATE=20260101120000.{number * 20000 + offset:06d} HOST=h PROG=p LVL=Usage NL.EVNT={event} REQ.ID=r{number}\n"
            for number in range(20) for offset, event in ((0, "A"), (500, "B"), (1000, "C"), (1500 + 8000 * (number == 9), "D"))))
        rows = self.pixels_of("lines.png", "--size", "1000x600", self.log)
        marks = [y for y, row in enumerate(rows[:440]) if sum(near(pixel, (0, 114, 178), 60) for pixel in row) > 60]
        for y in range(min(marks), max(marks)):
            columns = [x for x, pixel in enumerate(rows[y]) if pixel[2] - pixel[0] > 60]
            self.assertGreater(sum(1 for x, other in zip(columns, [-9, *columns]) if x > other + 1), 17, y)

    def test_heat_map_separates_logs_of_two_runs(self):
        """The percentile curves in the strip at the bottom have the colors of the logs."""
        logs = []
        for name, took_us in ("fast.log", 2000), ("slow.log", 5000):
            logs.append(self.scratch / name)
            logs[-1].write_text("".join(f"DATE=2026010112{i // 60:02d}{i % 60:02d}.{us:06d} HOST=h PROG=p LVL=Usage NL.EVNT={event} REQ.ID={i}\n"
                                        for i in range(600) for event, us in [("Work.start", 0), ("Work.end", took_us + i % 100)]))
        result = self.render("two.png", "--size", "1000x600", *logs)
        self.assertEqual(result.returncode, 0, result.stderr)
        _, height, rows = read_png(self.scratch / "two.png")
        strip = {pixel for row in rows[height - 130 : height - 30] for pixel in row}
        for color in self.legend_colors("two.png"):
            self.assertTrue(any(near(pixel, color, 40) for pixel in strip), color)
        self.assertEqual(len(self.legend_colors("two.png")), 2)

    def test_logs_of_two_runs_have_different_colors(self):
        """Each of two logs with equal IDs has its own color. Logs of a client and a server also have equal IDs, but their records
        belong together."""
        two = self.scratch / "b" / "a.log"
        two.parent.mkdir()
        drawing = self.scratch / "d.nlv"
        for first, second, color in [(requests(), requests().replace("DATE=202601011200", "DATE=202601011201"), "LOG"),
                                            ("".join(line for line in requests().splitlines(True) if "HOST=c" in line),
                                             "".join(line for line in requests().splitlines(True) if "HOST=s" in line), "HOST")]:
            self.log.write_text(first)
            two.write_text(second)
            result = self.render("two.png", "--write-config", drawing, self.log, two)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn(f"color={color}\n", drawing.read_text())
            if color == "LOG":
                self.assertEqual(len(self.legend_colors("two.png")), 3, "two logs, and the host of the load")

    def test_measurements_of_many_hosts_are_strips(self):
        """Each of twenty hosts has its own strip, and the strip of the busy host is darker. nlv names the measurement that it
        does not draw."""
        self.log.write_text("".join(
            f"DATE=2026010112{t // 60:02d}{t % 60:02d}.{h:02d} HOST=h{h:02d} PROG=p LVL=Usage NL.EVNT=Cpu CPU.USER={90 + t % 3 if h == 7 else 5 + t % 3} "
            f"CPU.SYS={t % 5} CPU.IDLE={100 - t % 7}\n" for t in range(300) for h in range(20)))
        result = self.render("strips.png", "--size", "1000x900", self.log)
        self.assertIn("1 measurement is not drawn: CPU.IDLE of Cpu", result.stderr)
        _, _, rows = read_png(self.scratch / "strips.png")
        labels = self.bands(rows, 0, 70, 80, 840)
        self.assertEqual(len(labels), 40)
        shades = [sum(rows[(top + bottom) // 2][500]) for top, bottom in labels[:20]]
        self.assertEqual(min(range(20), key=shades.__getitem__), 7)
        self.assertLess(shades[7], min(shades[:7] + shades[8:]) - 100)

    def test_strips_are_in_the_order_of_numbers_and_high_enough(self):
        """The strips of six measurements of eleven hosts do not fit: the last measurements are collapsed to their names."""
        self.log.write_text(measurements(11, 6))
        rows = self.pixels_of("strips.png", "--size", "1000x600", self.log)
        found = strips(rows, 500, 60, 560)
        self.assertIn(len(found), (22, 33, 44, 55))
        self.assertGreaterEqual(min(height for _, height in found), 4)
        shades = [sum(color) for color, _ in found[:11]]
        self.assertEqual(shades, sorted(shades, reverse=True), "h2 comes before h10, and larger values are darker")

    def test_threads(self):
        """--threads draws the spans and states of threads. Without threads, a sentence names what is missing."""
        disk, running = (0x8c, 0x51, 0x0a), (0x3f, 0xa3, 0x4d)
        self.log.write_text(nlv_window.threads(40))
        result = self.render("t.png", "--threads", "--size", "1000x600", self.log)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        picture = read_png(self.scratch / "t.png")[2]
        places = [(x, y) for x, y in picture.places(disk) if y > 60]  # without the legend
        rows = sorted({y for _, y in places})
        strips_of = [y for y in rows if y - 1 not in rows]
        self.assertGreater(len(strips_of), 5)
        begin, end = (edge(x for x, y in places if y == strips_of[0]) for edge in (min, max))
        green = [x for x, y in picture.places(running) if y == strips_of[0]]
        self.assertAlmostEqual((begin - min(green)) / (end - begin), 0.5, 1, "20 ms before 40 ms")
        self.assertEqual(self.render("s.png", "--threads", "--size", "300x120", self.log).returncode, 0)
        self.log.write_text(requests())
        self.assertEqual(self.render("n.png", "--threads", "--size", "1000x600", self.log).returncode, 0)
        picture = read_png(self.scratch / "n.png")[2]
        self.assertEqual(picture.places(disk), [])
        self.assertGreater(sum(sum(pixel) < 200 for row in picture[60:120] for pixel in row), 300, "the sentence")

    def test_own_events_are_not_requests(self):
        """In a recording of the kernel, events of nlkernel with a processor are not requests. nlv names the drawings that fit."""
        self.log.write_text("".join(
            f"DATE=2026010112000{i}.{offset:06d} HOST=h PROG=nlkernel LVL=Usage NL.EVNT={event} CPU={i % 2}{more}\n"
            for i in range(10) for event, offset, more in (
                ("NetLogger.Dump.Begin", 0, ""), ("NetLogger.Dump.Finish", 90, f" EVENTS={i * i}"), ("sched.sched_wakeup", 100, " EV.PID=7"),
                ("sched.sched_switch", 200, " NEXT.PID=7"))))
        result = self.run_program(self.nlv, "--write-config", "-", self.log, env=self.ready_made())
        self.assertEqual((result.returncode, re.findall(r"\[lifeline .*", result.stdout)), (0, []), result.stderr)
        self.assertNotRegex(result.stdout, r"\[loadline .*\]\nevent=NetLogger\.")
        self.assertIn("nlv: The log fits the ready-made drawing kernel-sched. To show it, use F4 in the window or --config.\n",
                      self.run_program(self.nlv, "--render", self.scratch / "k.png", self.log, env=self.ready_made()).stderr)
        measured = self.run_program(support.program("nltools/nlstat"), self.log)
        self.assertEqual(measured.returncode, 1, measured.stdout)

    def test_dense_lifelines_become_a_heat_map(self):
        """A picture of nearly the whole log shows the durations of 5,000 requests in two fifths of its height; a frame marks the view."""
        self.log.write_text("".join(sorted(
            f"DATE=2026010112{number // 100:02d}{number % 100 * 6 // 10:02d}.{offset:06d} HOST=h PROG=p LVL=Usage NL.EVNT={event} REQ.ID=r{number}\n"
            for number in range(5000) for offset, event in ((100, "A"), (200, "B"), (300, "C"), (400 + number % 700 * 500, "D")))))
        for since, height in ("20260101120010", 220), ("20260101124000", 100):
            rows = self.pixels_of("dense.png", "--size", "1000x600", "--since", since, "--until", "20260101125959", self.log)
            frame = max(sum(near(rows[y][x], (0x1a, 0x5f, 0xb4), 40) for y in range(200, 590)) for x in range(70, 880))
            self.assertAlmostEqual(frame, height, delta=25, msg=since)

    def test_inferred_lines_among_some_are_dashed(self):
        """In 60 requests, the lines of the inferred messages have gaps; the lines of the span between them have none."""
        self.log.write_text("".join(
            f"DATE=2026010112{number // 60:02d}{number % 60:02d}.{step}0 HOST={host} PROG={host} LVL=Usage NL.EVNT={event} REQ.ID=r{number}\n"
            for number in range(60) for step, (host, event) in enumerate((("a", "Asked"), ("b", "Work.start"), ("b", "Work.end"), ("a", "Answered")))))
        rows = self.pixels_of("dashed.png", "--size", "1600x600", "--since", "20260101115959", "--until", "20260101120101", self.log)
        ink = [sum(255 - pixel[0] for pixel in row[160:1500]) for row in rows[:540]]
        marks = sorted(sorted(range(60, 540), key=lambda y: -sum(ink[y - 1 : y + 2]))[:4 * 3])
        marks = [y for y, other in zip(marks, [0, *marks]) if y - other > 20]
        self.assertEqual(len(marks), 4, marks)
        background = min(ink[marks[0] : marks[-1]])
        shares = [sum(ink[y] > background + 3000 for y in range(low + 5, high - 3)) / (high - low - 8) for low, high in zip(marks, marks[1:])]
        self.assertEqual(shares[1], 1, "the span")
        self.assertTrue(0.3 < shares[0] < 0.8 and 0.3 < shares[2] < 0.8, shares)

    def test_inferred_lines_among_many_are_pale(self):
        """In 200 requests, the lines of the inferred messages are paler than the lines of the span between them."""
        self.log.write_text("".join(
            f"DATE=202601011200{(number * 10 + step) // 100:02d}.{(number * 10 + step) % 100:02d} HOST={host} PROG={host} LVL=Usage NL.EVNT={event} REQ.ID=r{number}\n"
            for number in range(200) for step, (host, event) in enumerate((("a", "Asked"), ("b", "Work.start"), ("b", "Work.end"), ("a", "Answered")))))
        rows = self.pixels_of("pale.png", "--size", "1600x600", "--since", "20260101115959", "--until", "20260101120021", self.log)
        ink = [sum(255 - pixel[0] for pixel in row[160:1500]) for row in rows[:540]]
        marks = sorted(sorted(range(60, 540), key=lambda y: -sum(ink[y - 1 : y + 2]))[:4 * 4])
        marks = [y for y, other in zip(marks, [0, *marks]) if y - other > 20]
        self.assertEqual(len(marks), 4, marks)
        background = min(ink[60:540])
        first, span, last = (ink[(low + high) // 2 + 3] - background for low, high in zip(marks, marks[1:]))
        self.assertLess(max(first, last), 0.7 * span)
        self.log.write_text("".join(
            f"DATE=2026010112{number // 6000:02d}{number // 100 % 60:02d}.{(number % 100 * 10 + step):03d} HOST={host} PROG={host} LVL=Usage NL.EVNT={event} REQ.ID=r{number}\n"
            for number in range(12000) for step, (host, event) in enumerate((("a", "Asked"), ("b", "Work.start"), ("b", "Work.end"), ("a", "Answered")))))
        rows = self.pixels_of("dense.png", "--size", "1000x600", "--since", "20260101120010", "--until", "20260101120050", self.log)
        ink = [sum(255 - pixel[0] for pixel in row[160:900]) for row in rows[60:440]]
        drawn = [y for y, strength in enumerate(ink) if strength > 2 * min(ink) + 2000]
        first, span, last = (ink[drawn[0] + len(drawn) * part // 6] for part in (1, 3, 5))
        self.assertLess(max(first, last), 0.9 * span, "also among 16,000 lines")

    def test_low_picture(self):
        """A low picture, as in a small window beside the table of requests, has no title and no overview."""
        for height, title in [(130, False), (400, True)]:
            rows = self.pixels_of("low.png", "--size", f"600x{height}", "--title", "XXXXXXXXXX", self.log)
            self.assertEqual(self.bands(rows, 14, 70, 8, 26) != [], title)

    def test_measurements_and_processors_are_not_ids(self):
        """Random values and the numbers of processors link events by chance. They do not identify requests."""
        drawing = self.scratch / "d.nlv"
        draw = random.Random(1)
        self.log.write_text("".join(f"DATE=20260101120000.{i:06d} HOST=h PROG=p LVL=Usage NL.EVNT=E{draw.randrange(5)} VALUE={draw.randrange(100)}\n"
                                    for i in range(1000)))
        self.assertEqual(self.render("values.png", "--write-config", drawing, self.log).returncode, 0)
        self.assertNotIn("\nid=", drawing.read_text())
        self.log.write_text("".join(f"DATE=20260101120000.{i:06d} HOST=h PROG=p LVL=Usage NL.EVNT={draw.choice(['In', 'Out', 'Wake'])} "
                                    f"EV.PID={draw.randrange(200)} CPU={draw.randrange(4)}\n" for i in range(2000)))
        self.assertEqual(self.render("cpus.png", "--write-config", drawing, self.log).returncode, 0)
        self.assertIn("id=EV.PID;\n", drawing.read_text())

    def test_logs_of_centuries(self):
        """The range of times exceeds 64 bits of nanoseconds."""
        self.log.write_text("".join(f"DATE={year}-01-01T00:00:00.{i:06d} HOST=h PROG=p LVL=Usage NL.EVNT=a.{event} ID={i}\n"
                                    for i in range(30) for event, year in [("start", 1678), ("end", 2261)]))
        self.assertEqual(self.render("years.png", self.log).returncode, 0)

    def test_svg_and_pdf(self):
        for name, begins in [("a.svg", b"<?xml"), ("a.pdf", b"%PDF")]:
            result = self.render(name, self.log)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertTrue((self.scratch / name).read_bytes().startswith(begins))
        self.assertGreater((self.scratch / "a.svg").read_text().count("<path"), 50)

    def test_what_is_inferred(self):
        config = self.scratch / "found.nlv"
        result = self.run_program(self.nlv, "--write-config", config, self.log)
        self.assertEqual(result.returncode, 0, result.stderr)
        text = config.read_text()
        self.assertEqual(self.run_program(self.nlv, "--write-config", "-", self.log).stdout, text)
        self.assertIn("events=Client.Send;Server.Recv;Server.Done;Client.Recv;\nid=REQ.ID;\n", text)
        self.assertRegex(text, r"\[loadline LOAD\]\nevent=Load\nfield=LOAD\n")
        self.assertIn("[point Oops]\nevent=Oops\n", text)
        self.assertEqual(self.render("b.png", "--config", config, self.log).returncode, 0)

    def test_units_come_from_schemas_and_from_the_sensors_documentation(self):
        folder = self.scratch / "share" / "netlogger" / "schemas"
        folder.mkdir(parents=True)
        (folder / "mine.schema").write_text("[schema]\nname=mine\n\n[Furnace]\nHEAT=double; K; temperature\nDRAFT=double\n")
        self.log.write_text("".join(
            f"DATE=202601011200{i:02d} HOST=h PROG=p LVL=Usage NL.EVNT={event} {field}={1000 + i * i % 7}\n"
            for i in range(60) for event, field in (("Furnace", "HEAT"), ("Furnace", "DRAFT"), ("MemoryFree", "MEM.FREE"), ("DiskIo", "DISK.READ"),
                                                    ("TcpConnection", "TCP.RTT"), ("Other", "MEM.FREE"))))
        config = self.scratch / "found.nlv"
        result = self.run_program(self.nlv, "--write-config", config, self.log, env={**os.environ, "XDG_DATA_HOME": str(self.scratch / "share")})
        self.assertEqual(result.returncode, 0, result.stderr)
        units = {tuple(re.search(rf"^{key}=(.*)$", section, re.M).group(1) for key in ("event", "field")):
                 (re.search(r"^unit=(.*)$", section, re.M) or [None, ""])[1] for section in config.read_text().split("[loadline ")[1:]}
        self.assertEqual(units, {("Furnace", "HEAT"): "K", ("Furnace", "DRAFT"): "", ("MemoryFree", "MEM.FREE"): "bytes",
                                 ("DiskIo", "DISK.READ"): "bytes/s", ("TcpConnection", "TCP.RTT"): "µs", ("Other", "MEM.FREE"): ""})

    def test_whole_durations_of_go_are_nanoseconds(self):
        """A duration that is too large for seconds shows the unit of all durations, also of those before it."""
        self.log.write_text("".join(json.dumps({
            "time": f"2026-01-01T12:00:{i:02}Z", "host": "web", "program": "api", "duration": 40000 if i < 20 else 400000000}) + "\n"
            for i in range(60)))
        result = self.render("t.png", "--size", "1000x600", self.log)
        self.assertIn("read as nanoseconds", result.stderr)
        picture = read_png(self.scratch / "t.png")[2]
        blue = [sum(pixel[2] > pixel[0] + 60 for pixel in picture[y][80:980]) for y in range(70, 300)]
        self.assertLess(max(blue), 450, "bars of 0.4 s in a minute")

    def test_drawing_is_written_to_a_pipe_or_through_a_link(self):
        pipe, link, target = (self.scratch / name for name in ["pipe", "link", "target.nlv"])
        os.mkfifo(pipe)
        reader = self.start("cat", pipe, stdout=subprocess.PIPE, text=True)
        result = self.run_program(self.nlv, "--write-config", pipe, self.log)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("[lifeline REQ.ID]", reader.communicate(timeout=60)[0])
        self.assertTrue(pipe.is_fifo())
        target.touch()
        link.symlink_to(target)
        self.assertEqual(self.run_program(self.nlv, "--write-config", link, self.log).returncode, 0)
        self.assertTrue(link.is_symlink())
        self.assertIn("[lifeline REQ.ID]", target.read_text())

    def pixels_of(self, name, *arguments):
        result = self.render(name, *arguments)
        self.assertEqual(result.returncode, 0, result.stderr)
        return read_png(self.scratch / name)[2]

    def bands(self, rows, left, right, top=0, bottom=None):
        """Returns the ranges of rows in which an area contains text, which is darker than a pane and its lines."""
        inked = [any(max(pixel) < 200 for pixel in row[left:right]) for row in rows[top:bottom]]
        starts = [y for y, ink in enumerate(inked) if ink and (y == 0 or not inked[y - 1])]
        return [(top + y, top + next((e for e in range(y, len(inked)) if not inked[e]), len(inked))) for y in starts]

    def test_long_names_stay_inside_of_the_picture(self):
        hosts = [f"{name}-with-a-very-long-name.department-{name}.of-a-large-company.example.org" for name in "abc"]
        lines = []
        for i in range(60):
            for step in range(4):
                host = hosts[0 if step < 1 or step > 2 else 1 + i % 2]
                event = f"Stage{step}.in.the.adapter.for.the.gateway.of.the.provider.of.payments"
                lines.append(f"DATE=20260101120000.{i * 9000 + step * 1000:06d} HOST={host} PROG=p LVL=Usage NL.EVNT={event} REQ.ID=r{i}\n")
        self.log.write_text("".join(lines))
        rows = self.pixels_of("long.png", "--size", "900x600", self.log)
        self.assertTrue(self.bands(rows, 300, 880, 30, 60), "the legend")
        margin = [pixel for row in rows for pixel in row[886:]]
        self.assertEqual(len(set(margin)), 1, "nothing is drawn in the right margin")

    def test_each_of_many_rows_has_a_label(self):
        config = self.scratch / "many.nlv"
        config.write_text("".join(f"[point Point{i:02d}]\nevent=Load\n" for i in range(40)))
        rows = self.pixels_of("points.png", "--size", "900x600", "--config", config, self.log)
        self.assertEqual(len(self.bands(rows, 14, 70, 62, 550)), 40)

    def test_numbers_of_low_loadlines_do_not_overlap(self):
        config = self.scratch / "many.nlv"
        config.write_text("".join(f"[loadline L{i:02d}]\nevent=Load\nfield=F{i}\n" for i in range(20)))
        self.log.write_text("".join(f"DATE=2026010112000{at} HOST=h PROG=p LVL=Usage NL.EVNT=Load " +
                                    " ".join(f"F{i}={10 * at}" for i in range(20)) + "\n" for at in range(10)))
        rows = self.pixels_of("loads.png", "--size", "900x600", "--config", config, self.log)
        numbers = self.bands(rows, 62, 89, 50, 550)
        self.assertEqual(len(numbers), 20)
        self.assertTrue(all(bottom - top < 10 for top, bottom in numbers), numbers)

    def test_histogram_has_its_counts_above_the_bars(self):
        self.log.write_text(nlv_window.branching_requests(2000, slow=set(range(0, 2000, 200))))
        rows = self.pixels_of("histogram.png", "--size", "1000x600", self.log)
        right = 979  # x coordinate to the right of the longest bar
        top = next(y for y in range(456, 560) if rows[y][right] == rows[560][right])
        slow = [y for y in range(top, 560) if any(red > 180 and blue < 60 for red, _, blue in rows[y][870:970])]
        self.assertTrue(slow, "the bar of the slow requests")
        self.assertGreaterEqual(slow[0], top + 13, "space for a line of text")

    def test_quantiles_are_not_drawn_where_no_requests_are(self):
        early = nlv_window.branching_requests(500)
        self.log.write_text(early + early.replace("DATE=202601011200", "DATE=202601011201").replace("=r", "=s"))
        rows = self.pixels_of("gap.png", "--size", "1000x600", self.log)
        self.assertEqual(self.bands(rows, 400, 600, 470, 570), [])

    def test_quantiles_include_the_last_requests(self):
        """The slower half of the later requests begins at the end of the log, within one column of the heat map."""
        lines = [(i * 10000 if i < 740 else 10000000 + i, i) for i in range(1000)]
        self.log.write_text("".join(f"DATE=202601011200{(t + more) // 1000000:02d}.{(t + more) % 1000000:06d} HOST=h PROG=p LVL=Usage "
                                    f"NL.EVNT={event} REQ.ID={i}\n"
                                    for t, i in lines for event, more in [("A", 0), ("B", 2000 if i >= 740 else 20)]))
        rows = self.pixels_of("last.png", "--size", "1000x600", self.log)
        curves = self.bands(rows, 680, 800, 470, 572)
        self.assertTrue(curves, "the curves continue to the last requests")
        self.assertLess(curves[-1][1], 520, "the median of the later requests")

    def ready_made(self):
        """Returns an environment in which nlv finds the ready-made drawings as if they were installed."""
        folder = self.scratch / "share" / "netlogger"
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / "drawings").exists():
            (folder / "drawings").symlink_to((support.SOURCE / "nlv" / "drawings").resolve())
        return {**os.environ, "XDG_DATA_HOME": str(self.scratch / "share")}

    def test_events_that_are_not_drawn_are_reported(self):
        self.log.write_text("".join(f"DATE=202601010000{i % 60:02} HOST=h NL.EVNT=Kind{i}\n" for i in range(300)))
        self.assertRegex(self.render("a.png", self.log).stderr, r"does not show \d+ of 300 kinds of events, such as Kind\d+")
        self.log.write_text("".join(f"DATE=202601010000{i:02} HOST=h NL.EVNT=Kind{i}\n" for i in range(10)))
        self.assertNotIn("not drawn", self.render("a.png", self.log).stderr)

    def test_ready_made_drawings(self):
        names = sorted(path.stem for path in (support.SOURCE / "nlv" / "drawings").glob("*.nlv"))
        self.assertEqual(names, ["bp-workflow", "connections", "gridftp", "http", "kernel-cpus", "kernel-interrupts", "kernel-request", "kernel-sched", "path", "time-sequence"])
        for name in names:
            result = self.run_program(self.nlv, "--config", name, "--write-config", self.scratch / "again.nlv", self.log,
                                      env=self.ready_made())
            self.assertEqual(result.returncode, 0, result.stderr)
        result = self.run_program(self.nlv, "--config", "no-such", "--render", self.scratch / "a.png", self.log, env=self.ready_made())
        self.assertEqual(result.returncode, 1)
        self.assertIn("nlv: no-such: no such file; the ready-made drawings are bp-workflow, connections, ", result.stderr)

    def transfers(self):
        """Records of a GridFTP server, which logs a transfer when it ends. The bars of three transfers cover 10, 10 and 20 of 40 s."""
        time = lambda seconds: f"20080511184{seconds // 60}{seconds % 60:02d}.000000"
        self.log.write_text("".join(
            f"DATE={time(end)} HOST=g PROG=globus-gridftp-server NL.EVNT=FTP_INFO START={time(begin)} FILE=/f{begin} NBYTES={size}\n"
            for begin, end, size in [(0, 10, 10**8), (5, 15, 2 * 10**8), (20, 40, 10**8)]))

    def bars(self, opacity):
        """Returns the bars of a picture with this opacity, in the order of drawing, as (left, right)."""
        number = r"([\d.]+)"
        shapes = re.findall(rf'fill:rgb\([^)]*\);fill-opacity:{opacity};" d="M {number} {number} L {number} \2 L \3 ', (self.scratch / "t.svg").read_text())
        return [(float(left), float(right)) for left, _, right in shapes]

    def test_transfers(self):
        self.transfers()
        config = self.scratch / "found.nlv"
        self.assertEqual(self.run_program(self.nlv, "--write-config", config, self.log).returncode, 0)
        self.assertIn("event=FTP_INFO\nfield=NBYTES\nunit=bytes/s\nrate=true\n", config.read_text())
        self.assertIn("[point FTP_INFO]\nevent=FTP_INFO\n", config.read_text())
        times = ("--since", "20080511184000", "--until", "20080511184040")
        for drawing in ("gridftp", config):
            result = self.run_program(self.nlv, "--config", drawing, "--render", self.scratch / "t.svg", *times, self.log, env=self.ready_made())
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            bars = self.bars(0.75)
            unit = (bars[2][1] - bars[2][0]) / 20
            self.assertEqual([(round((left - bars[0][0]) / unit, 1), round((right - left) / unit, 1)) for left, right in bars],
                             [(0, 10), (5, 10), (20, 20)])
            (path,) = re.findall(r'fill-opacity:0.7;" d="([^"]*)"', (self.scratch / "t.svg").read_text())
            heights = {(float(x) - bars[0][0]) / unit: float(bottom) - float(top) for x, top, bottom in
                       re.findall(r"M ([\d.]+) ([\d.]+) L [\d.]+ \2 L [\d.]+ ([\d.]+)", path)}
            at = lambda second: heights.get(min(heights, key=lambda x: abs(x - second)), 0) if second < 15.1 or second > 19.9 else 0
            self.assertEqual([round(at(second) / at(2), 1) for second in (2, 7, 12, 18, 30)], [1, 3, 2, 0, 0.5])

    def test_request_of_a_thousand_events(self):
        """A request waits for 499 parallel spans of different hosts: a line leads from the end of each span to the end of the request."""
        config, children = self.scratch / "c.nlv", 499
        config.write_text("[lifeline R]\nevents=Root.start;Work.start;Work.end;Root.end\nid=TRACE.ID\n")
        records = [(0, "r", "Root.start", "r", ""), (9000, "r", "Root.end", "r", "")]
        for i in range(children):
            records += [(1000 + i, f"h{i}", "Work.start", i, " PARENT.ID=r"), (3000 + i * 3, f"h{i}", "Work.end", i, "")]
        self.log.write_text("".join(
            f"DATE=20260101120000.{time:04d}00 HOST={host} PROG=p LVL=Usage NL.EVNT={event} TRACE.ID=t SPAN.ID={span}{rest}\n"
            for time, host, event, span, rest in sorted(records)))
        result = self.render("a.svg", "--config", config, self.log)
        self.assertEqual(result.returncode, 0, result.stderr)
        number = r"(-?[\d.]+)"
        lines = [line for path in re.findall(r'd="([^"]*)"', (self.scratch / "a.svg").read_text())
                 for line in re.findall(rf"M {number} {number} L {number} {number}(?= M|\s*$)", path)]
        ends = collections.Counter(line[2:] for line in lines)
        self.assertIn(children, ends.values())

    def test_spans_of_one_record_are_bars(self):
        self.log.write_text("".join(
            f"DATE=202601011200{i:02d}.{end:06d} HOST=h PROG=p LVL=Usage NL.EVNT={event} REQ.ID=r{i}{rest}\n" for i in range(5)
            for end, event, rest in [(0, "Submit", ""), (700000, "Job", " dur=0.5")]))
        result = self.run_program(self.nlv, "--render", self.scratch / "t.svg", "--since", "20260101120000", "--until", "20260101120005", self.log)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        bars = self.bars(0.4)
        apart = {round((after[0] - before[0]) / (before[1] - before[0]), 1) for before, after in zip(bars, bars[1:])}
        self.assertEqual((len(bars), apart), (5, {2.0}))

    def test_what_begins_anew(self):
        """If threads are woken repeatedly, nlv draws an object for each wake-up, although the events have the value in different
        fields."""
        lines = []
        for i in range(10):
            lines.append(f"DATE=2026010112000{i}.1 HOST=h CPU=0 NL.EVNT=sched.sched_wakeup EV.PID=7 COMM=a")
            lines.append(f"DATE=2026010112000{i}.1002 HOST=h CPU=0 NL.EVNT=sched.sched_switch PREV.PID=0 NEXT.PID=7")
        self.log.write_text("\n".join(lines) + "\n")
        result = self.run_program(support.program("nltools/nlstat"), "--config", "kernel-sched", self.log, env=self.ready_made())
        self.assertIn(": 10, ", result.stdout)
        self.assertRegex(result.stdout, r"sched_wakeup -> sched.sched_switch\s+100.0 %\s+10\s")
        result = self.run_program(self.nlv, "--config", "kernel-sched", "--render", self.scratch / "a.svg", self.log,
                                  env=self.ready_made())
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertNotIn("out of order", (self.scratch / "a.svg").read_text())
        red = re.findall(r"rgb\(87.8\d*%, 0%, 0%\)", (self.scratch / "a.svg").read_text())
        self.assertEqual(red, [], "going on from the last event to the first is no time that runs backwards")

    def test_clock_errors_are_drawn(self):
        config = self.scratch / "c.nlv"
        config.write_text("[lifeline R]\nevents=A;B\nid=ID\n")

        def picture(error):
            self.log.write_text(f"DATE=20260101120000 HOST=h NL.EVNT=ClockTracking CLOCK.ERROR={error}\n"
                                "DATE=20260101120001 HOST=h NL.EVNT=A ID=1\nDATE=20260101120003 HOST=h NL.EVNT=B ID=1\n")
            result = self.render("a.png", "--config", config, "--size", "600x400", self.log)
            self.assertEqual(result.returncode, 0, result.stderr)
            rows = read_png(self.scratch / "a.png")[2]
            return sum(row[x][2] > row[x][0] + 20 for row in rows[80:330] for x in range(600))

        self.assertGreater(picture(200000), picture(1) + 200, "a fifth of a second on either side")

    def test_measured_clocks(self):
        """The clock of b is 0.2 s slow: requests arrive before they are sent, until nlv corrects the times."""
        config = self.scratch / "c.nlv"
        config.write_text("[lifeline R]\nevents=Send;Receive\nid=ID\n")
        offset = "DATE=2026010112000{}.1 HOST=b NL.EVNT=ClockOffset CLOCK.COLLECTOR=a CLOCK.OFFSET=200000 CLOCK.ERROR={}\n"
        times = "".join(f"DATE=2026010112000{i}.5 HOST=a NL.EVNT=Send ID={i}\nDATE=2026010112000{i}.4 HOST=b NL.EVNT=Receive ID={i}\n" for i in range(3))

        def picture(error, *options):
            self.log.write_text(offset.format(0, error) + times + offset.format(2, error))
            result = self.render("a.png", "--config", config, "--size", "600x400", *options, self.log)
            self.assertEqual(result.returncode, 0, result.stderr)
            pixels = [pixel for row in read_png(self.scratch / "a.png")[2][80:330] for pixel in row]
            red = sum(p[0] > 180 and p[1] < 90 and p[2] < 90 for p in pixels)
            return red, sum(p[2] > p[0] + 20 for p in pixels), result.stderr

        as_logged, corrected, coarse = picture(20), picture(20, "--fix-clocks"), picture(80000, "--fix-clocks")
        self.assertGreater(as_logged[0], 100)
        self.assertEqual(corrected[0], 0)
        self.assertRegex(corrected[2], r"to the clock of a by these offsets: b \+200 ms \(\S+ \d+(\.\d+)? µs\)")
        self.assertGreater(coarse[1], corrected[1] + 100, "what is still not known")

    def test_clocks_that_cannot_be_corrected(self):
        """Without valid measurements of clocks, nlv draws the uncorrected times and reports this."""
        self.log.write_text("DATE=20260101120000 HOST=a NL.EVNT=A ID=1\nDATE=20260101120001 HOST=b NL.EVNT=B ID=1\n")
        result = self.render("a.png", "--fix-clocks", self.log)
        self.assertEqual(result.returncode, 0)
        self.assertIn("No clock can be corrected", result.stderr)
        with open(self.log, "a") as log:
            for offset, error in (("nan", 1), ("1e300", 1), (-1e14, 0), (1, "inf"), (9e14, 9e14), ("x", "y"), (0, -1)):
                log.write(f"DATE=20260101120002 HOST=b NL.EVNT=ClockOffset CLOCK.COLLECTOR=a CLOCK.OFFSET={offset} CLOCK.ERROR={error}\n")
        self.assertEqual(self.render("a.png", "--fix-clocks", self.log).returncode, 0)
        self.assertEqual(self.render("a.png", self.log).returncode, 0)

    def test_what_cannot_be_in_order_is_marked(self):
        config = self.scratch / "c.nlv"
        config.write_text("[lifeline R]\nevents=Send;Receive\nid=ID\n")
        events = "DATE=20260101120003 HOST=a NL.EVNT=Send ID=1\nDATE=20260101120001 HOST=b NL.EVNT=Receive ID=1\n"
        clocks = "".join(f"DATE=20260101120000 HOST={host} NL.EVNT=ClockTracking CLOCK.ERROR=20\n" for host in "ab")

        def red(log):
            self.log.write_text(log)
            self.assertEqual(self.render("a.png", "--config", config, self.log).returncode, 0)
            rows = read_png(self.scratch / "a.png")[2]
            return sum(pixel[0] > 180 and pixel[1] < 90 and pixel[2] < 90 for row in rows[80:700] for pixel in row)

        self.assertGreater(red(clocks + events), 100)
        self.assertEqual(red(events), 0, "clocks of which nothing is known may differ by this")

    def test_caption(self):
        self.assertEqual(self.render("plain.svg", self.log).returncode, 0)
        self.assertEqual(self.render("with.svg", "--caption", "What is to be seen", self.log).returncode, 0)
        self.assertNotEqual((self.scratch / "plain.svg").read_text(), (self.scratch / "with.svg").read_text())

    def test_what_a_desktop_is_told(self):
        folder = support.SOURCE / "nlv" / "desktop"
        for words in [["desktop-file-validate", folder / "org.netlogger.nlv.desktop"],
                      ["appstreamcli", "validate", "--no-net", folder / "org.netlogger.nlv.metainfo.xml"],
                      ["xmllint", "--noout", folder / "netlogger.xml", folder / "org.netlogger.nlv.svg"]]:
            if shutil.which(words[0]) is None:
                self.skipTest(f"no {words[0]} here")
            result = self.run_program(*words)
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertIn('<release version="%s"' % self.run_program(self.nlv, "--version").stdout.split()[-1],
                      (folder / "org.netlogger.nlv.metainfo.xml").read_text())

    def test_ids_of_several_fields(self):
        lines = [f"DATE=20260101000000.{w}{j}{s}000 NL.EVNT=job.{e} wf={w} job={j}"
                 for w in range(3) for j in range(9) for s, e in enumerate(["submit", "start", "end"])]
        self.log.write_text("\n".join(lines) + "\n")
        config = self.scratch / "found.nlv"
        self.assertEqual(self.run_program(self.nlv, "--write-config", config, self.log).returncode, 0)
        self.assertRegex(config.read_text(), r"events=job.submit;job.start;job.end;\nid=(job;wf|wf;job);\n")

    def test_odd_logs(self):
        event = "DATE={} HOST=h NL.EVNT={} ID={}\n"
        logs = {
            "one event": event.format("20260101000000", "A", 1),
            "far apart": event.format("19700101000000", "A", 1) + event.format("21060207062815", "B", 1),
            "unordered": event.format("20260101000009", "B", 1) + event.format("20260101000000", "A", 1),
            "a moment": event.format("20260101000000", "A", 1) + event.format("20260101000000", "B", 1),
            "truncated": event.format("20260101000000", "A", 1) + "DATE=2026",
            "no fields": "DATE=20260101000000\n",
            "odd names": event.format("20260101000000", '"<&>\\xff"', '"\\x00;"') * 2,
        }
        for name, text in logs.items():
            self.log.write_text(text)
            result = self.render("odd.png", self.log)
            self.assertEqual((name, result.returncode), (name, int(name == "truncated")), result.stderr)
            self.assertEqual(png_size(self.scratch / "odd.png"), (1200, 800))

    def test_what_goes_wrong_is_said(self):
        empty = self.scratch / "empty"
        empty.touch()
        for arguments, status, message in [
            (["a.png", empty], 1, "no records"),
            (["a.png", self.scratch / "none"], 1, "No such file"),
            (["none/a.png", self.log], 1, "No such file"),
            (["a.gif", self.log], 2, ".png, .svg or .pdf"),
            (["a.png", "--size", "5x5", self.log], 2, "100 to 20000"),
            (["a.png", "--compare", self.log], 2, "requires two SOURCEs"),
            (["a.png", "--compare=REQ.ID ==", self.log], 2, "--compare"),
            (["a.png", "--compare=REQ.ID == none", self.log], 1, "REQ.ID == none has 0 requests"),
            (["a.png", "--since", "yesterday", self.log], 2, "yesterday"),
            (["a.png", "--config", self.log, self.log], 1, str(self.log)),
            (["a.png"], 2, "missing SOURCE"),
            (["a.png", "--where", "HOST == nowhere", self.log], 1, "no record or request matches --where"),
            (["a.png", "--where", "HOST ==", self.log], 2, "--where"),
            (["a.png", "--where", "request.duration > 50s", self.log], 1, "no record or request matches --where"),
            (["a.png", "--where", "request.duration > 50ms && HOST == a", self.log], 2, "write tests of records inside any()"),
        ]:
            result = self.render(*arguments)
            self.assertEqual(result.returncode, status, (arguments, result.stderr))
            self.assertIn(message, result.stderr)
        bad = self.scratch / "bad.nlv"
        for text, message in [("[lifeline X]\nevents=A\nid=B\n", "at least 2"), ("[lifeline X]\nevents=A;B\n", "id="),
                              ("[loadline X]\nevent=A\n", "field="), ("[nonsense]\n", "[nonsense]")]:
            bad.write_text(text)
            result = self.render("a.png", "--config", bad, self.log)
            self.assertEqual(result.returncode, 1)
            self.assertIn(message, result.stderr)
        result = self.run_program(self.nlv, self.log, env={k: v for k, v in os.environ.items()
                                                           if k not in ("DISPLAY", "WAYLAND_DISPLAY")})
        self.assertEqual(result.returncode, 1)
        self.assertIn("--render", result.stderr)

    def hostile_logs(self):
        """Logs whose records need far more memory in nlv than in the file."""
        def write(name, chunks):
            path = self.scratch / name
            path.write_bytes(b"".join(chunks))
            return path

        def line(t, rest):
            return f"DATE=20260101{t // 36000:02d}{t // 600 % 60:02d}{t // 10 % 60:02d}.{t % 10} {rest}\n".encode()

        yield write("dense.nlb", (blocks.dense_requests(i * 100000) for i in range(support.representative(100, 35)))), True
        yield write("wide.nlb", (blocks.tables() for _ in range(50))), False
        yield write("backwards.log", (line(400000 - i, f"HOST=h NL.EVNT=A ID={i // 2}") for i in range(400000))), None
        yield write("hosts.log", (line(i, f"HOST=h{i} NL.EVNT=Load L={i} M={i * 3 % 7}") for i in range(70000))), False

    def test_memory_stays_within_its_limit(self):
        program = ("import resource, subprocess, sys; r = subprocess.run(sys.argv[1:]);"
                   "print(r.returncode, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)")
        for log, is_too_large in self.hostile_logs():
            with self.subTest(log=log.name):
                result = self.run_program("/usr/bin/python3", "-c", program, self.nlv, "--max-memory", "32m", "--no-index",
                                          "--render", self.scratch / "a.png", log)
                status, kilobytes = map(int, result.stdout.split())
                if b"__asan_init" not in pathlib.Path(self.nlv).read_bytes():  # a sanitizer uses additional memory
                    self.assertLess(kilobytes, 140 << 10)
                self.assertEqual(png_size(self.scratch / "a.png"), (1200, 800))
                if is_too_large is None:
                    continue
                self.assertEqual(status, int(is_too_large), result.stderr)
                missing = re.search(r"The memory limit of 32 MiB is reached: the oldest records \((\d+)\) are not shown", result.stderr)
                self.assertEqual(missing is not None, is_too_large, result.stderr)
                if is_too_large:
                    self.assertGreater(int(missing.group(1)), support.representative(1000000, 100000))

    def test_many_lifelines(self):
        lines = [f"DATE=20260101{i // 3600:02d}{i // 60 % 60:02d}{i % 60:02d}.{s} HOST=h{i % 9} NL.EVNT=E{s} REQ.ID={i}"
                 for i in range(50000) for s in range(3)]
        self.log.write_text("\n".join(lines) + "\n")
        result = self.render("many.svg", self.log)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertLess((self.scratch / "many.svg").stat().st_size, 20_000_000, "bounded by the picture, not by the log")


    def test_what_is_rare_is_seen_among_many(self):
        config = self.scratch / "c.nlv"
        config.write_text("[lifeline R]\nevents=A;B\nid=ID\n[point Oops]\nevent=Oops\n")

        usual = [line for i in range(30000) for line in ((i * 1000, f"HOST=h{i % 3} NL.EVNT=A ID={i}"), (i * 1000 + 500, f"HOST=h{i % 3} NL.EVNT=B ID={i}"))]

        def picture(slow=None, oops=False):
            lines = usual.copy()
            if slow is not None:
                lines[2 * slow + 1] = (slow * 1000 + 3000000, f"HOST=h{slow % 3} NL.EVNT=B ID={slow}")
            if oops:
                lines.append((12345678, "HOST=h1 NL.EVNT=Oops"))
            lines.sort()
            self.log.write_text("".join(f"DATE=202601011200{t // 1000000:02d}.{t % 1000000:06d} {rest}\n" for t, rest in lines))
            result = self.render("rare.png", "--config", config, "--since", "20260101115959", "--until", "20260101120031", self.log)
            self.assertEqual(result.returncode, 0, result.stderr)
            return read_png(self.scratch / "rare.png")[2]

        def differences(a, b):
            return sum(p != q for y in range(60, 720) if a.rows[y] != b.rows[y] for p, q in zip(a[y], b[y]))  # above the caption

        plain = picture()
        self.assertEqual(differences(plain, picture()), 0)
        self.assertGreater(differences(plain, picture(oops=True)), 20, "one point in a minute")
        self.assertGreater(differences(plain, picture(slow=15000)), 100, "one slow request among thirty thousand")


class Window(nlv_window.WindowCase):
    def test_zoom_pan_and_back(self):
        self.open(self.log)
        whole = self.range()
        self.xdotool("mousemove", "700", "300", "click", "4", "click", "4", "click", "4")
        zoomed = self.settled(whole, "the wheel zooms")
        width = lambda r: self.seconds(r[1]) - self.seconds(r[0])
        self.assertLess(width(zoomed), 0.9 * width(whole))
        self.assertGreater(self.seconds(zoomed[0]), self.seconds(whole[0]))
        self.assertLess(self.seconds(zoomed[1]), self.seconds(whole[1]))
        self.xdotool("mousemove", "700", "300", "mousedown", "1", "mousemove", "600", "300", "mousemove", "500", "300", "mouseup", "1")
        panned = self.settled(zoomed, "a drag pans")
        self.assertGreater(self.seconds(panned[0]), self.seconds(zoomed[0]), "dragged to the left: later times")
        self.assertAlmostEqual(width(panned), width(zoomed), 2)
        self.xdotool("key", "Home")
        support.wait_until(lambda: self.range() == whole, what="Home shows all")

    def test_zoom_to_what_is_dragged_over_and_back_and_forward(self):
        self.open(self.log)
        whole = self.range()
        self.xdotool("keydown", "shift", "mousemove", "500", "300", "mousedown", "1", "mousemove", "560", "300", "mousemove", "700",
                     "310", "mouseup", "1", "keyup", "shift")
        inside = self.settled(whole, "the box is shown")
        self.assertGreater(self.seconds(inside[0]), self.seconds(whole[0]))
        self.assertLess(self.seconds(inside[1]), self.seconds(whole[1]))
        self.xdotool("key", "alt+Left")
        support.wait_until(lambda: self.range() == whole, what="back")
        self.xdotool("key", "alt+Right")
        support.wait_until(lambda: self.range() == inside, what="forward")

    def test_keys_move(self):
        self.open(self.log)
        before = self.range()
        for key, moves in [("w", lambda a, b: self.seconds(b[0]) > self.seconds(a[0]) and self.seconds(b[1]) < self.seconds(a[1])),
                           ("d", lambda a, b: self.seconds(b[0]) > self.seconds(a[0]) and self.seconds(b[1]) > self.seconds(a[1])),
                           ("a", lambda a, b: self.seconds(b[0]) < self.seconds(a[0]) and self.seconds(b[1]) < self.seconds(a[1])),
                           ("s", lambda a, b: self.seconds(b[0]) < self.seconds(a[0]) and self.seconds(b[1]) > self.seconds(a[1]))]:
            self.xdotool("key", key)
            after = self.settled(before, f"{key} moves")
            self.assertTrue(moves(before, after), (key, before, after))
            before = after

    def test_search_goes_to_matches(self):
        self.open(self.log)
        for _ in range(4):
            self.xdotool("key", "w")
        before = self.settled(None, "zoomed in")
        for _ in range(4):
            self.xdotool("key", "d")
        self.settled(before, "moved")
        before = self.range()
        self.xdotool("key", "ctrl+f")
        time.sleep(0.5)
        self.xdotool("type", "Oops")
        self.xdotool("key", "Return")
        found = self.settled(before, "the match is shown")
        self.assertLess(self.seconds(found[0]), 12 * 3600 + 0.001234)
        self.assertGreater(self.seconds(found[1]), 12 * 3600 + 0.001234)

    def test_what_is_chosen_and_marked_is_told(self):
        if shutil.which("xwd") is None:
            self.skipTest("no xwd here")
        self.open(self.log)
        empty = self.picture()

        def differs(row_from, row_to):
            now = self.picture()
            return sum(now[y][x] != empty[y][x] for y in range(row_from, row_to, 3) for x in range(800, 1190, 3)) > 200

        self.xdotool("mousemove", "300", "250", "mousedown", "3", "mousemove", "400", "260", "mousemove", "600", "260", "mouseup", "3")
        support.wait_until(lambda: differs(60, 400), what="statistics appear at the side")
        self.xdotool("key", "Escape", "F9")
        support.wait_until(lambda: not differs(60, 400), what="the panel goes")

    def test_filter_shows_only_what_matches(self):
        process = self.open(self.log)
        whole = self.range()
        self.xdotool("key", "ctrl+l")
        time.sleep(0.5)
        self.xdotool("type", "REQ.ID == r7")
        self.xdotool("key", "Return")
        one = self.settled(whole, "one request is shown")
        self.assertLess(self.seconds(one[1]) - self.seconds(one[0]), 0.02)
        self.xdotool("key", "ctrl+l", "ctrl+a", "BackSpace", "Return")
        support.wait_until(lambda: self.range() == whole, what="all is shown again")
        self.assertIsNone(process.poll())

    def test_a_log_that_is_empty_at_first(self):
        empty = self.scratch / "empty.log"
        empty.touch()
        process = self.start(self.nlv, empty, env=self.environment, stderr=subprocess.DEVNULL)
        support.wait_until(lambda: "empty.log" in self.title(), what="the window")
        time.sleep(1)
        self.assertLess(len(os.listdir(f"/proc/{process.pid}/fd")), 60, "nothing is opened again and again")
        with open(empty, "a") as log:
            log.write(requests())
        support.wait_until(lambda: "T12:00:00" in self.title(), what="what comes is shown")

    def test_the_example(self):
        process = self.start(self.nlv, env=self.environment, stderr=subprocess.DEVNULL)
        support.wait_until(lambda: "nlv" in self.title().splitlines(), what="the first window")
        self.xdotool("key", "Tab", "alt+x")
        support.wait_until(lambda: "example.log" in self.title(), what="the example is shown")
        self.assertIsNone(process.poll())

    def test_real_time_follows_a_growing_log(self):
        process = self.open(self.log)
        before = self.range()
        self.xdotool("key", "space")
        support.wait_until(lambda: self.title().endswith("real time"), what="space switches to real time")
        with open(self.log, "a") as log:
            for i in range(10):
                log.write(f"DATE=2026010112001{i} HOST=s NL.EVNT=Client.Send REQ.ID=n{i}\n")
                log.flush()
                time.sleep(0.05)
        support.wait_until(lambda: "T12:00:19" in self.title(), what="the view moves on with the log")
        self.xdotool("key", "space")
        support.wait_until(lambda: not self.title().endswith("real time"), what="space switches back")
        self.log.write_text("")  # truncated
        self.log.unlink()  # and gone
        time.sleep(0.3)
        self.assertIsNone(process.poll(), "the window lives on")
        self.assertEqual(self.quit(process), 0)

    def test_no_log_says_what_to_do(self):
        messages = self.scratch / "messages"
        with open(messages, "w") as said:
            process = self.start(self.nlv, env=self.environment, stderr=said)
        try:
            support.wait_until(lambda: "nlv" in self.title().splitlines(), what="the first window")
        except AssertionError as error:
            raise AssertionError(f"{error}; windows: {self.title()!r}, status {process.poll()}, {messages.read_text()}")
        self.assertIsNone(process.poll())


if __name__ == "__main__":
    support.main()
