#!/usr/bin/env python3
"""PC sampling on a GPU: records hot_line.cu in each mode and checks what the captures say.

  check.py [--sonde COMMAND] [--work FOLDER] [--out FILE] [--only NAMES]

  --sonde   the command, default: sonde in PATH
  --work    folder for builds and captures, default: a fresh one, removed at the end
  --out     file for the table of checks as JSON, default: standard output alone
  --only    comma-separated, of counters,continuous,serialized,ranges,refused,beside,together
            (default: all)

Needs nvcc, and g++ with CUPTI's headers for `beside`. Exit code 0: every check holds. 1: one does not. 2: wrong use,
or no GPU.
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
MODES = ('continuous', 'serialized', 'ranges')
NAMES = ('counters',) + MODES + ('refused', 'beside', 'together')
CUDA = os.environ.get('CUDA_HOME', '/usr/local/cuda')

checks = []


def check(group, name, holds, seen, expected):
    checks.append({'group': group, 'check': name, 'holds': bool(holds), 'seen': seen, 'expected': expected})
    print(('ok      ' if holds else 'FAILED  ') + f'{group}: {name}: {seen} (expected {expected})', flush=True)


def run(command, seconds=12):
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


def build(work):
    nvcc = shutil.which('nvcc') or f'{CUDA}/bin/nvcc'
    for target, flags in (('hot_line', ()), ('hot_line.cubin', ('-cubin',))):
        done = run([nvcc, '-O2', '-lineinfo', '-arch=native', *flags, '-o', work / target, HERE / 'hot_line.cu'])
        if done.returncode != 0:
            sys.exit(f'check.py: nvcc failed:\n{done.stderr}')


def hot_line_number():
    for number, text in enumerate((HERE / 'hot_line.cu').read_text().splitlines(), 1):
        if '// HOT LINE' in text:
            return number
    raise AssertionError('hot_line.cu has no hot line')


def dump(sonde, capture):
    """Records by type, fields with their space's name left out."""
    records = collections.defaultdict(list)
    done = run([sonde, 'dump', '--format', 'json', capture])
    for line in done.stdout.splitlines():
        record = json.loads(line)
        fields = record['fields'] | {'time_ns': record['time_ns']}
        records[record['space'].removeprefix('sonde.') + '.' + record['type']].append(fields)
    return records


def record(sonde, work, name, options, command, ports=None):
    capture = work / f'capture-{name}'
    shutil.rmtree(capture, ignore_errors=True)
    config = work / f'{name}.yaml'
    body = {'ports': ports or {'cuda_sampling': options}}
    config.write_text(json.dumps(body))
    done = run([sonde, 'record', '-o', capture, '-c', config, '--', *command])
    if done.returncode != 0:
        print(done.stdout[-2000:], done.stderr[-2000:])
    return done, dump(sonde, capture) if capture.exists() else collections.defaultdict(list)


def program_facts(done):
    for line in done.stdout.splitlines():
        if line.startswith('{"launches"'):
            return json.loads(line)
    return None


def notes_of(records):
    return [f'{note["severity"]}: {note["text"]}' for note in records['session.note']]


