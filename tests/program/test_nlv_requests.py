"""nlv's table of requests and heat map, used with the keyboard and the pointer."""
import time

import nlv_window
import support


class Requests(nlv_window.WindowCase):
    COUNT, SLOW, FAILED = 3000, {1234, 2345}, {1999}

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
        self.assertTrue(any("r1234" in text or "r2345" in text for text in self.texts()), "it is selected")

    def test_failed_request_in_two_keys(self):
        _, whole = self.open_table("e")
        self.xdotool("key", "Return")
        self.settled(whole, "the failed request is shown")
        begin, length = self.shown()
        self.assertTrue(0 <= self.begin_of(1999) - begin < 0.01, begin)
        self.assertLess(length, 0.05)
        self.assertTrue(any("r1999" in text for text in self.texts()), "it is selected")

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
        """Returns the places of the pixels of a colour in the heat map, which is above the legend with the same marks."""
        places = [(x, y) for y, row in enumerate(self.picture()) for x, pixel in enumerate(row) if pixel == color]
        legend = max((y for _, y in places), default=0)
        return [(x, y) for x, y in places if y < legend - 12]

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


if __name__ == "__main__":
    support.main()
