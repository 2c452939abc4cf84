"""Tests nlv's sensor pane. The user selects hosts and sensors of a directory. Agents run, are killed, and send wrong data."""
import http.server
import os
import re
import signal
import socket
import subprocess
import threading
import time

import nlv_window
import support


class Sensors(nlv_window.WindowCase):
    def setUp(self):
        super().setUp()
        self.nlagentd = support.program("nlagent/nlagentd")
        support.program("nlagent/nlagent")
        self.start_bus()

    def start_agent(self, port=None, *options):
        port = port or support.free_port()
        process = self.start(self.nlagentd, "--foreground", "--serve-directory", "--listen", f"http://127.0.0.1:{port}", "--host", "dpss1", "--log",
                             "/dev/null", "--register", f"http://127.0.0.1:{port}", *options, stderr=subprocess.DEVNULL)
        process.port, process.url = port, f"http://127.0.0.1:{port}"
        support.wait_until(lambda: support.can_connect(port), what="nlagentd")
        result = support.program("nlagent/nlagent")
        support.wait_until(lambda: self.run_program(result, "--agent", process.url, "find").returncode == 0, what="registered")
        return process

    def sensors(self, agent):
        """Returns the command lines of the sensors, which are children of nlagentd's process that starts sensors."""
        return list(support.children(*support.children(agent.pid)).values())

    def open_pane(self, directory, *arguments):
        process = self.start(self.nlv, "--directory", directory, *arguments, env=self.environment, cwd=self.scratch,
                             stderr=subprocess.DEVNULL)
        self.focus("^nlv")
        return process

    def cells(self):
        return [widget["name"] for widget in self.accessible("tree") if widget["role"] == "table cell"]

    def says(self, words):
        support.wait_until(lambda: any(words in text for text in self.texts()), what=words)

    def tick(self, sensor):
        self.accessible("choose", "table cell", sensor)
        self.xdotool("key", "space")

    def records(self):
        return max((int(n.replace(",", "")) for text in self.texts() for n in re.findall(r"^([\d,]+) records", text)), default=0)

    def drawn(self):
        """Returns the drawing as the editor saves it. The editor stays open."""
        saved = self.scratch / "drawn.nlv"
        self.focus("^nlv")
        self.xdotool("key", "F4")
        return self.save_drawing(saved)

    def test_what_is_ticked_runs_and_is_drawn(self):
        agent = self.start_agent()
        viewer = self.open_pane(agent.url)
        support.wait_until(lambda: {"dpss1", "load", "memory"} <= set(self.cells()), what="the sensors")
        unnamed = [widget for widget in self.accessible("tree") if not widget["name"] and widget["role"] in ("text", "tree table")]
        self.assertEqual(unnamed, [])
        self.assertEqual(self.sensors(agent), [], "nothing runs before")
        self.tick("load")
        support.wait_until(lambda: len(self.sensors(agent)) == 1, what="the sensor runs")
        support.wait_until(lambda: "running" in self.cells(), what="nlv shows this state")
        support.wait_until(lambda: self.records() > 0, what="records")
        support.wait_until(lambda: "real time" in self.title(), what="the title")
        self.tick("memory")
        support.wait_until(lambda: len(self.sensors(agent)) == 2, what="another")
        self.tick("load")
        support.wait_until(lambda: len(self.sensors(agent)) == 1, what="the first one's end")
        support.wait_until(lambda: self.records() > 8, what="records")  # some polls after the drawing changed
        drawn = self.drawn()
        self.assertIn("[loadline MEM.FREE]", drawn)
        self.assertNotIn("[loadline LOAD.1]", drawn, "what is no longer ticked")
        self.assertEqual(list(support.children(viewer.pid).values()), [], "nlv subscribes by itself")
        self.assertEqual(self.quit(viewer), 0)
        support.wait_until(lambda: self.sensors(agent) == [], what="all end with the window")

    def test_beside_a_log_that_is_open(self):
        agent = self.start_agent()
        self.open(self.log)
        self.focus("^nlv")
        self.xdotool("key", "F8")
        self.accessible("type", "Directory", f"127.0.0.1:{agent.port}")
        self.accessible("type", "Which hosts and sensors", "sensor=lo* & host=dpss1")
        self.accessible("press", "push button", "Search")
        support.wait_until(lambda: "load" in self.cells(), what="the sensors")
        self.assertNotIn("memory", self.cells())
        self.tick("load")
        support.wait_until(lambda: self.records() > 251 + 4, what="records")
        drawn = self.drawn()
        self.assertIn("[loadline LOAD.1]", drawn)
        self.assertIn("[loadline LOAD]", drawn, "what was found out of the log is drawn as before")

    def test_dead_directory_is_said(self):
        viewer = self.open_pane("http://127.0.0.1:1", self.log)
        self.says("onnection refused")
        self.accessible("type", "Which hosts and sensors", "sensor=((")
        self.assertIsNone(viewer.poll())

    def test_directory_that_never_answers_holds_up_nothing(self):
        silent = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(silent.close)
        viewer = self.open_pane(f"http://127.0.0.1:{silent.getsockname()[1]}", self.log)
        self.says("Searching the directory")
        before = self.settled(None, "the log is shown")
        self.xdotool("key", "Escape")
        self.xdotool("key", "w")
        self.settled(before, "the window lives")
        self.assertEqual(list(support.children(viewer.pid).values()), [], "nlv asks by itself")
        self.assertEqual(self.quit(viewer), 0)

    def test_agent_that_dies_and_comes_back(self):
        agent = self.start_agent()
        self.open_pane(agent.url)
        support.wait_until(lambda: "load" in self.cells(), what="the sensors")
        self.tick("load")
        support.wait_until(lambda: "running" in self.cells(), what="it runs")
        agent.send_signal(signal.SIGKILL)
        agent.wait()
        support.wait_until(lambda: any(cell.startswith("connection lost, connecting again") for cell in self.cells()), what="nlv shows this state")
        self.start_agent(agent.port)
        support.wait_until(lambda: "running" in self.cells(), what="it is there again")

    def test_killed_window_leaves_nothing_behind(self):
        agent = self.start_agent()
        viewer = self.open_pane(agent.url)
        support.wait_until(lambda: "load" in self.cells(), what="the sensors")
        self.tick("load")
        support.wait_until(lambda: "running" in self.cells(), what="it runs")
        viewer.send_signal(signal.SIGKILL)
        support.wait_until(lambda: self.sensors(agent) == [], what="the sensor's end")

    def test_names_of_a_hostile_directory_are_only_names(self):
        answer = ('<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body><FindResponse '
                  'xmlns="urn:netlogger:agent:1"><agent><host>&lt;b&gt;&amp;</host><url>http://127.0.0.1:1</url><sensor>'
                  f'<name>--output={self.scratch}/stolen</name><what/><events>&lt;i&gt;</events></sensor></agent>'
                  '</FindResponse></s:Body></s:Envelope>')

        class Directory(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                self.send_response(200)
                self.end_headers()
                self.wfile.write(answer.encode())

            def log_message(self, *_):
                pass

        server = http.server.HTTPServer(("127.0.0.1", 0), Directory)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.shutdown)
        self.open_pane(f"http://127.0.0.1:{server.server_port}")
        name = f"--output={self.scratch}/stolen"
        support.wait_until(lambda: "<b>&" in self.cells() and name in self.cells(), what="the names as they are")
        self.tick(name)
        support.wait_until(lambda: any(cell.startswith("connection lost, connecting again") for cell in self.cells()), what="it is only asked for")
        time.sleep(0.5)
        self.assertFalse(os.path.exists(f"{self.scratch}/stolen"))


if __name__ == "__main__":
    support.main()
