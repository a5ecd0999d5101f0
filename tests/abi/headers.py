"""Reads the public headers: structs, unions, typedefs and constants, after the C preprocessor.

The headers keep to a narrow form (`typedef struct name_t { members } name_t;`, no bit-fields, no anonymous structs),
so a tokenizer and a few rules read them. Whatever does not fit is an error: a struct that this reader skipped would be
a struct that no check looks at.
"""

import re
import subprocess
from pathlib import Path

TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|[A-Za-z_]\w*|0[xX][0-9a-fA-F]+\w*|\d[\w.]*|\.\.\.|->|<<|>>|[^\s]')


class HeaderError(Exception):
    """A header holds something that the checks cannot read."""


class Interface:
    """What the headers of one version declare."""

    def __init__(self):
        self.aggregates = {}  # name -> ('struct' | 'union', [(member, declaration)])
        self.typedefs = {}  # name -> declaration, for everything but structs and unions with a body
        self.functions = {}  # name -> declaration, for functions with external linkage
        self.constants = {}  # macro name -> replacement text, for SONDE_* without parameters


def header_files(include_folder):
    """Public C headers below include_folder/sonde, as include paths, sorted."""
    root = Path(include_folder)
    return sorted(str(path.relative_to(root)) for path in (root / 'sonde').rglob('*.h'))


def _preprocess(include_folder, compiler, options):
    source = ''.join(f'#include <{name}>\n' for name in header_files(include_folder))
    command = [compiler, '-x', 'c', '-std=c11', '-E', f'-I{include_folder}', *options, '-']
    result = subprocess.run(command, input=source, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise HeaderError(f'{" ".join(command)}:\n{result.stderr}')
    return result.stdout


def _own_lines(preprocessed, include_folder):
    """The text that comes from the public headers, without what they include from the system."""
    marker = re.compile(r'^# \d+ "([^"]*)"')
    prefix = str(Path(include_folder) / 'sonde') + '/'
    own = False
    lines = []
    for line in preprocessed.splitlines():
        match = marker.match(line)
        if match:
            own = match.group(1).startswith(prefix)
        elif own:
            lines.append(line)
    return '\n'.join(lines)


def _join(tokens):
    return ' '.join(tokens)


def _closing(tokens, start, opening, closing):
    """Index of the token that closes the one at `start`."""
    depth = 0
    for index in range(start, len(tokens)):
        if tokens[index] == opening:
            depth += 1
        elif tokens[index] == closing:
            depth -= 1
            if depth == 0:
                return index
    raise HeaderError(f'{opening} is never closed near: {_join(tokens[start:start + 12])}')


def _statements(tokens):
    """Splits at `;` outside braces and parentheses; a function body ends its statement."""
    index = 0
    current = []
    while index < len(tokens):
        token = tokens[index]
        if token == '{':
            end = _closing(tokens, index, '{', '}')
            is_body = bool(current) and current[-1] == ')'
            current += tokens[index:end + 1]
            index = end + 1
            if is_body:
                yield current
                current = []
        elif token == '(':
            end = _closing(tokens, index, '(', ')')
            current += tokens[index:end + 1]
            index = end + 1
        elif token == ';':
            if current:
                yield current
            current = []
            index += 1
        else:
            current.append(token)
            index += 1
    if current:
        raise HeaderError(f'text without an end: {_join(current[:12])}')


def declared_name(declaration):
    """Name that a member or typedef declares: in `( * name ) (` or the last word before `[` or the end."""
    for index in range(len(declaration) - 3):
        if declaration[index:index + 2] == ['(', '*'] and declaration[index + 3] == ')':
            return declaration[index + 2]
    words = declaration
    if '[' in words:
        words = words[:words.index('[')]
    name = words[-1]
    if not re.fullmatch(r'[A-Za-z_]\w*', name):
        raise HeaderError(f'no name in: {_join(declaration)}')
    return name


def _members(tokens, owner):
    members = []
    for statement in _statements(tokens):
        outside = statement if '(' not in statement else statement[:statement.index('(')]
        if ',' in outside or ':' in statement or '{' in statement:
            raise HeaderError(f'{owner}: one plain member a declaration, not: {_join(statement)}')
        members.append((declared_name(statement), _join(statement)))
    return members


def read(include_folder, compiler='cc'):
    """Everything that the headers below include_folder declare."""
    include_folder = str(Path(include_folder).resolve())
    interface = Interface()
    text = _own_lines(_preprocess(include_folder, compiler, []), include_folder)
    for statement in _statements(TOKEN.findall(text)):
        if statement[0] == '__extension__':
            statement = statement[1:]
        head = statement[0]
        if head == 'typedef' and statement[1] in ('struct', 'union') and '{' in statement:
            begin = statement.index('{')
            end = _closing(statement, begin, '{', '}')
            name = statement[-1]
            if statement[2] != name:
                raise HeaderError(f'tag and typedef differ: {statement[2]}, {name}')
            interface.aggregates[name] = (statement[1], _members(statement[begin + 1:end], name))
        elif head == 'typedef':
            interface.typedefs[declared_name(statement[1:])] = _join(statement[1:])
        elif head in ('static', '_Static_assert'):
            continue  # inline helpers are compiled into the caller; assertions declare nothing
        elif head == 'extern' or '(' in statement:
            plain = _without_attributes(statement)
            interface.functions[plain[plain.index('(') - 1]] = _join(plain)
        else:
            raise HeaderError(f'not understood: {_join(statement[:16])}')

    defines = _preprocess(include_folder, compiler, ['-dM'])
    for line in defines.splitlines():
        match = re.match(r'#define (SONDE_\w+)(?: (.*))?$', line)
        if match:
            interface.constants[match.group(1)] = (match.group(2) or '').strip()
    return interface


def _without_attributes(tokens):
    plain = []
    index = 0
    while index < len(tokens):
        if tokens[index] == '__attribute__':
            index = _closing(tokens, index + 1, '(', ')') + 1
        else:
            plain.append(tokens[index])
            index += 1
    return plain
