#!/usr/bin/env python3
"""Walks the #include lines of the tree and fails on an arrow that runs back.

  include <- sdk/{core,layout} <- sdk/{reflect,store,loader,config,report,run}
  sdk/toolkit sees include/ and itself; cli, plugins, ports, bindings, samples see include/ and sdk/toolkit
  only sdk/reflect sees libffi, only sdk/config sees yaml-cpp, one source of sdk/loader sees Boost

`--self-test` runs the same walk over small trees that are wrong in one way each.
"""

import argparse
import re
import sys
import tempfile
from pathlib import Path

SUFFIXES = {'.c', '.h', '.cpp', '.hpp', '.cc', '.cu', '.inc'}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)

FOUNDATION = {'sdk/core', 'sdk/layout'}
UPPER = {'sdk/reflect', 'sdk/store', 'sdk/loader', 'sdk/config', 'sdk/report', 'sdk/run'}
TOOLKIT = 'sdk/toolkit'
OUTER = ('sdk/cli', 'plugins', 'ports', 'bindings', 'samples')
INTERNAL = FOUNDATION | UPPER | {TOOLKIT, 'sdk/cli'}

# What a folder of the tree may include besides itself and include/.
ALLOWED = {
    'include': set(),
    'sdk/core': set(),
    'sdk/layout': set(),
    **{folder: FOUNDATION for folder in UPPER},
    TOOLKIT: set(),
    **{folder: {TOOLKIT} for folder in OUTER},
}

# Header prefixes of a library, the folder that may see them, and how many files there may.
LIBRARIES = (
    (('ffi.h', 'ffitarget.h', 'ffi/'), 'sdk/reflect', None),
    (('yaml-cpp/',), 'sdk/config', None),
    (('boost/',), 'sdk/loader', 1),
)


def home(path):
    """Folder of the rules that a file belongs to: `sdk/core`, `plugins`, `include`, ... or None (tests)."""
    parts = path.parts
    folder = '/'.join(parts[:2]) if parts[0] == 'sdk' else parts[0]
    return folder if folder in ALLOWED else None


def target_folder(root, source, form, name):
    """Folder of the tree that an #include leads to, or None for a header from outside the tree."""
    if name.startswith('sonde/toolkit/'):
        return TOOLKIT  # the installed spelling
    if name.startswith('sonde/'):
        return 'include'
    candidates = [root / 'sdk' / name, root / name]
    if form == '"':
        candidates.insert(0, root / source.parent / name)
    for candidate in candidates:
        if candidate.is_file():
            inside = candidate.resolve().relative_to(root.resolve())
            return home(inside) or inside.parts[0]
    # A header that does not exist (yet, or generated) still shows where it would lie.
    folder = 'sdk/' + name.split('/')[0]
    return folder if '/' in name and folder in INTERNAL else None


def unit_folder(path):
    """Two plugins, ports, bindings or samples must not see each other: the folder that counts as `itself`."""
    folder = home(path)
    if folder in ('plugins', 'ports', 'bindings', 'samples') and len(path.parts) > 2:
        return '/'.join(path.parts[:2])
    return folder


def check(root):
    """Every wrong arrow of the tree as one line of text, and the number of include lines seen."""
    problems = []
    seen = 0
    users = {folder: set() for _, folder, _ in LIBRARIES}
    for path in sorted(root.rglob('*')):
        relative = path.relative_to(root)
        if path.suffix not in SUFFIXES or relative.parts[0] in ('build', 'out') or not path.is_file():
            continue
        folder = home(relative)
        text = path.read_text(encoding='utf-8', errors='replace')
        for match in INCLUDE.finditer(text):
            form, name = match.groups()
            seen += 1
            where = f'{relative}:{text.count(chr(10), 0, match.start(2)) + 1}: includes {name}'
            for prefixes, owner, _ in LIBRARIES:
                if name.startswith(prefixes):
                    if relative.parts[0] == 'tests':
                        continue
                    if folder == owner and path.suffix in ('.cpp', '.hpp', '.h', '.c'):
                        users[owner].add(str(relative))
                    else:
                        problems.append(f'{where}: only {owner} sees this library')
            if folder is None:
                continue
            target = target_folder(root, relative, form, name)
            if target is None or target == 'include' or target in ALLOWED[folder]:
                continue
            if target == folder:
                inside = resolve_inside(root, relative, form, name)
                if inside is None or unit_folder(inside) == unit_folder(relative):
                    continue
                problems.append(f'{where}: {unit_folder(relative)} may not see {unit_folder(inside)}')
                continue
            problems.append(f'{where}: {folder} may not see {target}')
    for _, owner, most in LIBRARIES:
        if most is not None and len(users[owner]) > most:
            problems.append(f'{owner}: {len(users[owner])} files see its library, {most} may: '
                            + ', '.join(sorted(users[owner])))
    return problems, seen


