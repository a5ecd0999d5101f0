"""usage: test_sample.py SAMPLE README PACKAGE_README

The sample prints what it should, the README shows it as it is, and what the package's README shows runs.
"""

import ast
import os
import re
import subprocess
import sys
import tempfile

sample, readme, package_readme = sys.argv[1:]
with open(sample, encoding="utf-8") as text:
    program = text.read()
with open(readme, encoding="utf-8") as text:
    shown = text.read()
assert f"```python\n{program}```\n" in shown, f"{readme} does not show {sample} as it is"

done = subprocess.run([sys.executable, sample], stdout=subprocess.PIPE, text=True, check=True)
print(done.stdout)
lines = done.stdout.splitlines()
# Three steps; in each, the backward pass runs through the second layer first.
second = "AddmmBackward0 runs for aten::addmm [[1], [16, 32], [32, 1]] of module 2"
first = "AddmmBackward0 runs for aten::addmm [[32], [16, 64], [64, 32]] of module 0"
assert lines[:6] == [second, first] * 3, lines[:6]
losses, word = lines[6].rsplit(" ", 1)
assert word == "losses" and len(ast.literal_eval(losses)) == 3, lines[6]
words = lines[7].split()
# Each step allocates at least its input (4096 bytes) and the first layer's output (2048).
assert int(words[0]) >= 3 * 6144 and int(words[3]) >= 6, lines[7]

with open(package_readme, encoding="utf-8") as text:
    blocks = re.findall(r"```python\n(.*?)```\n", text.read(), re.DOTALL)
assert len(blocks) >= 2, f"{package_readme} shows nothing that runs"
with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    exec(compile("\n".join(blocks), package_readme, "exec"), {"__name__": "__main__"})
    os.chdir("/")
