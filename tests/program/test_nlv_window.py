"""Tests the functions of nlv's window with input events of a user, and through the interface for screen readers."""
import json
import re
import shutil
import signal
import socket
import subprocess
import time

import nlv_window
import support


class Accessible(nlv_window.WindowCase):
    def setUp(self):
        super().setUp()
        self.start_bus()

    def check_names(self, where):
        unnamed = [widget for widget in self.accessible("tree")
                   if not widget["name"] and (widget["actions"] > 0 or widget["role"] in ("text", "combo box", "table"))]
        self.assertEqual(unnamed, [], where)

    def test_every_widget_has_a_name(self):
        self.start(self.nlv, env=self.environment, stderr=subprocess.DEVNULL)
        self.focus("^nlv$")
        self.check_names("the first window")

    def test_every_widget_of_a_log_has_a_name(self):
        self.open(self.log)
        self.check_names("the window")
        self.focus("^nlv")
        self.xdotool("key", "ctrl+f")
        time.sleep(0.5)
        self.check_names("the search bar")
        self.xdotool("key", "Escape", "F9", "b")
        time.sleep(0.5)
        self.check_names("bookmarks")
        self.xdotool("key", "Escape", "ctrl+t")
        time.sleep(0.5)
        self.check_names("the choice")
        self.xdotool("key", "Escape", "F4")
        for page in ["Lifelines", "Loadlines", "Points"]:
            self.accessible("choose", "page tab", page)
            time.sleep(0.3)
            self.check_names(f"the editor, {page}")

    def test_what_is_drawn_is_edited_and_saved(self):
        self.open(self.log)
        self.focus("^nlv")
        self.xdotool("key", "F4")
        self.accessible("type", "Name", "Request")
        self.accessible("type", "Title", "What there is")
        self.accessible("choose", "table cell", "Server.Recv")  # the log's existing events
        self.accessible("press", "push button", "Draw")
        self.accessible("choose", "page tab", "Loadlines")
        self.accessible("type", "Unit", "%")
        self.accessible("press", "push button", "Draw")
        saved = self.scratch / "mine.nlv"
        text = self.save_drawing(saved)
        self.assertIn("title=What there is\n", text)
        self.assertIn("[lifeline Request]\nevents=Client.Send;Server.Recv;Server.Done;Client.Recv;\nid=REQ.ID;\n", text)
        self.assertIn("[loadline LOAD]\nevent=Load\nfield=LOAD\nunit=%\n", text)
        result = self.run_program(self.nlv, "--config", saved, "--render", self.scratch / "a.png", self.log)
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_a_lifeline_that_would_not_do_is_refused(self):
        self.open(self.log)
        self.focus("^nlv")
        self.xdotool("key", "F4")
        self.accessible("press", "push button", "New lifeline")
        self.accessible("press", "push button", "Draw")
        support.wait_until(lambda: any("at least 2" in text for text in self.texts()), what="the reason")

    def test_bookmarks_stay(self):
        process = self.open(self.log)
        self.focus("^nlv")
        self.xdotool("mousemove", "500", "300")
        self.xdotool("key", "b")
        time.sleep(0.7)
        self.xdotool("type", "look here")
        self.xdotool("key", "Return")
        time.sleep(0.3)
        self.xdotool("mousemove", "700", "300")
        self.xdotool("key", "b")
        time.sleep(0.7)
        self.xdotool("type", "and there")
        self.xdotool("key", "Return")
        time.sleep(0.3)
        self.assertEqual(self.quit(process), 0)
        for _ in range(2):  # a second save also loses no event
            process = self.open(self.log)
            self.focus("^nlv")
            self.xdotool("key", "ctrl+b")
            support.wait_until(lambda: {"look here", "and there"} <= set(self.texts()), what="the notes are there again")
            self.xdotool("key", "Escape")
            self.assertEqual(self.quit(process), 0)
        self.open(self.log)
        self.focus("^nlv")
        self.xdotool("key", "ctrl+b")
        support.wait_until(lambda: "look here" in self.texts(), what="the note is there again")
        self.accessible("press", "push button", "Remove the bookmark")
        self.xdotool("key", "Escape", "ctrl+z")
        time.sleep(0.5)
        self.xdotool("key", "ctrl+b")
        support.wait_until(lambda: {"look here", "and there"} <= set(self.texts()), what="undone")

    def test_a_missing_file_and_a_collector_that_is_down(self):
        """Each source opens a window with a message; nlv connects to the collector again."""
        missing = self.scratch / "missing.log"
        process = self.start(self.nlv, missing, env=self.environment, stderr=subprocess.DEVNULL)
        support.wait_until(lambda: any(f"{missing}: no such file" in text for text in self.texts()), what="the notice")
        missing.write_text(nlv_window.requests(3))
        support.wait_until(lambda: "12:00:00" in self.title(), what="it is shown when it appears")
        process.kill()
        process.wait()
        port = support.free_port()
        process = self.start(self.nlv, f"x-netlog://127.0.0.1:{port}", env=self.environment, stderr=subprocess.DEVNULL)
        support.wait_until(lambda: any("Connection refused" in text and "tries again" in text for text in self.texts()), what="the notice")
        self.start(support.program("netlogd/netlogd"), "--foreground", "--listen", f"x-netlog://127.0.0.1:{port}", "--output",
                   self.scratch / "all.log", stderr=subprocess.DEVNULL)
        support.wait_until(lambda: f"127.0.0.1:{port}" in self.title(), what="the log is open", seconds=30)
        self.assertIsNone(process.poll())
        result = self.run_program(self.nlv, "--render", self.scratch / "a.png", f"x-netlog://127.0.0.1:{support.free_port()}")
        self.assertEqual((result.returncode, result.stderr.count("\n")), (1, 1), result.stderr)

    def test_documents_without_a_last_newline(self):
        spans = [{"traceId": f"{i + 1:032x}", "spanId": f"{i + 1:016x}", "name": "GET /x",
                  "startTimeUnixNano": f"{1767268800 + i}000000000", "endTimeUnixNano": f"{1767268800 + i}500000000"} for i in range(20)]
        events = [{"name": "GET /x", "ph": "X", "ts": (1767268800 + i) * 1000000, "dur": 500000, "pid": 1, "tid": 1} for i in range(20)]
        for name, document in [("otlp", {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}), ("chrome", {"traceEvents": events})]:
            log = self.scratch / f"{name}.json"
            log.write_text(json.dumps(document))
            viewer = self.open(log)
            begin, end = (self.seconds(text) for text in self.range())
            self.assertLessEqual(19, end - begin, name)
            self.assertEqual(self.quit(viewer), 0)

    def test_undo_of_filter_and_view(self):
        self.open(self.log)
        self.focus("^nlv")
        whole = self.range()
        time.sleep(1)  # the state must have lasted for a moment to count as a step
        self.xdotool("key", "w")
        zoomed = self.settled(whole, "zoomed")
        time.sleep(1)
        self.xdotool("key", "ctrl+l")
        time.sleep(0.5)
        self.xdotool("type", "REQ.ID == r7")
        self.xdotool("key", "Return")
        support.wait_until(lambda: any(text.startswith("5 records   showing only") or text.startswith("4 records   showing only")
                                       for text in self.texts()), what="filtered")
        time.sleep(1)
        self.xdotool("key", "ctrl+z")
        support.wait_until(lambda: any("251 records" in text or text == "Undone: the filter" for text in self.texts()),
                           what="the filter is undone")
        self.assertEqual(self.range(), zoomed)
        self.xdotool("key", "ctrl+z")
        support.wait_until(lambda: self.range() == whole, what="the view is undone")
        self.xdotool("key", "ctrl+shift+z")
        support.wait_until(lambda: self.range() == zoomed, what="done again")

    def test_records_are_saved_in_any_format(self):
        self.open(self.log)
        self.focus("^nlv")
        self.xdotool("key", "ctrl+shift+e")
        self.focus("Save records")
        out = self.scratch / "out.json"
        self.accessible("combo", "in the format", "4")
        records = [json.loads(line) for line in self.save_as("Save records", out).splitlines()]
        self.assertEqual(len(records), 251)
        self.assertEqual(len({record["REQ.ID"] for record in records if "REQ.ID" in record}), 50)

    def test_a_command_is_found_by_a_part_of_its_name(self):
        self.open(self.log)
        whole = self.range()
        self.focus("^nlv")
        self.xdotool("key", "F2")
        self.focus("Find a command")
        self.xdotool("type", "zoom in")
        self.xdotool("key", "Return")
        self.settled(whole, "zoomed in")

    def test_options_say_what_is_shown_first(self):
        self.open("--where", "REQ.ID == r7", "--since", "2026-01-01T12:00:00.05", "--until", "2026-01-01T12:00:00.1", self.log)
        self.focus("^nlv")
        support.wait_until(lambda: any(text.startswith('4 records   showing only REQ.ID == "r7"') for text in self.texts()), what="filtered")
        self.assertEqual(self.range(), ("2026-01-01T12:00:00.050", "2026-01-01T12:00:00.100"))
        self.xdotool("key", "ctrl+l")
        support.wait_until(lambda: "REQ.ID == r7" in self.texts(), what="the expression can be edited")

    def test_statistics_have_shares_and_lead_to_the_maximum(self):
        self.log.write_text(nlv_window.branching_requests(300, {200}))
        self.open(self.log)
        self.focus("^nlv")
        self.xdotool("key", "Home")
        self.settled(None, "the whole log")
        self.xdotool("mousemove", "110", "200", "mousedown", "3", "mousemove", "500", "200", "mousemove", "1250", "200", "mouseup", "3")
        texts = support.wait_until(lambda: (texts := self.texts()) and "Whole requests that end in this time" in texts and texts, what="the statistics")
        self.assertIn("Query.start → Query.end", texts)
        at = texts.index("Query.start → Query.end")
        self.assertRegex(" ".join(reversed(texts[at - 5 : at])), r"^300 \d+\.\d % [\d.]+ ms [\d.]+ ms 250 ms$")
        picture, blue = self.picture(), (0x1b, 0x6a, 0xcb)
        x, y = min((y, x) for x, y in picture.places(blue) if x > 900)[::-1]  # the maximum of the whole requests
        self.xdotool("mousemove", str(x + 4), str(y + 4), "click", "1")
        support.wait_until(lambda: any("r200" in text for text in self.texts()), what="the slowest request")

    def test_names_in_a_log_do_not_reorder_or_control_labels(self):
        hostile = "\u202eevil\u2066\x9b\x1b[31m"
        log = self.scratch / f"a{hostile}.log"
        text = nlv_window.requests().replace("Server.Recv", f'"S{hostile}"').replace("HOST=s", f'HOST="s{hostile}"')
        log.write_text(text.replace("REQ.ID=r", f'REQ.ID="r{hostile}"').replace(f'r{hostile}"', f'r{hostile}').replace(" KIND", '" KIND'))
        self.open(log)
        self.focus("^nlv")
        self.xdotool("mousemove", "400", "300", "mousedown", "3", "mousemove", "500", "300", "mousemove", "600", "300", "mouseup", "3")
        support.wait_until(lambda: any("marked" in text for text in self.texts()), what="the statistics")
        self.xdotool("key", "F4")
        support.wait_until(lambda: "Remove lifeline" in [widget["name"] for widget in self.accessible("tree")], what="the editor")
        shown = [self.title(), *(widget[part] or "" for widget in self.accessible("tree") for part in ("name", "text")
                                 if widget["role"] not in ("text", "combo box"))]
        self.assertGreater(sum("evil" in text for text in shown), 3)
        self.assertEqual([text for text in shown if re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]", text)], [])

    def test_playing(self):
        self.open(self.log)
        self.focus("^nlv")
        whole = self.range()
        for _ in range(8):
            self.xdotool("key", "w")
        zoomed = self.settled(whole, "zoomed in")
        self.accessible("press", "push button", "Slower (,)")
        moved = self.settled(zoomed, "it has played to the end")
        self.assertGreater(self.seconds(moved[0]), self.seconds(zoomed[0]))
        self.accessible("value", "Position in the log", "0")
        self.settled(moved, "at the start")
        self.assertLess(self.seconds(self.range()[0]), 12 * 3600)

    def test_what_was_drawn_coarsely_is_fine_once_it_rests(self):
        self.environment["GDK_SCALE"] = "2"
        with open(self.log, "a", encoding="ascii") as log:
            for i in range(50000):  # enough events that it takes long to draw all pixels
                for step, event in enumerate(["Client.Send", "Server.Recv", "Server.Done", "Client.Recv"]):
                    log.write(f"DATE=20260101120000.{i * 9 + step * 1200 + i % 700:06d} HOST=h{step % 3} PROG=p LVL=Usage "
                              f"NL.EVNT={event} REQ.ID=b{i} KIND=0\n")
        self.open(self.log)
        self.focus("^nlv")
        whole = self.range()

        def rests():
            first = self.picture()
            time.sleep(3)
            return self.picture() == first and first

        at_rest = support.wait_until(rests, what="it is drawn finely")
        self.xdotool("key", "w")
        zoomed = self.settled(whole, "zoomed in")
        self.xdotool("key", "BackSpace")
        self.settled(zoomed, "moved back")
        support.wait_until(lambda: self.picture() == at_rest, what="as fine as before")

    def test_eight_recent_logs_fit_a_small_screen(self):
        logs = [self.scratch / f"a log with a rather long name, number {i}.log" for i in range(9)]
        for log in logs:
            log.write_text(nlv_window.requests(2))
        process = self.open(*logs)
        self.assertEqual(self.quit(process), 0)
        self.start(self.nlv, env=self.environment, stderr=subprocess.DEVNULL)
        support.wait_until(lambda: sum("a log with" in text for text in self.names()) == 8, what="the recent logs are listed")
        self.xdotool("search", "--onlyvisible", "--name", "^nlv", "windowsize", "1000", "600")
        support.wait_until(lambda: "1000x600" in self.xdotool("search", "--onlyvisible", "--name", "^nlv", "getwindowgeometry"),
                           what="the window has this size")

    def test_click_on_a_colour_of_the_legend_isolates_it(self):
        self.log.write_text("".join(
            f"DATE=202601011200{i:02d}.{ms:03d}000 HOST={host} PROG=p LVL=Usage NL.EVNT={event} REQ.ID=r{i}\n"
            for i in range(40) for ms, host, event in [(0, "client", "Send"), (5, "ab"[i % 2], "Work.start"), (100, "ab"[i % 2], "Work.end"),
                                                       (105, "client", "Recv")]))
        self.open(self.log)
        self.focus("^nlv")
        orange = (0xd5, 0x5e, 0)

        def sample():
            """Returns the position of the second color in the legend."""
            rows = self.picture()
            return next(((x + 5, y) for y in range(60, 140) for x in range(60, 500) if rows[y][x : x + 12] == 12 * [orange]), None)

        x, y = support.wait_until(sample, what="the legend")
        for status in '80 records   showing only HOST == "b"', "160 records":
            self.xdotool("mousemove", str(x), str(y), "click", "1")
            time.sleep(0.5)
            self.xdotool("mousemove", "640", "5")  # the status then shows the number of records again
            support.wait_until(lambda: any(text.split(" (")[0] == status for text in self.texts()), what=status)
        self.xdotool("mousemove", str(x), str(y), "keydown", "shift", "click", "1", "keyup", "shift", "mousemove", "640", "5")
        hidden = '80 records   showing only !any(HOST == "b")'
        support.wait_until(lambda: any(text.split(" (")[0] == hidden for text in self.texts()), what="Shift+click hides the color")
        self.assertEqual(self.picture()[y][x : x + 9], 9 * [orange], "the legend keeps the hidden color")
        for keys, status in [(["l", "Right", "Delete"], "160 records"), (["Left", "Delete"], '80 records   showing only !any(HOST == "a")'),
                             (["Return", "Escape"], '80 records   showing only HOST == "a"')]:
            self.xdotool("key", *keys)
            self.xdotool("mousemove", "650", "5", "mousemove", "640", "5")
            support.wait_until(lambda: any(text.split(" (")[0] == status for text in self.texts()), what=status)

    def test_collapsed_measurements(self):
        """The key T expands the next collapsed measurement. A click on a name also does."""
        self.log.write_text(nlv_window.measurements(11, 14))
        self.open(self.log)
        first = self.picture()
        shown = nlv_window.strips(first, 640, 120, 860)
        self.assertIn(len(shown), range(22, 12 * 11, 11))
        self.focus("^nlv")
        self.xdotool("key", "t")
        support.wait_until(lambda: self.picture() != first, what="another measurement is expanded")
        time.sleep(0.5)
        self.assertEqual(len(nlv_window.strips(self.picture(), 640, 120, 860)), len(shown))

    DISK, RUNNING = (0x8c, 0x51, 0x0a), (0x3f, 0xa3, 0x4d)

    def test_threads(self):
        """V shows a row for each thread with its spans and states. The rows scroll, and a track is collapsed and pinned with the
        keyboard."""
        self.log.write_text(nlv_window.threads(200))
        self.open(self.log)
        self.focus("^nlv")
        self.assertEqual(self.picture().places(self.DISK), [])
        self.xdotool("key", "v")
        rows = support.wait_until(lambda: sorted({y for x, y in self.picture().places(self.DISK) if y > 150}), what="the states")
        strips = [y for y in rows if y - 1 not in rows]
        self.assertGreater(len(strips), 5)
        self.assertGreater(len([place for place in self.picture().places(self.RUNNING) if place[1] in rows]), 200)
        first = self.picture()
        self.xdotool("key", "Next")
        support.wait_until(lambda: self.picture() != first, what="the next rows")
        self.xdotool("key", "Prior")
        support.wait_until(lambda: self.picture() == first, what="the first rows")
        self.xdotool("key", "k", "Down", "Down", "Return")  # the second thread
        collapsed = support.wait_until(lambda: len(found := sorted({y for x, y in self.picture().places(self.DISK) if y > 150})) and
                                       (found[0] == rows[0]) and [y for y in found if y - 1 not in found][1] > strips[1] and found, what="a thread without states")
        self.assertNotEqual(collapsed, rows)
        self.xdotool("key", "Return", "p", "Escape")
        support.wait_until(lambda: sorted({y for x, y in self.picture().places(self.DISK) if y > 100})[0] < rows[0], what="a pinned thread")
        self.xdotool("key", "v")
        support.wait_until(lambda: self.picture().places(self.DISK) == [], what="the events")

    def test_clock_of_all_times_and_sessions(self):
        """The key U changes the times of the title, the table and the details. Sessions keep the clock, the threads and the tracks."""
        self.environment["TZ"] = "XYZ-05:30"
        self.log.write_text(nlv_window.threads(20))
        viewer = self.open(self.log)
        self.focus("^nlv")
        self.xdotool("key", "u")
        support.wait_until(lambda: "T17:30:00." in self.title(), what="local time in the title")
        self.xdotool("key", "r")
        support.wait_until(lambda: any(text.startswith("17:30:00.") for text in self.texts()), what="local time in the table")
        self.xdotool("key", "Escape", "v")
        support.wait_until(lambda: self.picture().places(self.DISK), what="the threads")
        self.xdotool("key", "k", "Down", "p", "Escape")
        time.sleep(1)
        self.assertEqual(self.quit(viewer), 0)
        self.open(self.log)
        self.focus("^nlv")
        self.assertEqual(self.picture().places(self.DISK), [])
        self.xdotool("key", "ctrl+r")
        support.wait_until(lambda: "T17:30:00." in self.title() and self.picture().places(self.DISK), what="the session")

    def test_a_log_without_threads(self):
        self.open(self.log)
        self.focus("^nlv")
        before = self.picture()
        self.accessible("press", "toggle button", "Threads")
        support.wait_until(lambda: self.picture() != before, what="the sentence")
        dark = lambda: sum(sum(pixel) < 200 for row in self.picture()[120:200] for pixel in row[80:1200])
        support.wait_until(lambda: dark() > 600, what="the whole sentence")

    def test_tracks_collapse_and_pin(self):
        """A click on a label collapses a track, and another click expands it. With Shift, a click pins it at the top."""
        self.open(self.log)
        self.focus("^nlv")
        self.xdotool("mousemove", "640", "5")
        time.sleep(0.5)
        first = self.picture()
        at = ["mousemove", "20", "250"]
        self.xdotool(*at, "click", "1", "mousemove", "640", "5")
        support.wait_until(lambda: self.picture() != first, what="the collapsed lifelines")
        self.xdotool("key", "t")
        support.wait_until(lambda: self.picture()[100:600] == first[100:600], what="the expanded lifelines")
        self.xdotool(*at, "keydown", "shift", "click", "1", "keyup", "shift", "mousemove", "640", "5")
        support.wait_until(lambda: self.picture() != first, what="the pinned lifelines")

    def test_everything_fits_a_narrow_window(self):
        self.log.write_text(nlv_window.branching_requests(300, {150}))
        self.open(self.log)
        self.focus("^nlv")
        self.xdotool("key", "r")  # the table of requests
        support.wait_until(lambda: any("300 of 300 requests" in text for text in self.texts()), what="the table")
        for key in "F9", "F8", "ctrl+f":  # the side panel, the sensors and the search bar
            self.xdotool("key", key)
        support.wait_until(lambda: {"Details", "Directory"} <= set(self.names()), what="both panels")
        self.xdotool("search", "--onlyvisible", "--name", "^nlv", "windowsize", "500", "700")
        support.wait_until(lambda: "500x700" in self.xdotool("search", "--onlyvisible", "--name", "^nlv", "getwindowgeometry"),
                           what="the window has this size")

    def names(self):
        return [widget["name"] for widget in self.accessible("tree") if widget["name"]]

    def test_order_is_reported_once(self):
        self.open(self.log)
        support.wait_until(lambda: any("51 of 251 records were out of order" in text for text in self.texts()), what="the notice")
        for _ in range(3):
            with open(self.log, "a", encoding="ascii") as log:
                log.write(nlv_window.requests(3))
            time.sleep(0.5)
        self.focus("^nlv")
        self.xdotool("key", "ctrl+l")
        time.sleep(0.5)
        self.xdotool("type", "KIND == 1")
        self.xdotool("key", "Return")
        support.wait_until(lambda: any("showing only" in text for text in self.texts()), what="filtered")
        time.sleep(1)
        lines = [line for text in self.texts() for line in text.splitlines() if "out of order" in line]
        self.assertEqual(len(lines), 1, lines)

    def test_following_pauses_and_resumes(self):
        self.open(self.log)
        self.focus("^nlv")
        for key, shown in ("space", "Pause"), ("space", "Follow"), ("space", "Pause"), ("w", "Follow"):
            self.xdotool("key", key)
            support.wait_until(lambda: shown in self.names() and not {"Pause", "Follow"} - {shown} & set(self.names()), what=f"{key}: {shown}")

    def test_text_about_a_record_follows_it(self):
        self.open(self.log)
        self.focus("^nlv")
        before = self.range()
        self.xdotool("key", *"wwwwww")
        before = self.settled(before, "zoomed in")
        rows = self.picture()
        strength = lambda x, y: sum(max(rows[y + dy][x + dx]) - min(rows[y + dy][x + dx]) for dy in (-1, 0, 1) for dx in (-1, 0, 1))
        x, y = max(((x, y) for x in range(600, 700) for y in range(150, 400)), key=lambda place: strength(*place))  # the mark of a record
        self.xdotool("mousemove", str(x), str(y))

        def box():
            """Returns the left edge of the text's dark box."""
            row = self.picture()[y + 17]
            return next((x for x in range(100, 1150) if all(max(pixel) < 70 for pixel in row[x : x + 6])), None)

        left = support.wait_until(box, what="the text")
        self.xdotool("key", "d")
        self.settled(before, "moved by a tenth")
        moved = left - support.wait_until(lambda: (now := box()) != left and now, what="the text has followed the record")
        self.assertTrue(100 < moved < 115, moved)
        self.xdotool("key", *"dddddddddd")
        support.wait_until(lambda: box() is None, what="the record and the text have left the picture")

    def test_crosshair_and_the_line_below_the_pointer(self):
        """A line through all panes follows the pointer. The text about a record begins with the duration of the line to the record."""
        self.open(self.log)
        self.focus("^nlv")
        self.xdotool("mousemove", "640", "500")

        def crosshair():
            picture = self.picture()
            return max(sum(max(picture[y][x]) - min(picture[y][x]) < 12 and 110 < picture[y][x][0] < 170 for y in range(100, 700))
                       for x in (639, 640))

        support.wait_until(lambda: crosshair() > 200, what="the crosshair")
        before = self.range()
        self.xdotool("key", *"wwwwww")
        self.settled(before, "zoomed in")
        rows = self.picture()
        strength = lambda x, y: sum(max(rows[y + dy][x + dx]) - min(rows[y + dy][x + dx]) for dy in (-1, 0, 1) for dx in (-1, 0, 1))
        x, y = max(((x, y) for x in range(600, 700) for y in range(110, 260)), key=lambda place: strength(*place))  # a record of Client.Recv
        self.xdotool("mousemove", str(x), str(y))
        support.wait_until(lambda: any("1 ms after Server.Done" in text for text in self.texts()), what="the duration of the line")

    def test_print_into_a_file(self):
        self.open(self.log)
        self.focus("^nlv")
        self.xdotool("key", "ctrl+p")
        self.focus("Print")
        self.accessible("choose", "table cell", "Print to File")
        self.accessible("press", "push button", "Print")

        def pages():
            return [path for path in self.scratch.rglob("*.pdf") if path.read_bytes().rstrip().endswith(b"%%EOF")]

        support.wait_until(pages, what="the page")

    def notices(self, text, expected):
        log = self.scratch / "odd.log"
        log.write_text(text)
        process = self.start(self.nlv, log, env=self.environment, stderr=subprocess.DEVNULL)
        support.wait_until(lambda: any(expected in said for said in self.texts()), what=expected)
        self.assertIsNone(process.poll())
        process.kill()
        process.wait()

    def test_what_is_odd_is_said(self):
        event = "DATE={} HOST=h NL.EVNT={} ID={}\n"
        many = "".join(event.format(f"200001010000{i:02d}", "A", i) for i in range(20))
        spans = [f"ts=2012-03-14T{hour}:05:{second + i:02d}Z event={event} level=Info host=w job.id=j{i}{rest}\n" for i in range(20)
                 for hour, second, event, rest in [(14, 0, "inv.start", ""), (22, 10, "inv.end", " dur=9.5")]]
        for text, expected in [
            ("", "the log is empty"),
            (event.format("20260101000000", "A", 1), "only one record"),
            (event.format("20260101000009", "B", 1) + event.format("20260101000000", "A", 1), "1 of 2 records was out of order"),
            (event.format("19700101000001", "A", 1) + event.format("20260101000000", "B", 1), "from 1970-01-01"),
            (event.format("20260101000000", "A", 1) + event.format("21060207062815", "B", 1), "from 2106-02-07"),
            (many + event.format("20310909014640", "A", 1), "no records for 11574"),
            (event.format("20260101000000", "A", 1) * 2 + "DATE=2026", "incomplete"),
            ("".join(sorted(spans)), "20 inv.start events on w were logged 8 h too early: the durations"),
            ("".join(sorted(spans)).replace(" dur=9.5", ""), "Each step from inv.start to inv.end takes at least 8 h: these events are in different"),
            (event.format("20260101000000", "A", 1) + "nonsense\n" + event.format("20260101000001", "B", 1), "malformed"),
        ]:
            self.notices(text, expected)

    def test_notices_are_one_line_that_expands(self):
        event = "DATE={} HOST=h NL.EVNT={} ID={}\n"
        self.log.write_text("".join(event.format(f"200001010000{i:02d}", "A", i) for i in reversed(range(20)))
                            + event.format("21060207062815", "A", 1) + "nonsense\n")
        self.start(self.nlv, self.log, env=self.environment, stderr=subprocess.DEVNULL)
        parts = ["is in the future", "no records for", "were out of order", "malformed"]

        def label():
            return next((text for text in self.texts() if all(part in text for part in parts)), None)

        collapsed = support.wait_until(label, what="the notices")
        self.assertEqual(collapsed.count("\n"), 0)
        self.assertIn("malformed", collapsed.split("\u2022")[0], "the newest notice is first")
        self.accessible("press", "push button", f"Show all {collapsed.count(chr(0x2022)) + 1} notices")
        expanded = support.wait_until(lambda: (text := label()) and "\n" in text and text, what="the notices, each on its own line")
        self.assertEqual(expanded.count("\n"), collapsed.count("\u2022"))
        self.accessible("press", "push button", "Show one line")
        support.wait_until(lambda: label() == collapsed, what="one line")

    def test_malformed_lines_are_one_message(self):
        self.log.write_text(nlv_window.requests(3) + "nonsense\nDATE=2026 x=\nmore nonsense\nDATE=abc HOST=b\n" + nlv_window.requests(3))
        self.open(self.log)
        support.wait_until(lambda: any("4 malformed lines skipped; the first is" in text for text in self.texts()), what="the notice")
        lines = [line for text in self.texts() for line in text.splitlines() if "malformed" in line or "DATE" in line]
        self.assertEqual(len(lines), 1, lines)
        self.assertIn(f"{self.log}:17: no DATE= field", lines[0])

    def test_a_missing_log_is_said(self):
        log = self.scratch / "none.log"
        process = self.start(self.nlv, log, env=self.environment, stderr=subprocess.DEVNULL)
        support.wait_until(lambda: any(f"{log} does not exist" in said for said in self.texts()), what="the notice")
        process.kill()
        process.wait()

    def test_wrong_clocks_are_said_and_corrected(self):
        offset = "DATE=2026010100000{}.1 HOST=b NL.EVNT=ClockOffset CLOCK.COLLECTOR=a CLOCK.OFFSET=5000000 CLOCK.ERROR=20\n"
        self.log.write_text(offset.format(0) + "".join(
            f"DATE=2026010100000{i}.5 HOST=a NL.EVNT=Send ID={i}\nDATE=2026010100000{i}.7 HOST=a NL.EVNT=Sent ID={i}\n"
            f"DATE=2026010100000{i}.6 HOST=b NL.EVNT=Done ID={i}\n" for i in range(5)) + offset.format(4))
        self.open(self.log)
        support.wait_until(lambda: any("Clocks: b (5 s slow)." in text for text in self.texts()), what="the notice")
        self.focus("^nlv")
        for key, expected in ("F7", True), ("ctrl+z", False), ("F7", True), ("F7", False):
            self.xdotool("key", key)
            support.wait_until(lambda: any("clocks corrected" in text for text in self.texts()) == expected, what=f"{key}, {expected}")
        self.assertTrue(any("to the clock of a by these offsets: b +5 s" in text for text in self.texts()))

    def test_what_happens_to_a_log_is_said(self):
        process = self.open(self.log)
        self.log.write_text("")
        support.wait_until(lambda: any("was emptied" in text for text in self.texts()), what="emptied")
        with open(self.log, "a") as log:
            log.write(nlv_window.requests(2))
        support.wait_until(lambda: any("was truncated; nlv keeps its records, and reads" in text for text in self.texts()), what="anew")
        self.log.unlink()
        support.wait_until(lambda: any("was removed" in text for text in self.texts()), what="gone")
        self.log.write_text(nlv_window.requests(3))
        support.wait_until(lambda: any("was replaced; nlv also reads the new file" in text for text in self.texts()), what="another")
        self.assertIsNone(process.poll())

    def test_a_collector_that_goes_away(self):
        netlogd = support.program("netlogd/netlogd")
        port = support.free_port() if hasattr(support, "free_port") else 34830
        collector = self.start(netlogd, "--foreground", "--listen", f"x-netlog://127.0.0.1:{port}", "--output",
                               self.scratch / "all.log", stderr=subprocess.DEVNULL)
        time.sleep(1)
        process = self.start(self.nlv, f"x-netlog://127.0.0.1:{port}", env=self.environment, stderr=subprocess.DEVNULL)
        support.wait_until(lambda: "nlv" in self.title(), what="the window")
        time.sleep(1)
        collector.send_signal(signal.SIGKILL)
        support.wait_until(lambda: any(f"127.0.0.1:{port}" in text for text in self.texts()), what="it is said")
        self.assertIsNone(process.poll())


    def test_in_a_browser(self):
        if shutil.which("broadwayd") is None:
            self.skipTest("no broadwayd here")
        port = support.free_port()
        display = f":{port % 1000}"
        environment = {key: value for key, value in self.environment.items() if key not in ("DISPLAY", "XDG_CACHE_HOME")}
        environment |= {"GDK_BACKEND": "broadway", "BROADWAY_DISPLAY": display, "XDG_RUNTIME_DIR": str(self.scratch)}
        self.start("broadwayd", "--address", "127.0.0.1", "--port", str(port), display, env=environment,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        support.wait_until(lambda: support.can_connect(port), what="broadwayd")
        process = self.start(self.nlv, self.log, env=environment, stderr=subprocess.DEVNULL)
        with socket.create_connection(("127.0.0.1", port), timeout=30) as browser:
            browser.sendall(f"GET /socket HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\n"
                            f"Connection: Upgrade\r\nOrigin: http://127.0.0.1:{port}\r\n"
                            "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n"
                            "Sec-WebSocket-Protocol: broadway\r\n\r\n".encode())
            got = b""
            while len(got) < 20000:
                data = browser.recv(65536)
                self.assertNotEqual(data, b"", "a picture of the window comes")
                got += data
        self.assertIn(b"101 ", got[:20])
        self.assertIsNone(process.poll())


if __name__ == "__main__":
    support.main()