def resolve_inside(root, source, form, name):
    """Path inside the tree of a header that was found there."""
    candidates = [root / source.parent / name] if form == '"' else []
    for candidate in candidates + [root / 'sdk' / name, root / name]:
        if candidate.is_file():
            return candidate.resolve().relative_to(root.resolve())
    return None


# (file, text, part of the expected complaint); None: no complaint.
CASES = (
    ('sdk/store/writer.cpp', '#include "core/session.h"\n#include <sonde/store.h>\n', None),
    ('sdk/cli/main.cpp', '#include "toolkit/text.h"\n', None),
    ('plugins/workload/kernels.cpp', '#include "toolkit/interval.h"\n#include "kernels.h"\n', None),
    ('sdk/reflect/call.cpp', '#include <ffi.h>\n', None),
    ('sdk/config/parse.cpp', '#include <yaml-cpp/yaml.h>\n', None),
    ('tests/unit/core/ring.cpp', '#include "core/ring.h"\n', None),
    ('sdk/core/session.cpp', '#include "store/writer.h"\n', 'sdk/core may not see sdk/store'),
    ('sdk/core/session.cpp', '#include "layout/matrix.h"\n', 'sdk/core may not see sdk/layout'),
    ('sdk/store/writer.cpp', '  #  include "loader/load.h"\n', 'sdk/store may not see sdk/loader'),
    ('sdk/toolkit/text.cpp', '#include "core/session.h"\n', 'sdk/toolkit may not see sdk/core'),
    ('sdk/cli/main.cpp', '#include "report/json.h"\n', 'sdk/cli may not see sdk/report'),
    ('sdk/cli/main.cpp', '#include "../report/json.h"\n', 'sdk/cli may not see sdk/report'),
    ('plugins/lua/host.cpp', '#include "reflect/call.h"\n', 'plugins may not see sdk/reflect'),
    ('plugins/lua/host.cpp', '#include "../workload/kernels.h"\n', 'plugins/lua may not see plugins/workload'),
    ('plugins/lua/host.cpp', '#include <ffi.h>\n', 'only sdk/reflect'),
    ('ports/cuda/trace/port.cpp', '#include "../../../sdk/core/ring.h"\n', 'ports may not see sdk/core'),
    ('bindings/python/module.c', '#include "sdk/core/ring.h"\n', 'bindings may not see sdk/core'),
    ('include/sonde/host.h', '#include "core/session.h"\n', 'include may not see sdk/core'),
    ('sdk/core/session.cpp', '#include <yaml-cpp/yaml.h>\n', 'only sdk/config'),
    ('sdk/store/writer.cpp', '#include <boost/dll.hpp>\n', 'only sdk/loader'),
)
PRESENT = (
    'sdk/core/ring.h', 'sdk/report/json.h', 'plugins/workload/kernels.h', 'sdk/toolkit/interval.h',
)


def self_test():
    failed = 0
    for name, text, expected in CASES:
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            for present in PRESENT + (name,):
                (root / present).parent.mkdir(parents=True, exist_ok=True)
                (root / present).write_text('', encoding='utf-8')
            (root / name).write_text(text, encoding='utf-8')
            problems, _ = check(root)
        right = not problems if expected is None else len(problems) == 1 and expected in problems[0]
        if not right:
            print(f'{name} with {text!r}: expected {expected}, got {problems}')
            failed += 1
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for name in ('a.cpp', 'b.cpp'):
            (root / 'sdk/loader').mkdir(parents=True, exist_ok=True)
            (root / 'sdk/loader' / name).write_text('#include <boost/dll.hpp>\n', encoding='utf-8')
        if len(check(root)[0]) != 1:
            print('two files of sdk/loader that see Boost must be one complaint')
            failed += 1
    print(f'{len(CASES) + 1} cases, {failed} failed')
    return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--self-test', action='store_true')
    parser.add_argument('root', nargs='?')
    arguments = parser.parse_args()
    if arguments.self_test:
        return self_test()
    if arguments.root is None:
        parser.error('the root of the tree is missing')
    problems, seen = check(Path(arguments.root))
    for problem in problems:
        print(problem)
    print(f'{seen} include lines, {len(problems)} run back')
    return 1 if problems or seen == 0 else 0


if __name__ == '__main__':
    sys.exit(main())
