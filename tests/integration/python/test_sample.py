"""usage: test_sample.py SAMPLE README: the sample prints what it should, and the README shows the sample as it is."""

import ast
import subprocess
import sys

sample, readme = sys.argv[1:]
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
