#!/usr/bin/env python3
"""Compares today's public headers with those of every release whose interface has the same major number.

What a plugin or program built from released headers relies on must stand unchanged:
  struct that grows   its members in order, name and type; new ones may follow
  any other struct    exactly its members
  union               its members; new ones may follow (layout.c holds the size)
  typedef, function, constant   exactly as it was; new ones may come
A struct grows when it begins with struct_size or with a record header, or when arrays of it travel with a stride, and
no other struct holds it by value. An addition needs a greater SONDE_ABI_MINOR than the release had.

Exit status: 0 compatible, 1 not (every difference is printed), 2 could not look.
"""

import argparse
import re
import sys
from pathlib import Path

import headers

# Arrays of these are walked with a stride that travels beside them, so they may grow without struct_size.
GROW_BY_STRIDE = {
    'sonde_column_spec_t', 'sonde_evidence_t', 'sonde_export_t', 'sonde_field_t', 'sonde_option_t',
    'sonde_record_type_t',
}
# These are complete for ever, although they carry struct_size.
FROZEN = {'sonde_host_t'}
# They differ between releases by purpose.
VERSION_CONSTANTS = {
    'SONDE_VERSION_MAJOR', 'SONDE_VERSION_MINOR', 'SONDE_VERSION_PATCH', 'SONDE_ABI_MINOR',
}


def held_by_value(interface):
    """Names of the structs and unions that another one contains."""
    held = set()
    for name, (_, members) in interface.aggregates.items():
        for _, declaration in members:
            words = declaration.split()
            if '(' in words or '*' in words:
                continue
            held.update(word for word in words[:-1] if word in interface.aggregates and word != name)
    return held


def grows(interface, name):
    """Whether a newer release may append members to this struct."""
    kind, members = interface.aggregates[name]
    if kind != 'struct' or name in FROZEN or name in held_by_value(interface):
        return False
    first = members[0][1]
    return (first in ('uint32_t struct_size', 'sonde_record_t header') or name in GROW_BY_STRIDE)


def compare_aggregate(old, new, name, problems):
    """Returns True when today's has more members."""
    if name not in new.aggregates:
        problems.append(f'{name}: gone')
        return False
    old_kind, old_members = old.aggregates[name]
    new_kind, new_members = new.aggregates[name]
    if old_kind != new_kind:
        problems.append(f'{name}: was a {old_kind}, is a {new_kind}')
        return False
    for index, (member, declaration) in enumerate(old_members):
        if index >= len(new_members):
            problems.append(f'{name}.{member}: gone')
            return False
        if declaration != new_members[index][1]:
            problems.append(f'{name}: member {index} was `{declaration}`, is `{new_members[index][1]}`')
            return False
    grown = len(new_members) > len(old_members)
    if grown and old_kind == 'struct' and not grows(old, name):
        problems.append(f'{name}: may not grow, has the new member {new_members[len(old_members)][0]}')
    return grown


def compare(old, new):
    """Problems (text) and additions (names) of today's interface against a released one."""
    problems = []
    additions = []
    for name in old.aggregates:
        if compare_aggregate(old, new, name, problems):
            additions.append(name)
    for what, before, after in (('typedef', old.typedefs, new.typedefs),
                                ('function', old.functions, new.functions)):
        for name, declaration in before.items():
            if name not in after and name not in new.aggregates:
                problems.append(f'{what} {name}: gone')
            elif after.get(name, declaration) != declaration:
                problems.append(f'{what} {name}: was `{declaration}`, is `{after[name]}`')
    for name, value in old.constants.items():
        if name in VERSION_CONSTANTS or name.endswith('_H'):
            continue
        if name not in new.constants:
            problems.append(f'constant {name}: gone')
        elif is_number(value) and new.constants[name] != value:
            problems.append(f'constant {name}: was {value}, is {new.constants[name]}')
    for before, after in ((old.aggregates, new.aggregates), (old.typedefs, new.typedefs),
                          (old.functions, new.functions), (old.constants, new.constants)):
        additions += sorted(set(after) - set(before))
    return problems, additions


def is_number(text):
    """Whether a macro stands for a number or text, as opposed to machinery of the preprocessor."""
    return re.fullmatch(r'\(?\(?(sonde_status\))?-?(0[xX])?[0-9a-fA-F]+[uUlL]*\)?|"[^"]*"', text) is not None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--include', required=True, help="today's include folder")
    parser.add_argument('--released', required=True, help='folder with one folder a release')
    parser.add_argument('--cc', default='cc')
    arguments = parser.parse_args()

    new = headers.read(arguments.include, arguments.cc)
    major = int(new.constants['SONDE_ABI_MAJOR'])
    minor = int(new.constants['SONDE_ABI_MINOR'])
    failed = False
    releases = sorted(Path(arguments.released).glob('*/include'))
    for folder in releases:
        release = folder.parent.name
        old = headers.read(folder, arguments.cc)
        if int(old.constants['SONDE_ABI_MAJOR']) != major:
            print(f'{release}: interface {old.constants["SONDE_ABI_MAJOR"]}, today {major}: not compared')
            continue
        problems, additions = compare(old, new)
        if additions and minor <= int(old.constants['SONDE_ABI_MINOR']):
            problems.append(f'SONDE_ABI_MINOR is still {minor}, but there is something new: '
                            + ', '.join(additions))
        for problem in problems:
            print(f'{release}: {problem}')
        failed = failed or bool(problems)
        print(f'{release}: {len(old.aggregates)} structs, {len(old.constants)} constants, '
              f'{len(additions)} additions, {len(problems)} problems')
    if not releases:
        print('no release yet')
    return 1 if failed else 0


if __name__ == '__main__':
    try:
        sys.exit(main())
    except (headers.HeaderError, OSError) as error:
        print(error, file=sys.stderr)
        sys.exit(2)
