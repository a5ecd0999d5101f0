#!/usr/bin/env python3
"""Managed memory on a GPU: PyTorch with libsonde_managed.so, its faults and migrations as the port `cuda` records them.

  check.py [--sonde COMMAND] [--library FILE] [--work FOLDER] [--out FILE]

  --sonde    the command, default: sonde in PATH
  --library  libsonde_managed.so, default: beside the command, in ../lib
  --work     folder for captures, default: a fresh one, removed at the end
  --out      file for the table of checks as JSON, default: standard output alone

Needs PyTorch with CUDA. Exit code 0: every check holds. 1: one does not. 2: wrong use, or no GPU.
"""

import argparse
import collections
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
checks = []


def check(name, holds, seen, expected):
    checks.append({'check': name, 'holds': bool(holds), 'seen': seen, 'expected': expected})
    print(('ok      ' if holds else 'FAILED  ') + f'{name}: {seen} (expected {expected})', flush=True)


def run(command, seconds=60):
    command = list(map(str, command))
    print('+', ' '.join(command), flush=True)
    # A group of its own, so that what the command started ends with it.
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          start_new_session=True) as process:
        try:
            output, errors = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, errors = process.communicate()
            errors += f'\nended after {seconds} s'
    return subprocess.CompletedProcess(command, process.returncode, output, errors)


def facts_of(done):
    for line in done.stdout.splitlines():
        if line.startswith('{"values"'):
            return json.loads(line)
    print(done.stdout[-2000:], done.stderr[-4000:])
    return None


def check_allocator(facts):
    during, end = facts['during'], facts['at_end']
    check('values after the rounds', all(value == facts['rounds'] for value in facts['values']), facts['values'],
          facts['rounds'])
    managed = facts['tensors'] * facts['bytes']
    check('bytes live', during['live_bytes'] >= managed, during['live_bytes'], f'>= {managed}')
    check('small tensors share a block', facts['small_blocks'] == 1, facts['small_blocks'], 1)
    check('above the cap PyTorch runs out of memory', facts['refused'], facts['refused'], True)
    check('refusals counted', facts['after_refusal']['refused_blocks'] > during['refused_blocks'],
          facts['after_refusal']['refused_blocks'], '> 0')
    check('nothing live at the end', end['live_blocks'] == 0 and end['live_bytes'] == 0,
          [end['live_blocks'], end['live_bytes']], [0, 0])
    check('no unknown frees', end['unknown_frees'] == 0, end['unknown_frees'], 0)


def check_capture(facts, records, notes):
    print('   notes:', notes)
    print('   counts:', {name: len(found) for name, found in records.items()})
    managed = facts['tensors'] * facts['bytes']
    inside = collections.Counter()
    moved = collections.Counter()
    faults = 0
    ranges = [(address, address + facts['bytes']) for address in facts['addresses']]

    def tensor_of(address):
        return next((i for i, (begin, end) in enumerate(ranges) if begin <= address < end), None)

    for one in records['device.migration']:
        direction = (one['source'] == 0xffffffff, one['destination'] == 0xffffffff)
        if direction == (True, False) and tensor_of(one['address']) is not None:
            inside[tensor_of(one['address'])] += one['bytes']
        moved[direction] += one['bytes']
    for one in records['device.page_fault']:
        faults += one['count']
    check('bytes moved to the device', moved[(True, False)] >= 0.9 * managed, moved[(True, False)], f'about {managed}')
    check('each tensor moved', len(inside) == facts['tensors'] and min(inside.values()) > 0.9 * facts['bytes'],
          dict(inside), facts['bytes'])
    check('bytes moved back', moved[(False, True)] >= 0.9 * managed, moved[(False, True)], f'about {managed}')
    check('page faults', faults > 0, faults, '> 0')
    blocks = [one for one in records['memory.allocate'] if one['kind'] == 'managed']
    check('managed blocks in the capture', len(blocks) == facts['at_end']['total_blocks'], len(blocks),
          facts['at_end']['total_blocks'])
    check('announced to the host', facts['at_end']['announced'] == facts['at_end']['total_blocks'],
          facts['at_end']['announced'], facts['at_end']['total_blocks'])
    kernels = len(records['device.kernel'])
    check('kernels', kernels >= facts['tensors'] * facts['rounds'], kernels, f">= {facts['tensors'] * facts['rounds']}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--sonde', default='sonde')
    parser.add_argument('--library', type=pathlib.Path)
    parser.add_argument('--work', type=pathlib.Path)
    parser.add_argument('--out', type=pathlib.Path)
    options = parser.parse_args()
    command = shutil.which(options.sonde)
    if command is None:
        parser.error(f'no command {options.sonde}')
    library = options.library or pathlib.Path(command).resolve().parent.parent / 'lib' / 'libsonde_managed.so'
    if not library.exists():
        parser.error(f'no {library}')
    folder = None
    if options.work is None:
        folder = tempfile.TemporaryDirectory(prefix='sonde-managed-')
    work = options.work or pathlib.Path(folder.name)
    work.mkdir(parents=True, exist_ok=True)
    workload = [sys.executable, HERE / 'workload.py', library.resolve()]
    plain = facts_of(run(workload))
    if plain is None:
        return 2
    check_allocator(plain)
    capture = work / 'capture'
    shutil.rmtree(capture, ignore_errors=True)
    config = work / 'managed.yaml'
    config.write_text(json.dumps({'ports': {'cuda': {'managed': True}}}))
    facts = facts_of(run([command, 'record', '-o', capture, '-c', config, '--', *workload]))
    check('recorded program ends well', facts is not None, facts is not None, True)
    if facts:
        records = collections.defaultdict(list)
        dump = run([command, 'dump', '--format', 'json', capture])
        for line in dump.stdout.splitlines():
            record = json.loads(line)
            records[record['space'].removeprefix('sonde.') + '.' + record['type']].append(record['fields'])
        notes = [f'{note["severity"]}: {note["text"]}' for note in records['session.note']]
        check_capture(facts, records, notes)
    if options.out:
        options.out.write_text(json.dumps(checks, indent=1) + '\n')
    failed = [one for one in checks if not one['holds']]
    print(f'{len(checks)} checks, {len(failed)} failed')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
