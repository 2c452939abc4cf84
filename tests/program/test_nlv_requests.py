"""nlv's table of requests and heat map, used with the keyboard and the pointer."""
import time

import nlv_window
import support


class Requests(nlv_window.WindowCase):
    COUNT, SLOW, FAILED = 3000, {1234, 2345}, {1999}
    HISTOGRAM = 1035  # the left edge of the histogram of durations, within a few pixels

    def setUp(self):
        super().setUp()
        self.log.write_text(nlv_window.branching_requests(self.COUNT, self.SLOW, self.FAILED))
        self.start_bus()

    def begin_of(self, request):
        """Returns the second of the hour at which a request begins."""
        for line in self.log.read_text().splitlines():
            if line.endswith(f"NL.EVNT=Serve.start REQ.ID=r{request}"):
                return int(line[15:17]) * 60 + float(line[17:26])
        raise AssertionError(request)

    def shown(self):
        """Returns the second of the hour at which the picture begins, and its length in seconds."""
        begin, end = (self.seconds(text) % 3600 for text in self.range())
        return begin, end - begin

    def open_table(self, key):
        process = self.open(self.log)
        self.focus("^nlv")
        whole = self.range()
        self.xdotool("key", key)
        support.wait_until(lambda: any(f"of {self.COUNT:,} requests" in text or f"of {self.COUNT} requests" in text
                                       for text in self.texts()), what="the table")
        return process, whole

    def test_slowest_request_in_two_keys(self):
        _, whole = self.open_table("r")
        self.xdotool("key", "Return")
        self.settled(whole, "the slowest request is shown")
        begin, length = self.shown()
        slowest = [self.begin_of(i) for i in self.SLOW]
        self.assertTrue(any(0 < at - begin < 0.05 for at in slowest), (begin, slowest))
        self.assertTrue(0.25 < length < 0.35, length)
        texts = self.texts()
        self.assertTrue(any("r1234" in text or "r2345" in text for text in texts), "it is selected")
        self.assertFalse(any(text.startswith("Failed") for text in texts), "no record of it reports a failure")

    def test_failed_request_in_two_keys(self):
        _, whole = self.open_table("e")
        self.xdotool("key", "Return")
        self.settled(whole, "the failed request is shown")
        begin, length = self.shown()
        self.assertTrue(0 <= self.begin_of(1999) - begin < 0.01, begin)
        self.assertLess(length, 0.05)
        texts = self.texts()
        self.assertTrue(any("r1999" in text for text in texts), "it is selected")
        self.assertTrue(any(text.startswith("Failed\n") and "Serve.end" in text and "STATUS=500" in text for text in texts),
                        "the side panel shows the record that reports the failure")

    def test_search_sort_and_leave(self):
        _, whole = self.open_table("r")
        self.xdotool("key", "slash")
        time.sleep(0.3)
        self.xdotool("type", "r777")
        self.xdotool("key", "Return")
        support.wait_until(lambda: any(text.startswith("1 of ") for text in self.texts()), what="one request is found by its ID")
        self.xdotool("key", "Return")
        self.settled(whole, "it is shown")
        self.assertTrue(0 <= self.begin_of(777) - self.shown()[0] < 0.01)
        self.xdotool("key", "r", "7")  # all requests again, by start
        before = self.range()
        time.sleep(0.5)
        self.xdotool("key", "Return")
        self.settled(before, "the first request is shown")
        self.assertTrue(0 <= self.begin_of(0) - self.shown()[0] < 0.01)
        self.xdotool("key", "Escape")
        support.wait_until(lambda: not any("of 3" in text and "requests" in text for text in self.texts()), what="the table is closed")

    def marks(self, color):
        """Returns the places of the pixels of a color in the heat map. The legend below and the histogram at the right have the
        same colors."""
        places = self.picture().places(color)
        legend = max((y for _, y in places), default=0)
        return [(x, y) for x, y in places if y < legend - 12 and x < self.HISTOGRAM - 10]

    def test_failed_request_is_visible_and_reached_with_one_click(self):
        self.open(self.log)
        failed = support.wait_until(lambda: self.marks((0xc2, 0, 0x6b)), what="the mark of the failed request")
        self.assertGreater(len(failed), 4)
        before = self.range()
        x, y = failed[len(failed) // 2]
        self.xdotool("mousemove", str(x), str(y), "click", "1")
        self.settled(before, "the failed request is shown")
        self.assertTrue(0 <= self.begin_of(1999) - self.shown()[0] < 0.01)
        self.assertTrue(any("r1999" in text for text in self.texts()), "it is selected")

    def test_brushed_area_fills_the_table(self):
        self.open(self.log)
        slow = support.wait_until(lambda: self.marks((0xe6, 0x61, 0)), what="the marks of the slow requests")
        left, right = min(x for x, _ in slow) - 8, max(x for x, _ in slow) + 8
        top, bottom = min(y for _, y in slow) - 2, max(y for _, y in slow) + 6
        before = self.range()
        self.xdotool("mousemove", str(left), str(top), "mousedown", "1", "mousemove", str(left + 20), str(bottom),
                     "mousemove", str(right), str(bottom), "mouseup", "1")
        self.settled(before, "the time of the area is shown")
        support.wait_until(lambda: any(text.startswith("2 of 3") for text in self.texts()), what="the requests of the area")
        slowest = [self.begin_of(i) for i in self.SLOW]
        begin, length = self.shown()
        self.assertTrue(all(begin <= at <= begin + length for at in slowest), (begin, length, slowest))
        self.accessible("press", "push button", "Clear the selection (C)")
        self.wait_for_count(self.COUNT, "all requests")

    def wait_for_count(self, count, what):
        """Waits until the table lists this number of requests, and only those of an area if there are fewer than all."""
        def is_shown():
            return any(text.startswith(f"{count} of 3") and ("marked area" in text) == (count < self.COUNT) for text in self.texts())
        support.wait_until(is_shown, what=what)

    def test_numbers_in_the_legend_list_their_requests(self):
        """A click on "2 slow" or "1 failed", or a key, lists these requests."""
        self.open(self.log)
        support.wait_until(lambda: self.marks((0xe6, 0x61, 0)), what="the heat map")
        for color, key, count, words in [((0xe6, 0x61, 0), "shift+r", 2, "(slow)"),
                                         ((0xc2, 0, 0x6b), "shift+e", 1, "(failed or incomplete)")]:
            x, y = max(self.picture().places(color), key=lambda place: place[1])

            def is_listed():
                return any(text.startswith(f"{count} of 3") and words in text for text in self.texts())

            self.xdotool("mousemove", str(x + 20), str(y - 2), "click", "1")
            support.wait_until(is_listed, what=f"{words}, with the pointer")
            self.xdotool("key", "Escape")
            support.wait_until(lambda: not is_listed(), what="the table is closed")
            self.xdotool("key", key)
            support.wait_until(is_listed, what=f"{words}, with the keyboard")
            self.xdotool("key", "Escape")
            support.wait_until(lambda: not is_listed(), what="the table is closed again")  # the legend moves

    def test_area_marked_with_the_keyboard(self):
        self.open(self.log)
        support.wait_until(lambda: self.marks((0xe6, 0x61, 0)), what="the heat map")
        self.focus("^nlv")
        self.xdotool("key", "h", "Return")
        self.wait_for_count(2, "the slow requests")
        self.xdotool("key", "c")
        self.wait_for_count(3000, "all requests")
        self.xdotool("key", "Escape", "h", *["shift+Left"] * 20, "Return")
        self.wait_for_count(1, "the slow request in the first part of the log")
        self.xdotool("key", "Escape")
        support.wait_until(lambda: not any("marked area" in text for text in self.texts()), what="the table is closed")

    def test_outliers_in_the_histogram_are_marked_and_selected(self):
        self.open(self.log)
        support.wait_until(lambda: self.marks((0xe6, 0x61, 0)), what="the heat map")
        mark_y = sum(y for _, y in self.marks((0xe6, 0x61, 0))) // len(self.marks((0xe6, 0x61, 0)))
        rows = self.picture()
        bar = [x for x in range(self.HISTOGRAM, 1180) if (0xe6, 0x61, 0) in (rows[mark_y + dy][x] for dy in (-2, -1, 0, 1, 2))]
        self.assertTrue(5 < len(bar) < 60, "a short bar of the two slow requests")
        usual = max((sum(rows[y][x] == (0, 0x72, 0xb2) for x in range(self.HISTOGRAM, 1180)) for y in range(mark_y, mark_y + 120)), default=0)
        self.assertGreater(usual, 100, "the longest bar")
        self.xdotool("mousemove", "1150", str(mark_y - 6), "mousedown", "1", "mousemove", "1100", str(mark_y), "mousemove", "1080",
                     str(mark_y + 6), "mouseup", "1")
        self.wait_for_count(2, "the slow requests of all times")

    def type_expression(self, key, text):
        self.xdotool("key", key)
        time.sleep(0.5)
        self.xdotool("type", text)
        self.xdotool("key", "Return")

    def test_expressions_on_requests_filter_and_find(self):
        self.open(self.log)
        self.focus("^nlv")
        self.type_expression("ctrl+l", "request.duration > 100ms")
        support.wait_until(lambda: any(text.startswith("16 records   showing only request.duration > 100ms") for text in self.texts()),
                           what="the 2 slow requests with 8 records each")
        self.type_expression("ctrl+l", "")
        self.xdotool("key", "ctrl+l", "ctrl+a", "BackSpace", "Return")
        support.wait_until(lambda: any(f"{8 * self.COUNT:,} records" in text or f"{8 * self.COUNT} records" in text
                                       for text in self.texts()), what="all requests")
        accent = (0x1a, 0x5f, 0xb4)
        marked = lambda: sum(pixel == accent for row in self.picture()[100:600] for pixel in row[150:1180])
        before = marked()
        self.type_expression("slash", "request.duration > 100ms")
        support.wait_until(lambda: any(text.startswith("1 of 2") for text in self.texts()), what="the first slow request")
        begin, length = self.shown()
        self.assertTrue(begin <= self.begin_of(min(self.SLOW)) <= begin + length, (begin, length))
        self.xdotool("key", "ctrl+a")
        self.type_expression("BackSpace", "request.duration > 3ms")  # the selected request has the color of its host
        support.wait_until(lambda: marked() > before + 50, what="the found requests have their own colour")
        self.xdotool("key", "Escape")
        support.wait_until(lambda: marked() <= before, what="the colours return")

    def description(self):
        return next((widget["description"] for widget in self.accessible("tree") if widget["name"] == "Comparison"), "")

    def test_comparison_with_the_keyboard(self):
        self.open(self.log)
        self.focus("^nlv")
        self.xdotool("key", "c")
        self.focus("Compare requests")
        self.xdotool("type", "request.duration > 100ms || any(STATUS >= 500) || any(REQ.ID ~ 'r1*')")
        self.xdotool("key", "Return")
        support.wait_until(lambda: "Query: A" in self.description(), what="the table of the comparison")
        lines = self.description().splitlines()
        self.assertRegex(lines[0], r"^(No difference found: a request of A takes .* ms, and a request of B .* ms|B is)")
        self.assertTrue(all(" difference " in line for line in lines[1:]), lines)
        self.xdotool("key", "End")
        self.xdotool("type", ")")
        self.xdotool("key", "Return")
        support.wait_until(lambda: not self.description(), what="no result of an invalid expression")
        self.xdotool("key", "Escape")
        self.focus("^nlv")

    def test_one_request_beside_another(self):
        self.open_table("r")
        accent = (0x1a, 0x5f, 0xb4)
        text = lambda: sum(pixel == accent for row in self.picture()[590:890] for pixel in row[640:1200])
        before = text()
        self.xdotool("key", "k", "Down")
        support.wait_until(lambda: text() > before, what="the kept request")
        self.xdotool("key", "k")
        support.wait_until(lambda: text() == before, what="only the selected request")

    def test_slow_request_flashes_while_the_log_grows(self):
        self.open(self.log)
        support.wait_until(lambda: self.marks((0xe6, 0x61, 0)), what="the heat map")
        self.focus("^nlv")
        self.xdotool("key", "space")
        support.wait_until(lambda: self.title().endswith("real time"), what="nlv follows the log")
        time.sleep(1)
        pixels = lambda: self.pixels(*((1192, y) for y in (150, 300, 450)))
        quiet = pixels()
        self.assertFalse(any(red > blue for red, _, blue in quiet), quiet)

        def append(*requests):
            with open(self.log, "a", encoding="ascii") as log:
                for request, second, took_ms in requests:
                    for event, offset_ms in ("Serve.start", 0), ("Query.start", 1), ("Query.end", took_ms - 1), ("Serve.end", took_ms):
                        if not request.startswith("rest") or event.endswith("end"):
                            log.write(f"DATE=202601011200{second}.{offset_ms:03d} HOST=web PROG=shop LVL=Usage NL.EVNT={event} "
                                      f"REQ.ID={request.removeprefix('rest ')}\n")
                    log.flush()

        append(("n1", 10, 3), ("n2", 11, 300), ("n3", 12, 3))
        # The test reads the screen while nlv draws, so a picture may contain the flash in only a part of the margin.
        flashes = lambda: all(red > blue for red, _, blue in pixels())
        support.wait_until(flashes, what="the whole margin flashes")
        support.wait_until(lambda: pixels() == quiet, what="the flash ends")
        # The log has only the rest of a request, and then another request with the same ID. Together, they take 5 s.
        append(("rest n4", 13, 3), ("n4", 18, 3), ("n5", 40, 3))
        for _ in range(20):
            self.assertEqual(pixels(), quiet)
            time.sleep(0.1)


if __name__ == "__main__":
    support.main()