def check_mode(sonde, work, mode, plain_ms):
    options = {'mode': mode, 'period': 16}
    if mode == 'ranges':
        options.update({'on': '20ms', 'off': '20ms'})
    done, records = record(sonde, work, mode, options, [work / 'hot_line', '400' if mode == 'continuous' else '40'])
    facts = program_facts(done)
    check(mode, 'program ends well', done.returncode == 0 and facts is not None, done.returncode, 0)
    print('   notes:', notes_of(records))
    print('   counts:', {name: len(found) for name, found in records.items()})
    pcs, lines = records['sample.pc'], records['sample.line']
    samples = sum(pc['samples'] for pc in pcs)
    latency = sum(pc['latency'] for pc in pcs)
    check(mode, 'samples', samples > 1000, samples, '> 1000')
    place = {(line['module'], line['function'], line['pc']): line for line in lines}
    by_line, unplaced = collections.Counter(), 0
    for pc in pcs:
        if not pc['function'].startswith('_Z3hot'):
            continue
        line = place.get((pc['module'], pc['function'], pc['pc']))
        if line is None:
            unplaced += pc['samples']
        else:
            by_line[line['line']] += pc['samples']
    hottest = by_line.most_common(1)[0][0] if by_line else None
    check(mode, 'hottest line', hottest == hot_line_number(), hottest, hot_line_number())
    share = by_line[hot_line_number()] / max(1, sum(by_line.values()))
    check(mode, 'share of the hot line', share > 0.5, round(share, 4), '> 0.5')
    check(mode, 'samples of hot without a line', unplaced == 0, unplaced, 0)
    frames = [line['frames'] for line in lines if line['line'] == hot_line_number()]
    stacks = bool(frames) and all(len(stack) == 2 for stack in frames)
    check(mode, 'inline stack of the hot line', stacks, frames[:1], 'chain in hot')
    stalls = collections.Counter()
    for pc in pcs:
        stalls[pc['stall']] += pc['samples']
    unnamed = [name for name in stalls if name.startswith('unknown_')]
    check(mode, 'stall reasons have names', stalls and not unnamed, dict(stalls.most_common(6)), 'no unknown_')
    check(mode, 'stall reasons listed', len(records['sample.stall_reason']) >= 20,
          len(records['sample.stall_reason']), '>= 20')
    over = sum(1 for pc in pcs if pc['latency'] > pc['samples'])
    check(mode, 'latency samples are among the samples', over == 0, f'{over} of {len(pcs)}; {latency} of {samples}', 0)
    windows = records['sample.window']
    total, dropped = sum(w['samples'] for w in windows), sum(w['dropped'] for w in windows)
    foreign = sum(w['foreign'] for w in windows)
    print(f'   windows: {len(windows)}, samples {total}, dropped {dropped}, foreign {foreign}, recorded {samples}')
    check(mode, 'what was recorded is what the vendor counted', samples == total - dropped - foreign, samples,
          total - dropped - foreign)
    check(mode, 'dropped samples', dropped == 0, dropped, 0)
    losses = records['session.loss']
    check(mode, 'nothing lost', not losses, losses, 'no loss')
    pieces = collections.defaultdict(list)
    for piece in records['object.code']:
        pieces[piece['hash']].append((piece['offset'], piece['bytes']))
    whole = all(len(set(found)) == len(found) for found in pieces.values())
    check(mode, 'code objects stored once', pieces and whole, {key: len(found) for key, found in pieces.items()},
          'no piece twice')
    sampled = {pc['module'] for pc in pcs}
    check(mode, 'sampled code is in the capture', sampled <= set(pieces), len(sampled - set(pieces)), 0)
    if mode == 'serialized' and facts:
        launches = {pc['correlation'] for pc in pcs}
        check(mode, 'launches with samples', 0 not in launches and len(launches) == facts['launches'],
              len(launches), facts['launches'])
    if facts:
        print(f'   median of hot: {facts["median_ms"]} ms, without a tool {plain_ms} ms')


def check_refused(sonde, work):
    _, records = record(sonde, work, 'refused', {}, [work / 'hot_line', '5'], {'cuda': {}, 'cuda_sampling': {}})
    refusals = [note for note in notes_of(records) if note.startswith('no_data') and 'cuda.device' in note]
    check('refused', 'beside activity one of the two says why', len(refusals) == 1, refusals, 'one refusal')
    kinds = bool(records['device.kernel']) + bool(records['sample.pc'])
    check('refused', 'the other collects', kinds == 1, kinds, 1)


