"""The examples of the C interface in doc/api-examples: each compiles without a warning, runs, and checks its own results."""
import support

EXAMPLES = support.SOURCE / "doc" / "api-examples"


class Examples(support.Case):
    def run_example(self, name):
        program = self.compile_client((EXAMPLES / name).read_text(), "-Wall", "-Wextra", "-Werror")
        result = self.run_program(program, cwd=self.scratch)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)


def add(name):
    setattr(Examples, "test_" + name.removesuffix(".c"), lambda self: self.run_example(name))


for path in sorted(EXAMPLES.glob("*.c")):
    add(path.name)

if __name__ == "__main__":
    support.main()
