"""Shows a window as a screen reader sees it, and operates it: accessible.py PROGRAM, through AT-SPI on the session bus.

Reads commands from standard input: each line is a JSON list of a command and its arguments. Answers each command with a line, a
JSON list of the exit status, the output and the errors.

tree: prints every visible widget as a line of JSON: role, name, focusable, actions, text. Prints only the first CELLS_MAX cells of a table.
texts: prints the text of every visible widget that has text, as a line of JSON.
press ROLE NAME: does the widget's first action. type NAME TEXT: enters text in a field.
choose ROLE NAME: chooses a row of a list, or a page. value NAME NUMBER: moves a slider. combo NAME INDEX: chooses an entry of a combo box.
"""
import json
import os
import signal
import sys
import tempfile
import time
import traceback

import gi

gi.require_version("Atspi", "2.0")
from gi.repository import Atspi, GLib  # noqa: E402

SECONDS_MAX = 60  # of a command
CELLS_MAX = 1000  # each cell costs several messages, and a table of 3,000 rows has 24,000 cells


def children(node):
    count = node.get_child_count()
    if node.get_role_name() in ("table", "tree table"):
        count = min(count, CELLS_MAX)
    for i in range(count):
        child = node.get_child_at_index(i)
        if child is not None:
            yield child


def walk(node, showing_only=True):
    states = node.get_state_set()
    if showing_only and node.get_role_name() != "application" and not states.contains(Atspi.StateType.SHOWING):
        return
    yield node
    for child in children(node):
        yield from walk(child, showing_only)


def application(program):
    for _ in range(100):
        for i in range(Atspi.get_desktop_count()):
            for child in children(Atspi.get_desktop(i)):
                if child.get_name() == program:
                    return child
        time.sleep(0.1)
    sys.exit(f"{program} is not there")


def find(program, role, name):
    for _ in range(50):
        for node in walk(application(program)):
            if (role is None or node.get_role_name() == role) and node.get_name() == name:
                return node
        time.sleep(0.1)
    sys.exit(f"no {role} {name!r}")


def text_of(node):
    text = node.get_text_iface()
    return Atspi.Text.get_text(text, 0, -1) if text is not None else None


def describe(node):
    states = node.get_state_set()
    action = node.get_action_iface()
    return {"role": node.get_role_name(), "name": node.get_name(), "description": node.get_description(),
            "focusable": states.contains(Atspi.StateType.FOCUSABLE),
            "sensitive": states.contains(Atspi.StateType.SENSITIVE),
            "actions": action.get_n_actions() if action is not None else 0,
            "text": text_of(node)}


def describe_all(program, what):
    """Returns the results of what() for all visible widgets. Begins again if a widget is removed meanwhile."""
    for left in reversed(range(50)):
        try:
            return [what(node) for node in walk(application(program))]
        except GLib.GError as error:
            if "does not exist" not in error.message or left == 0:
                raise
            time.sleep(0.1)


def run(program, command, *words):
    if command == "tree":
        for widget in describe_all(program, describe):
            print(json.dumps(widget))
    elif command == "texts":
        for text in filter(None, describe_all(program, text_of)):
            print(json.dumps(text))
    elif command == "press":
        find(program, words[0], words[1]).get_action_iface().do_action(0)
    elif command == "type":
        find(program, "text", words[0]).get_editable_text_iface().set_text_contents(words[1])
    elif command == "choose":
        node = find(program, words[0], words[1])
        if words[0] == "table cell":
            node.get_component_iface().grab_focus()
            return
        parent = node.get_parent()
        parent.get_selection_iface().select_child(node.get_index_in_parent())
    elif command == "value":
        find(program, "slider", words[0]).get_value_iface().set_current_value(float(words[1]))
    elif command == "combo":
        find(program, "combo box", words[0]).get_selection_iface().select_child(int(words[1]))
    else:
        sys.exit(__doc__)


def run_in_child(program, words, output, errors):
    """Runs a command in a process of its own: a process remembers widgets, and then does not notice all changes."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            signal.alarm(SECONDS_MAX)
            os.dup2(output.fileno(), 1)
            os.dup2(errors.fileno(), 2)
            run(program, *words)
            status = 0
        except SystemExit as e:
            print(e, file=sys.stderr)
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main():
    for line in sys.stdin:
        with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
            status = run_in_child(sys.argv[1], json.loads(line), output, errors)
            output.seek(0)
            errors.seek(0)
            print(json.dumps([status, output.read(), errors.read()]), flush=True)


if __name__ == "__main__":
    main()