def check_together(sonde, work):
    command = [work / 'hot_line', '100']
    medians = {}
    for name, ports in (('alone', {'cuda': {'objects': False}}),
                        ('both', {'cuda': {'objects': False}, 'cuda_sampling': {'beside_activity': True}})):
        done, records = record(sonde, work, f'together-{name}', {}, command, ports)
        kernels = sorted(one['end_ns'] - one['time_ns'] for one in records['device.kernel'] if 'hot' in one['name'])
        medians[name] = kernels[len(kernels) // 2] if kernels else 0
        print('   notes:', notes_of(records))
        check('together', f'{name}: every launch of hot recorded', len(kernels) == 101, len(kernels), 101)
    samples = sum(pc['samples'] for pc in records['sample.pc'])
    check('together', 'samples beside activity', samples > 1000, samples, '> 1000')
    ratio = medians['both'] / max(1, medians['alone'])
    check('together', 'durations unchanged', 0.99 < ratio < 1.01, round(ratio, 4), '0.99 to 1.01')


def check_counters(sonde, work):
    metrics = ['sm__cycles_elapsed.max', 'dram__bytes_read.sum', 'smsp__inst_executed.sum']
    wanted = {'metrics': metrics}
    done, records = record(sonde, work, 'counters', wanted, [work / 'hot_line', '3'])
    facts = program_facts(done)
    print('   notes:', notes_of(records))
    counters = records['sample.counter']
    check('counters', 'program ends well', done.returncode == 0 and facts is not None, done.returncode, 0)
    if not facts:
        return
    expected = facts['launches'] * 3
    check('counters', 'a value for each launch and metric', len(counters) == expected, len(counters), expected)
    by_metric = collections.defaultdict(list)
    for one in counters:
        by_metric[(one['function'], one['metric'])].append(one['value'])
    for key, values in sorted(by_metric.items()):
        print('  ', key, values, 'unit', {c['unit'] for c in counters if c['metric'] == key[1]})
    counted = [key[0] for key in by_metric if 'counted' in key[0]]
    name = counted[0] if counted else ''
    # 1 GiB is read once; the cards' second-level caches keep less than a tenth of it.
    for value in by_metric[(name, 'dram__bytes_read.sum')]:
        ratio = value / facts['counted_bytes']
        check('counters', 'bytes read by `counted`', 0.9 < ratio < 1.1, int(value), facts['counted_bytes'])
    # Each pass over the same data executes the same instructions.
    values = by_metric[(name, 'smsp__inst_executed.sum')]
    check('counters', 'instructions are the same each time', len(set(values)) == 1 and values[0] > 0, values, 'equal')
    launches = [one['launch'] for one in counters if one['metric'] == metrics[0]]
    check('counters', 'launches are counted from 1', launches == list(range(1, facts['launches'] + 1)), launches,
          f"1 to {facts['launches']}")
    _, records = record(sonde, work, 'unknown', {'metrics': ['no__such.metric']}, [work / 'hot_line', '1'])
    refusals = [note for note in notes_of(records) if note.startswith('no_data') and 'no__such.metric' in note]
    check('counters', 'an unknown metric is named', len(refusals) == 1, refusals, 'one note')


def check_beside(work):
    include = next((p for p in (f'{CUDA}/include', f'{CUDA}/extras/CUPTI/include')
                    if os.path.exists(f'{p}/cupti.h')), None)
    if include is None:
        print('beside: skipped, no headers of CUPTI')
        return
    libraries = [f'{CUDA}/lib64', f'{CUDA}/extras/CUPTI/lib64', f'{CUDA}/targets/x86_64-linux/lib']
    command = ['g++', '-std=c++17', '-O2', '-I', include, '-I', f'{CUDA}/include', HERE / 'beside.cpp', '-o',
               work / 'beside']
    for library in libraries:
        command += ['-L', library, f'-Wl,-rpath,{library}', '-L', f'{library}/stubs']
    done = run(command + ['-lcupti', '-lcuda'])
    if done.returncode != 0:
        check('beside', 'builds', False, done.stderr[-500:], 'no error')
        return
    done = run([work / 'beside', work / 'hot_line.cubin'])
    facts = json.loads(done.stdout) if done.returncode == 0 else {'error': done.stdout + done.stderr}
    print('   beside:', facts)
    # A finding rather than a demand: the answer decides whether the two may be combined.
    ratio = facts.get('ratio', 0)
    check('beside', 'measured', 'error' not in facts, facts, 'a ratio')
    print(f'   durations {"unchanged" if 0.99 <= ratio <= 1.01 else "CHANGED"}: ratio {ratio}')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--sonde', default='sonde')
    parser.add_argument('--work', type=pathlib.Path)
    parser.add_argument('--out', type=pathlib.Path)
    parser.add_argument('--only', default=','.join(NAMES))
    options = parser.parse_args()
    only = options.only.split(',')
    if unknown := [name for name in only if name not in NAMES]:
        parser.error(f'--only does not know {", ".join(unknown)}')
    folder = None
    if options.work is None:
        folder = tempfile.TemporaryDirectory(prefix='sonde-sampling-')
    work = options.work or pathlib.Path(folder.name)
    work.mkdir(parents=True, exist_ok=True)
    build(work)
    plain = run([work / 'hot_line', '40'])
    if plain.returncode != 0:
        print(plain.stderr, file=sys.stderr)
        return 2
    plain_ms = program_facts(plain)['median_ms']
    if 'counters' in only:
        check_counters(options.sonde, work)
    for mode in MODES:
        if mode in only:
            check_mode(options.sonde, work, mode, plain_ms)
    if 'refused' in only:
        check_refused(options.sonde, work)
    if 'beside' in only:
        check_beside(work)
    if 'together' in only:
        check_together(options.sonde, work)
    table = json.dumps(checks, indent=1)
    if options.out:
        options.out.write_text(table + '\n')
    failed = [one for one in checks if not one['holds']]
    print(f'{len(checks)} checks, {len(failed)} failed')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
