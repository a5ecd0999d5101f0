#!/usr/bin/env python3
"""Keeps the list of layout assertions complete, and writes the witness library's source.

  check    every struct and union of the headers is in layout.c with its size and every member with its offset; the
           numbers are those of the rule (members in order, each aligned to its own alignment), computed here without
           a compiler; no struct has a hole, so no byte that crosses the boundary is undefined
  new      prints assertions for what layout.c does not mention yet, with the numbers of this compiler, to be read,
           checked by hand and added; what stands in layout.c is never rewritten
  write    writes all lines of layout.c anew; only before the first release of an interface number
  witness  writes a source with one exported function for every struct: abidiff follows only what an exported symbol
           mentions, and a service table that is fetched as `const void *` is mentioned by none
"""

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import headers


SCALARS = {
    'int8_t': 1, 'uint8_t': 1, 'char': 1, 'int16_t': 2, 'uint16_t': 2, 'int32_t': 4, 'uint32_t': 4, 'float': 4,
    'int64_t': 8, 'uint64_t': 8, 'double': 8,
}
POINTER = 8


def asserted(layout_file):
    """(sizes, offsets) that the file asserts: name -> bytes, and (struct, member) -> bytes."""
    text = Path(layout_file).read_text(encoding='utf-8')
    sizes = {name: int(number) for name, number in re.findall(r'^SIZE\((\w+), (\d+)\)$', text, re.MULTILINE)}
    offsets = {(name, member): int(number) for name, member, number
               in re.findall(r'^OFFSET\((\w+), (\w+), (\d+)\)$', text, re.MULTILINE)}
    return sizes, offsets


def measure(interface, declaration):
    """(bytes, alignment) of a member or typedef, from its declaration."""
    words = declaration.split()
    if '*' in words:
        size = alignment = POINTER
    else:
        base = [word for word in words if word not in ('const', 'struct')][0]
        if base in SCALARS:
            size = alignment = SCALARS[base]
        elif base in interface.aggregates:
            size, alignment, _ = lay_out(interface, base)
        elif base in interface.typedefs:
            size, alignment = measure(interface, interface.typedefs[base])
        else:
            raise headers.HeaderError(f'no size is known for: {declaration}')
    for count in re.findall(r'\[ (\d+)[uU]? \]', declaration):
        size *= int(count)
    return size, alignment


def lay_out(interface, name):
    """(bytes, alignment, [(member, offset, hole before it)]); a hole at the end comes as member None."""
    kind, members = interface.aggregates[name]
    end = 0
    greatest = 1
    places = []
    for member, declaration in members:
        size, alignment = measure(interface, declaration)
        greatest = max(greatest, alignment)
        if kind == 'union':
            places.append((member, 0, 0))
            end = max(end, size)
        else:
            begin = -(-end // alignment) * alignment
            places.append((member, begin, begin - end))
            end = begin + size
    size = -(-end // greatest) * greatest
    if kind == 'struct':
        places.append((None, size, size - end))
    return size, greatest, places


def missing(interface, layout_file):
    """What the headers declare and the file does not assert."""
    sizes, offsets = asserted(layout_file)
    for name, (kind, members) in interface.aggregates.items():
        if name not in sizes:
            yield name, None
        if kind == 'union':
            continue
        for member, _ in members:
            if (name, member) not in offsets:
                yield name, member


def numbers(arguments, wanted):
    """The assertions for (struct, member or None) pairs, with the numbers of this compiler."""
    lines = [f'#include <{name}>' for name in headers.header_files(arguments.include)]
    lines += ['#include <stdio.h>', 'int main(void) {']
    for name, member in wanted:
        if member is None:
            lines.append(f'  printf("\\nSIZE({name}, %zu)\\n", sizeof({name}));')
        else:
            lines.append(f'  printf("OFFSET({name}, {member}, %zu)\\n", offsetof({name}, {member}));')
    lines += ['  return 0;', '}']
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / 'layout_numbers.c'
        source.write_text('\n'.join(lines) + '\n', encoding='utf-8')
        program = Path(folder) / 'layout_numbers'
        subprocess.run([arguments.cc, '-std=c11', f'-I{arguments.include}', source, '-o', program], check=True)
        return subprocess.run([program], capture_output=True, text=True, check=True).stdout


def print_new(arguments, interface):
    print(numbers(arguments, missing(interface, arguments.layout)), end='')
    return 0


def write(arguments, interface):
    major = f'#define SONDE_ABI_MAJOR {interface.constants["SONDE_ABI_MAJOR"]}\n'
    for version in Path(__file__).parent.glob('released/*/include/sonde/version.h'):
        if major in version.read_text(encoding='utf-8'):
            print(f'{version}: this interface is released; its lines stay as they are, see `new`', file=sys.stderr)
            return 1
    path = Path(arguments.layout)
    mark = '// clang-format off\n'
    head = path.read_text(encoding='utf-8').split(mark)[0] + mark
    wanted = []
    for name, (kind, members) in interface.aggregates.items():
        wanted.append((name, None))
        if kind == 'struct':
            wanted += [(name, member) for member, _ in members]
    path.write_text(head + numbers(arguments, wanted), encoding='utf-8')
    return check(arguments, interface)


def check(arguments, interface):
    problems = 0
    for name, member in missing(interface, arguments.layout):
        print(f'{arguments.layout} asserts nothing about {name}' + (f'.{member}' if member else ''))
        problems += 1
    sizes, offsets = asserted(arguments.layout)
    for name in sorted(set(sizes) - set(interface.aggregates)):
        print(f'{arguments.layout} asserts the size of {name}, which no header declares')
        problems += 1
    for name in interface.aggregates:
        size, _, places = lay_out(interface, name)
        if sizes.get(name, size) != size:
            print(f'{name}: {sizes[name]} bytes asserted, {size} by the rule')
            problems += 1
        for member, offset, hole in places:
            if offsets.get((name, member), offset) != offset:
                print(f'{name}.{member}: at {offsets[(name, member)]} asserted, at {offset} by the rule')
                problems += 1
            if hole:
                print(f'{name}: a hole of {hole} bytes ' + (f'before {member}' if member else 'at the end'))
                problems += 1
    print(f'{len(interface.aggregates)} structs and unions, {problems} problems')
    return 1 if problems else 0


def witness(arguments, interface):
    lines = ['// Generated by layout_tool.py witness: one function for every struct of the headers.']
    lines += [f'#include <{name}>' for name in headers.header_files(arguments.include)]
    for name in sorted(interface.aggregates):
        lines.append(f'SONDE_EXPORTED void witness_{name}(const {name} *value);')
        lines.append(f'void witness_{name}(const {name} *value) {{ (void)value; }}')
    Path(arguments.output).write_text('\n'.join(lines) + '\n', encoding='utf-8')
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('action', choices=('check', 'new', 'write', 'witness'))
    parser.add_argument('--include', required=True)
    parser.add_argument('--cc', default='cc')
    parser.add_argument('--layout', default=str(Path(__file__).with_name('layout.c')))
    parser.add_argument('--output', help='for witness')
    arguments = parser.parse_args()
    interface = headers.read(arguments.include, arguments.cc)
    actions = {'check': check, 'new': print_new, 'write': write, 'witness': witness}
    return actions[arguments.action](arguments, interface)


if __name__ == '__main__':
    try:
        sys.exit(main())
    except (headers.HeaderError, OSError) as error:
        print(error, file=sys.stderr)
        sys.exit(2)
