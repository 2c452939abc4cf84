"""Tests the options that each program lists (--help=json). A program keeps the values from the command line, the file and the
environment, and rejects an invalid value with one line. Also tests the vocabulary and completion."""
import json
import os
import pty
import re
import socket
import select
import shutil
import subprocess

import support

PROGRAMS = {"netlogd": "netlogd", "netlogctl": "netlogd", "nlsort": "nlsort", "nlv": "nlv", "nlkernel": "nlkernel", "nlagent": "nlagent",
            "nlagentd": "nlagent", "nlsensor": "nlagent", "nlconv": "nltools", "nlwrite": "nltools", "nlstat": "nltools", "nldiag": "nltools",
            "nlrecover": "nltools", "nlschema": "nltools", "nlarchive": "nltools"}
COMMANDS = ["list"], ["record"], ["live"], ["report"], ["calls"], ["rules", "run"], ["bench"], ["control"], ["graph"], ["symbols"], ["trace"], ["join"]
UNITS = {"count": [("", 1)], "size": [("t", 1 << 40), ("g", 1 << 30), ("m", 1 << 20), ("k", 1 << 10), ("", 1)],
         "duration": [("d", 86400 * 10**9), ("h", 3600 * 10**9), ("ms", 10**6), ("us", 1000), ("ns", 1), ("m", 60 * 10**9), ("s", 10**9), ("", 10**9)]}
# The meaning of each option letter in all programs. nlsort's other letters are those of sort(1).
LETTERS = {"a": "agent", "c": "config", "d": "dest", "e": "event", "f": "follow", "h": "help", "i": "interval", "j": "json", "l": "list",
           "n": "count", "o": "output", "p": "prog", "q": "quiet", "r": "recorder", "V": "version"}
NLSORT_LETTERS = {**LETTERS, "S": "buffer-size", "T": "temporary-directory", "c": "check", "k": "key", "m": "merge", "r": "reverse", "u": "unique"}
# The letters that options with these names must have.
REQUIRED_LETTERS = {name: letter for letter, name in LETTERS.items() if letter in "cdfhjnoqV"}
# (types, value names) of options with these names, on command lines, in files and in URLs.
VOCABULARY = {"from-format": ({"text"}, {"FORMAT"}), "format": ({"text", "choice"}, None), "since": ({"time"}, {"TIME"}), "until": ({"time"}, {"TIME"}),
              "dest": ({"text"}, {"URL"}), "output": ({"text"}, {"FILE", "FILE|DIRECTORY/|URL"}), "id": ({"text"}, {"FIELD,..."}), "by": ({"text"}, {"FIELD"}),
              "where": ({"text"}, {"EXPRESSION"}), "follow": ({"flag"}, {None}), "count": ({"count"}, {"COUNT"}), "config": ({"text"}, {"FILE"}),
              "help": ({"choice"}, {"json|words|urls"}), "version": ({"flag"}, {None}), "json": ({"flag"}, {None}), "quiet": ({"flag", "choice"}, {None, "yes|no"}),
              "interval": ({"duration"}, {"DURATION"}), "duration": ({"duration"}, {"DURATION"}), "buffer-size": ({"size"}, {"SIZE"})}
GONE = {"from", "to", "most", "seconds", "minutes", "filter", "usage", "calls", "least-interval"}
# Words and beginnings that help texts must not have, because simpler wording exists.
MANNERED = (r"\b(so often|so many|so much|anew|mend|whoever|who may|there is none)\b|\b(Write|Keep|Draw|End) (it )?there\b|"
            r"^(Where|Which|What|Who|How|Whether|When|That|Of|Only|The) (?!to sync)")


def number(text, kind):
    """Returns a count, size or duration as a number (durations in nanoseconds)."""
    for unit, factor in UNITS[kind]:
        found = re.fullmatch(rf"(\d+){unit}", text)
        if found:
            return int(found[1]) * factor
    raise ValueError(text)


