#!/usr/bin/env python3
"""Compiles every public header alone, twice in one unit, in each language standard that Sonde promises.

C headers: C11, C17, C++11, C++20. `.hpp` headers: C++20. Always -Wall -Wextra -pedantic -Werror.
"""

import argparse
import concurrent.futures
import os
import subprocess
import sys
from pathlib import Path

STANDARDS = (('c', 'c11'), ('c', 'c17'), ('c++', 'c++11'), ('c++', 'c++20'))
FLAGS = ['-Wall', '-Wextra', '-pedantic', '-Werror', '-fsyntax-only']


def compile_alone(compilers, include_folder, header, language, standard):
    """Messages of the compiler, empty when it is content."""
    unit = f'#include <{header}>\n#include <{header}>\nint one_declaration;\n'
    command = [compilers[language], '-x', language, f'-std={standard}', *FLAGS, f'-I{include_folder}', '-']
    result = subprocess.run(command, input=unit, capture_output=True, text=True, check=False)
    if result.returncode == 0:
        return ''
    return f'{header} as {standard}: {" ".join(command)}\n{result.stderr}'


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--include', required=True)
    parser.add_argument('--cc', default='cc')
    parser.add_argument('--cxx', default='c++')
    arguments = parser.parse_args()

    root = Path(arguments.include)
    jobs = []
    for path in sorted((root / 'sonde').rglob('*')):
        header = str(path.relative_to(root))
        if path.suffix == '.h':
            jobs += [(header, *standard) for standard in STANDARDS]
        elif path.suffix == '.hpp':
            jobs.append((header, 'c++', 'c++20'))
    if not jobs:
        print(f'no headers below {root}/sonde')
        return 1

    compilers = {'c': arguments.cc, 'c++': arguments.cxx}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        messages = list(pool.map(lambda job: compile_alone(compilers, root, *job), jobs))
    failures = [message for message in messages if message]
    for message in failures:
        print(message)
    print(f'{len(jobs)} units, {len(failures)} failed')
    return 1 if failures else 0


if __name__ == '__main__':
    sys.exit(main())
