"""The dependency rule of HACKING.md, checked on the include lines of every C file; and names that are too common.

The files of a top-level directory include its own headers, core/, the public headers, and, if the directory builds a program, common/.
They never include the files of another program. Directories at all levels have no dependency cycle. There are no exceptions."""
import collections
import pathlib
import re

import support

PROGRAMS = {"netlogd", "nlsort", "nlv", "nlkernel", "nlagent", "nltools"}
PUBLIC = "libnetlogger/include"
MAY_INCLUDE = {
    "core": {"core", PUBLIC},
    "libnetlogger": {"libnetlogger", "core", PUBLIC},
    "common": {"common", "core", PUBLIC},
    "bindings": {"bindings", PUBLIC},
    "examples": {"examples", PUBLIC},
    **{program: {program, "common", "core", PUBLIC} for program in PROGRAMS},
}
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+["<]([^">]+)[">]', re.M)


def owner(path):
    """Returns the part of the tree that a file or directory belongs to."""
    return PUBLIC if path.startswith(PUBLIC) else path.split("/")[0]


class Tree:
    def __init__(self, files):
        """files: the text of each file by its path."""
        self.files = files
        self.edges = collections.defaultdict(list)  # (directory, directory): the include lines
        for path, text in files.items():
            for name in INCLUDE.findall(text):
                found = self.resolve(path, name)
                if found is None:
                    continue
                ends = tuple(str(pathlib.PurePosixPath(p).parent) for p in (path, found))
                if ends[0] != ends[1]:
                    self.edges[ends].append(f"{path}: #include {name}")

    def resolve(self, path, name):
        """Returns the file of the tree that an include line names; None for a system header."""
        folder = str(pathlib.PurePosixPath(path).parent)
        program = path.split("/")[0]
        for root in (folder, program, PUBLIC, "core", "common", "libnetlogger", *sorted(PROGRAMS)):
            candidate = f"{root}/{name}"
            if candidate in self.files:
                return candidate
        return None

    def forbidden(self):
        return [line for (user, used), lines in self.edges.items() if owner(used) not in MAY_INCLUDE[user.split("/")[0]] for line in lines]

    def cycles(self):
        """Returns the include lines of cycles between directories (Tarjan's strongly connected components)."""
        graph = collections.defaultdict(set)
        for user, used in self.edges:
            graph[user].add(used)
        index, low, stack, components = {}, {}, [], []

        def visit(node):
            index[node] = low[node] = len(index)
            stack.append(node)
            for other in graph.get(node, ()):
                if other not in index:
                    visit(other)
                    low[node] = min(low[node], low[other])
                elif other in stack:
                    low[node] = min(low[node], index[other])
            if low[node] == index[node]:
                component = set()
                while node not in component:
                    component.add(stack.pop())
                components.append(component)

        for node in list(graph):
            if node not in index:
                visit(node)
        return [line for component in components if len(component) > 1
                for (user, used), lines in self.edges.items() if user in component and used in component for line in lines]


def sources(*more):
    """Returns the text of each C and C++ file in the parts of the tree that the rule is about, and in `more` directories."""
    suffixes = (".c", ".h", ".cpp", ".hpp", ".xs")
    paths = [path for part in (*MAY_INCLUDE, *more) for path in (support.SOURCE / part).rglob("*") if path.suffix in suffixes]
    names = {path.relative_to(support.SOURCE).as_posix(): path for path in paths}
    return {name: path.read_text() for name, path in names.items() if "/build/" not in name}


def shared_names(files, limit=6):
    """Returns names of static functions that more than limit files define: grep and debuggers cannot tell them apart."""
    users = collections.defaultdict(set)
    for path, text in files.items():
        text = re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.S)
        for name in re.findall(r"^static\b[^=;{}()\"]*?\b(\w+)\((?![^;{]*;)", text, re.M):
            users[name].add(path)
    return {name: sorted(paths) for name, paths in users.items() if len(paths) > limit and name != "__attribute__"}


class Dependencies(support.Case):
    def test_names_of_static_functions(self):
        files = sources("bench", "doc", "tests")
        self.assertGreater(len(shared_names(files, 1)), 100)
        self.assertEqual(shared_names(files), {})
        self.assertEqual(list(shared_names({f"{i}.c": "static int take(int a)\n{\n}\n" for i in range(7)})), ["take"])

    def test_the_tree(self):
        files = sources()
        self.assertGreater(len(files), 500)
        tree = Tree(files)
        self.assertGreater(len(tree.edges), 50)
        self.assertEqual(tree.forbidden(), [])
        self.assertEqual(tree.cycles(), [])

    def test_violations_are_found(self):
        cases = {
            "core/base/a.h": ("common/program/p.h", "program/p.h"),
            "libnetlogger/log/a.c": ("common/program/p.h", "program/p.h"),
            "common/program/a.c": ("libnetlogger/log/p.h", "log/p.h"),
            "netlogd/a.c": ("nlagent/agent/p.h", "agent/p.h"),
            "bindings/java/a.c": ("core/base/p.h", "base/p.h"),
        }
        for user, (used, name) in cases.items():
            with self.subTest(user=user):
                tree = Tree({user: f'#include "{name}"\n', used: ""})
                self.assertEqual(tree.forbidden(), [f"{user}: #include {name}"])
        around = Tree({"core/a/a.h": '#include "b/b.h"\n', "core/b/b.h": '# include "c/c.h"\n', "core/c/c.h": '#include "a/a.h"\n'})
        self.assertEqual((around.forbidden(), len(around.cycles())), ([], 3))


support.main()