class Options(support.Case):
    described = []  # of all tests

    def programs(self):
        """Returns (command, its description of itself) of each program that is built."""
        if not self.described:
            paths = [support.BUILD / folder / name for name, folder in PROGRAMS.items()]
            built = [path for path in paths if path.exists()]
            self.assertGreater(len(built), 3)
            self.described += [([path, *command], self.describe([path, *command]))
                               for path in built for command in (COMMANDS if path.name == "nlkernel" else [[]])]
        return self.described

    def run_command(self, command, *arguments, **environment):
        plain = {name: value for name, value in os.environ.items() if not name.startswith(("NETLOG", "NLAGENT", "TMPDIR"))}
        return subprocess.run([*command, *map(str, arguments)], capture_output=True, text=True, cwd=self.scratch, env={**plain, **environment},
                              stdin=subprocess.DEVNULL, timeout=60)

    def describe(self, command, *arguments, **environment):
        result = self.run_command(command, *arguments, "--help=json", **environment)
        self.assertEqual((result.returncode, result.stderr), (0, ""), [*command, *arguments])
        return json.loads(result.stdout)

    @staticmethod
    def value(about, name):
        return next(option.get("value") for option in about["options"] if option["name"] == name)

    @staticmethod
    def settable(about):
        """Returns the options whose values the table reads and keeps."""
        return [o for o in about["options"] if o.get("command_line") and not o.get("own_parser")]

    def good_values(self, option):
        """Returns values that must be accepted and read back."""
        kind = option["type"]
        if kind == "choice":
            return option["choices"].split("|")
        if kind == "level":
            return ["Debug", "Emergency"]
        if kind in UNITS:
            low, high = option["minimum"], option.get("maximum")
            more = {"count": "7777", "size": "4m", "duration": "2h"}[kind]
            within = number(low, kind) <= number(more, kind) and (high is None or number(more, kind) <= number(high, kind))
            return [low, *([high] if high else []), *([more] if within else []), *(option["choices"].split("|") if "choices" in option else [])]
        return ["a value"] if kind == "text" else []

    def bad_values(self, option):
        """Yields pairs of an invalid value and a part of the expected message."""
        kind = option["type"]
        if kind in UNITS:
            for value in "", "x", "-1", "7q", "1 2":
                yield value, "empty" if value == "" else f"is not {option['choices']} or a" if "choices" in option else "is not a"
            span = f"use {option['minimum']} to {option['maximum']}" if "maximum" in option else f"use at least {option['minimum']}"
            if number(option["minimum"], kind) > 0:
                yield ("0", "0 is out of range; " + span)
            if "maximum" in option:
                yield (option["maximum"].rstrip("dhmskgtnu") + "9" + {"count": "", "size": "t", "duration": "d"}[kind], "is out of range; " + span)
        elif kind in ("choice", "level"):
            yield "nonsense", "is not one of"
        elif kind == "time":
            yield "yesterday", "is not a time"

    def assert_same(self, got, value, option, command):
        if option["type"] in UNITS and value not in option.get("choices", "").split("|"):
            # A program may keep a duration in whole units.
            near = number(got, option["type"]), number(value, option["type"])
            self.assertTrue(near[1] <= near[0] < near[1] + 10**9 if option["type"] == "duration" else near[0] == near[1], (command, option["name"], got, value))
        else:
            self.assertEqual(got, value, (command, option["name"]))

    # ---- the command line ----

    def rounds(self, options):
        """Yields lists of (option, a good value of it), in which each option occurs at most once, until all values have occurred. A run of
        a program can then check many values."""
        values = [(option, self.good_values(option)) for option in options]
        for i in range(max((len(good) for _, good in values), default=0)):
            yield [(option, good[i]) for option, good in values if i < len(good)]

    def test_what_is_set_is_read_back(self):
        count = 0
        for command, about in self.programs():
            options = self.settable(about)
            flags = [option["name"] for option in options if option["type"] == "flag"]
            found = self.describe(command, *(f"--{name}" for name in flags))
            self.assertEqual({name: self.value(found, name) for name in flags}, dict.fromkeys(flags, "yes"), command)
            for given in self.rounds(options):
                count += len(given)
                by_name = self.describe(command, *(f"--{option['name']}={value}" for option, value in given))
                with_letter = [(option, value) for option, value in given if "letter" in option]
                by_letter = self.describe(command, *(f"-{option['letter']}{value}" for option, value in with_letter)) if with_letter else None
                for option, value in given:
                    self.assert_same(self.value(by_name, option["name"]), value, option, command)
                for option, value in with_letter:
                    self.assert_same(self.value(by_letter, option["name"]), value, option, command)
        self.assertGreater(count, 100)

    def test_defaults_are_true(self):
        for command, about in self.programs():
            for option in self.settable(about):
                if "default" in option:
                    self.assert_same(option["value"], option["default"], option, command)

    def test_bad_values_are_rejected_in_one_line(self):
        """In ./check, each value and message is tried with the first option of its type."""
        count, tried = 0, set()
        for command, about in self.programs():
            for option in self.settable(about):
                for value, words in self.bad_values(option):
                    case = option["type"], value, words
                    if case in support.representative((), tried):
                        continue
                    tried.add(case)
                    count += 1
                    result = self.run_command(command, f"--{option['name']}={value}", "--help")
                    self.assertEqual((result.returncode, result.stdout), (2, ""), (command, option["name"], value))
                    self.assertRegex(result.stderr, rf"\A{command[0].name}: --{option['name']}: [^\n]*{re.escape(words)}[^\n]*\n\Z")
        self.assertGreater(count, support.representative(100, 40))

    def test_wrong_use_is_one_line(self):
        """In ./check, each program is started with two of the wrong uses."""
        uses = ((["--nonsense"], "--nonsense: unknown option; see"), (["--hlep"], "--hlep: unknown option; did you mean --help? see"), (["-!"], "-!: unknown option; see"),
                (["--help=x"], "--help: "), (["--version=2"], "--version: this option does not accept a value"))
        for number, (command, about) in enumerate(self.programs()):
            name = command[0].name
            for arguments, words in support.representative(uses, (uses[number % 5], uses[(number + 2) % 5])):
                result = self.run_command(command, *arguments)
                self.assertEqual(result.returncode, 2, (command, arguments))
                self.assertRegex(result.stderr, rf"\A{name}: {re.escape(words)}[^\n]*\n\Z")
            for option in self.settable(about):
                if option["type"] not in ("flag",) and not option.get("optional_value"):
                    self.assertIn(f"--{option['name']}: missing value", self.run_command(command, f"--{option['name']}").stderr)
                    break

    def test_help_and_version(self):
        for command, about in self.programs():
            text = self.run_command(command, "--help")
            self.assertEqual((text.returncode, text.stderr, self.run_command(command, "-h").stdout), (0, "", text.stdout), command)
            self.assertIn("(NetLogger) " + about["version"], self.run_command(command, "-V").stdout)
            for option in about["options"]:
                self.assertEqual(f"--{option['name']}" in text.stdout, option.get("command_line", False), (command, option["name"]))
            self.assertLessEqual(max(map(len, text.stdout.splitlines())), 130, command)

    # ---- environment and files ----

    def test_environment(self):
        found = 0
        for command, about in self.programs():
            for option in self.settable(about):
                if "environment" in option:
                    found += 1
                    name = option["name"]
                    self.assertEqual(self.value(self.describe(command, **{option["environment"]: "from the environment"}), name), "from the environment")
                    self.assertEqual(self.value(self.describe(command, f"--{name}=said", **{option["environment"]: "from the environment"}), name), "said")
                    self.assertEqual(self.value(self.describe(command, **{option["environment"]: ""}), name), option.get("default"))
        self.assertGreater(found, 5)

    def test_files(self):
        """In ./check, an invalid value in a file is tried with one option of each type and range."""
        path, tried = self.scratch / "file.conf", set()
        for command, about in self.programs():
            name = command[0].name
            for given in self.rounds(option for option in self.settable(about) if option.get("file")):
                path.write_text("# a comment\n\n" + "".join(f"{option['name']}   {value} # another\n" for option, value in given))
                found = self.describe(command, "--config", path)
                for option, value in given:
                    self.assert_same(self.value(found, option["name"]), value, option, command)
            for option in self.settable(about):
                if not option.get("file"):
                    continue
                for value, words in self.bad_values(option):
                    case = option["type"], value, words
                    if case in support.representative((), tried):
                        continue
                    tried.add(case)
                    path.write_text(f"\n{option['name']} {value}\n")
                    result = self.run_command(command, "--config", path)
                    self.assertEqual(result.returncode, 2, (command, option["name"], value))
                    self.assertRegex(result.stderr, rf"\A{name}: {path}:2: {option['name']}: [^\n]*{re.escape(words)}[^\n]*\n\Z")
            if any(option.get("file") for option in about["options"]):
                path.write_text("nonsense 1\nfollow\n")
                result = self.run_command(command, "--config", path)
                self.assertEqual((result.returncode, result.stderr), (2, f"{name}: {path}:1: nonsense: unknown directive\n{name}: {path}:2: follow: unknown directive\n"))

    # ---- URLs ----

    def url_value(self, nlwrite, url, name, **environment):
        about = self.describe([nlwrite], f"--dest={url}", **environment)
        return next(option.get("value") for option in about["url_options"] if option["name"] == name)

    def check_url_row(self, option, read, reject):
        """read(VALUE) returns the value that a program keeps of a URL option; reject(VALUE) returns the message for an invalid value."""
        for value in self.good_values(option):
            self.assert_same(read(value), value, option, "url")
        for value, words in self.bad_values(option):
            message = reject(value)
            self.assertIn(f"option {option['name']}: ", message, (option["name"], value))
            self.assertIn(words, message, (option["name"], value))

    def test_options_of_log_urls(self):
        nlwrite, count = support.program("nltools/nlwrite"), 0
        for option in self.describe([nlwrite])["url_options"]:
            name = option["name"]
            if option["group"].startswith("Options for reading from a collector") or option.get("own_parser") and option["type"] == "text":
                continue
            base = {"file": "file:a.log", "x-netlog": "x-netlog://h", "x-netlogs": "x-netlogs://h"}[option.get("schemes", "file").split()[0]]
            if "default" in option:
                self.assert_same(self.url_value(nlwrite, base, name), option["default"], option, "default")
            self.check_url_row(option, lambda value: self.url_value(nlwrite, f"{base}?{name}={value.replace(' ', '%20')}", name),
                               lambda value: self.run_command([nlwrite], f"--dest={base}?{name}={value}", "--help=json").stderr)
            if "environment" in option:
                value = (self.good_values(option) or ["/a"])[0]
                self.assert_same(self.url_value(nlwrite, base, name, **{option["environment"]: value}), value, option, "environment")
                other = self.good_values(option)[-1]
                self.assert_same(self.url_value(nlwrite, f"{base}?{name}={other.replace(' ', '%20')}", name, **{option["environment"]: value}), other, option, "url")
            if "schemes" in option:
                result = self.run_command([nlwrite], f"--dest=memory:m?{name}=x", "--help=json")
                self.assertIn(f"option {name} is valid only in {option['schemes']} URLs", result.stderr)
            count += 1
        self.assertGreater(count, 15)
        self.assertIn('unknown option "rnig" (did you mean ring?)', self.run_command([nlwrite], "--dest=file:a.log?rnig=1m", "--help=json").stderr)

    def test_variables_of_the_library(self):
        nlwrite = support.program("nltools/nlwrite")
        good = {"level": "Error", "on": "yes", "quiet_logs": "1", "host": "h", "shm": str(self.scratch), "destination": "file:a.log"}
        variables = {row["name"]: row for row in self.describe([nlwrite])["variables"]}
        self.assertEqual(variables.keys(), good.keys())
        for name, row in variables.items():
            result = self.run_command([nlwrite], "--dest=-", "E", **{row["environment"]: good[name]})
            self.assertEqual((result.returncode, result.stderr), (0, ""), name)
        for name, words in ("NETLOGGER_LEVEL", "is not one of the levels"), ("NETLOGGER_CLOCK", "is not no or a duration"), ("NETLOGGER_ON", "is not one of no|yes"), ("NETLOGGER_QUIET", "is not one of no|yes"):
            result = self.run_command([nlwrite], "--dest=-", "E", **{name: "nonsense"})
            self.assertEqual(result.returncode, 1, name)
            self.assertRegex(result.stderr, rf'\Anlwrite: [^\n]*{name}: "nonsense" {words}[^\n]*\n\Z')

    # ---- a running collector ----

    def end(self, process):
        process.terminate()
        self.assertEqual(process.wait(30), 0)

    def test_settings_of_netlogd(self):
        """Sets every setting and every option of an output to its minimum, maximum and default. netlogctl settings prints the
        same values, even after SIGHUP."""
        netlogd, netlogctl = support.program("netlogd/netlogd"), support.program("netlogd/netlogctl")
        about, path, control = self.describe([netlogd]), self.scratch / "netlogd.conf", self.scratch / "control"
        path.write_text("")
        (self.scratch / "spool").mkdir(mode=0o700)
        fixed = {"listen": [f"unix:{self.scratch}/s"], "control": [f"unix:{control}"], "log": ["file:" + str(self.scratch / "log")],
                 "recover": ["0"], "confine": ["no"], "allow": ["10.0.0.0/8", "fd00::/16", "192.0.2.7"]}
        rows = {o["name"]: o for o in about["options"] if o.get("file") and o["name"] not in fixed and o["type"] != "text"}
        urls = {o["name"]: o for o in about["url_options"] if o["group"] in ("Options of every output", "Options of output files", "Options of outputs with a spool")
                and o["type"] != "text"}
        spooled = {o["name"] for o in about["url_options"] if o["group"] == "Options of outputs with a spool"}

        def config(choose):
            """Returns (text of the file, its settings, its options of outputs). choose(values of a row) selects each value."""
            values = {name: choose(self.good_values(o), o) for name, o in rows.items()}
            chosen = {name: choose(self.good_values(o), o) for name, o in urls.items()}
            text = "".join(f"{name} {value}\n" for name, several in fixed.items() for value in several)
            text += "".join(f"{name} {value}\n" for name, value in values.items() if value is not None)
            options = "&".join(f"{name}={value}" for name, value in chosen.items() if value is not None and name not in spooled)
            text += f"output file:{self.scratch}/a-{{N}}.x?{options}\n"
            text += "output x-netlog://127.0.0.1:1?spool=" + str(self.scratch / "spool") + "".join(f"&{n}={chosen[n]}" for n in spooled if chosen.get(n)) + "\n"
            return text, values, chosen

        def accepts():  # the socket's file exists before the socket listens
            with socket.socket(socket.AF_UNIX) as s:
                return s.connect_ex(str(control)) == 0

        def settings():
            result = self.run_command([netlogctl], "--control", control, "--json", "settings")
            self.assertEqual(result.returncode, 0, result.stderr)
            found = {}
            for record in json.loads(result.stdout):
                found.setdefault((record["OPTION"], record.get("OUTPUT", "").split(":")[0], record.get("URL.OPTION")), []).append(str(record["VALUE"]))
            return found

        def check(values, chosen):
            found = settings()
            for name, several in fixed.items():
                self.assertEqual([v.replace("0s", "0") if name == "recover" else v for v in found[(name, "", None)]], several, name)
            for name, value in values.items():
                value = rows[name].get("default") if value is None else value
                if value is not None:
                    self.assert_same(found[(name, "", None)][0], value, rows[name], "netlogctl settings")
            for name, value in chosen.items():
                value = urls[name].get("default") if value is None else value
                if value is not None:
                    self.assert_same(found[("output", "x-netlog" if name in spooled else "file", name)][0], value, urls[name], "netlogctl settings")

        text, values, chosen = config(lambda good, o: None)
        path.write_text(text)
        process = self.start(netlogd, "--foreground", "--config", path, stderr=subprocess.DEVNULL)
        support.wait_until(accepts, what="the control socket")
        check(values, chosen)
        # Settings that a reload may change are set in the running netlogd, others by a restart.
        for choose in (lambda good, o: good[0]), (lambda good, o: good[-1]), (lambda good, o: good[len(good) // 2]):
            text, values, chosen = config(lambda good, o: choose(good, o) if o.get("reload") or o.get("url") else None)
            path.write_text(text)
            result = self.run_command([netlogctl], "--control", control, "reload")
            self.assertEqual((result.returncode, result.stderr), (0, ""), text)
            check(values, chosen)
        self.end(process)
        for choose in (lambda good, o: good[0]), (lambda good, o: good[-1]):
            text, values, chosen = config(choose)
            path.write_text(text)
            control.unlink(missing_ok=True)
            process = self.start(netlogd, "--foreground", "--config", path, stderr=subprocess.DEVNULL)
            support.wait_until(accepts, what="the control socket")
            check(values, chosen)
            self.end(process)
        base = f"file:{self.scratch}/b-{{N}}.x"
        for name, option in urls.items():
            url = f"x-netlog://h?spool={self.scratch}&{name}=" if name in spooled else f"{base}?{name}="
            for value, words in self.bad_values(option):
                result = self.run_command([netlogd], "--output", url + value, "--help")
                self.assertEqual(result.returncode, 2, (name, value))
                self.assertIn(words, result.stderr)

    def test_values_of_lists(self):
        """Repeated values are read back in their order, from the command line and the file."""
        cases = {"netlogd/netlogd": {"listen": [f"unix:{self.scratch}/s", "x-netlog://127.0.0.1:0"], "output": ["-", f"file:{self.scratch}/a.nlb?zstd=3"],
                                     "allow": ["10.0.0.0/8", "::1"]},
                 "nlagent/nlagentd": {"listen": ["http://127.0.0.1", "http://[::1]:99?names=a,b"], "allow": ["10.1.0.0/16", "192.0.2.1"], "sensor": ["a=true", "b=echo x"]}}
        for name, options in cases.items():
            path = self.scratch / "lists.conf"
            path.write_text("".join(f"{option} {value}\n" for option, values in options.items() for value in values))
            for arguments in [f"--{option}={value}" for option, values in options.items() for value in values], ["--config", path]:
                about = self.describe([support.program(name)], *arguments)
                for option, values in options.items():
                    self.assertEqual(next(o["values"] for o in about["options"] if o["name"] == option), values, (name, option))

    # ---- one vocabulary ----

    def test_vocabulary(self):
        seen = set()
        for command, about in self.programs():
            letters = NLSORT_LETTERS if command[0].name == "nlsort" else LETTERS
            for option in about["options"] + about["url_options"] + about["variables"]:
                name, letter, what = option["name"], option.get("letter"), (*command, option["name"])
                if letter is not None:
                    self.assertEqual(letters.get(letter), name, what)
                if name in REQUIRED_LETTERS and option.get("command_line") and REQUIRED_LETTERS[name] != letter:
                    self.fail(f"{what} must have the letter -{REQUIRED_LETTERS[name]}")
                if name in VOCABULARY:
                    seen.add(name)
                    types, values = VOCABULARY[name]
                    self.assertIn(option["type"], types, what)
                    if values is not None:
                        self.assertIn(option.get("value_name"), values, what)
                self.assertNotIn(name, GONE, what)
                self.assertNotRegex(option["help"], r"[^.]\.$", what)
                # A readable minimum: no user sets less than a microsecond.
                self.assertNotRegex(option.get("minimum", ""), r"ns$", what)
                self.assertNotRegex(option["help"], MANNERED, what)
            names = {option["name"] for option in about["options"]}
            self.assertTrue({"help", "version"} <= names, command)
            # Programs that read logs. netlogd receives records.
            if "reject" in names and command[0].name != "netlogd":
                self.assertTrue({"since", "until"} <= names, command)
        self.assertGreater(len(seen), 15)

    # ---- completion ----

    def complete(self, *words):
        """Returns bash's completions of the last word."""
        script = support.SOURCE / "packaging" / "completion" / "netlogger.bash"
        path = ":".join(sorted({str(support.BUILD / folder) for folder in PROGRAMS.values()}))
        quoted = " ".join(f"'{word}'" for word in words)
        code = f"source '{script}'; compopt() {{ :; }}; COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _netlogger; printf '%s\\n' \"${{COMPREPLY[@]}}\""
        result = subprocess.run(["bash", "-c", code], capture_output=True, text=True, env={**os.environ, "PATH": f"{path}:{os.environ['PATH']}"}, timeout=60)
        self.assertEqual(result.stderr, "")
        return result.stdout.split()

    def test_completion_of_bash(self):
        self.assertEqual(self.complete("nlsort", "--fra"), ["--fraction="])
        self.assertEqual(self.complete("nlsort", "--fraction", "=", "m"), ["microseconds"])
        self.assertEqual(self.complete("nlsort", "--fraction", ""), ["decimal", "microseconds"])
        self.assertEqual(self.complete("nlrecover", "--d"), ["--dest="])
        if (support.BUILD / "nlkernel" / "nlkernel").exists():
            self.assertIn("record", self.complete("nlkernel", "re"))
            self.assertEqual(self.complete("nlkernel", "record", "--low"), ["--low-water="])

    def complete_in_zsh(self, *lines):
        """Returns interactive zsh's completion of each line after Tab."""
        shell, terminal = pty.openpty()
        path = ":".join(sorted({str(support.BUILD / folder) for folder in PROGRAMS.values()}))
        process = self.start("zsh", "-f", "-i", stdin=terminal, stdout=terminal, stderr=terminal, start_new_session=True,
                             env={**os.environ, "PATH": f"{path}:{os.environ['PATH']}", "TERM": "dumb", "HOME": str(self.scratch)})
        os.close(terminal)
        self.addCleanup(os.close, shell)

        def answer(text, end):
            """Returns zsh's output after the text, up to a match of end."""
            os.write(shell, text)
            printed = b""
            while not re.search(end, printed):
                self.assertTrue(select.select([shell], [], [], 30)[0], f"zsh printed only {printed}")
                printed += os.read(shell, 65536)
            return re.search(end, printed)

        completion = support.SOURCE / "packaging" / "completion"
        answer(f"PS1=; stty cols 200 rows 50; fpath=({completion} $fpath); autoload -Uz compinit; compinit -u -D; echo set-up-$((6*7))\n".encode(), b"set-up-42")
        # Control-A and Control-E put the completed line in quotes: echo '(...)'
        found = [answer(f"{line}\t\x01echo '(\x05)'\n".encode(), rb"\n\(([^\r\n]*)\)\r?\n")[1].decode() for line in lines]
        os.write(shell, b"exit\n")
        process.wait(timeout=30)
        return found

    def test_completion_of_zsh(self):
        if shutil.which("zsh") is None:
            self.skipTest("zsh is not installed")
        expected = {"nlsort --fra": "nlsort --fraction", "nlsort --fraction=m": "nlsort --fraction=microseconds", "nlrecover --d": "nlrecover --dest",
                    "nlconv --from-f": "nlconv --from-format"}
        if (support.BUILD / "nlkernel" / "nlkernel").exists():
            expected |= {"nlkernel rec": "nlkernel record", "nlkernel record --low": "nlkernel record --low-water"}
        self.assertEqual(self.complete_in_zsh(*expected), list(expected.values()))

    def test_completion_names_every_program(self):
        for name in "netlogger.bash", "_netlogger":
            text = (support.SOURCE / "packaging" / "completion" / name).read_text()
            line = next(line for line in text.splitlines() if line.startswith(("complete ", "#compdef ")))
            self.assertEqual(set(re.findall(r"\b(?:nl\w+|netlogd|netlogctl)\b", line)) - {"netlogger"}, set(PROGRAMS))


if __name__ == "__main__":
    support.main()
