#!/usr/bin/env python3
"""`sonde merge` from outside, on captures of two runs that write_capture.cpp makes.

  test_merge.py --sonde bin/sonde --writer bin/tests/cli_write_capture [CLASS...]
"""

import argparse
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SONDE = WRITER = None

SECOND = 1_000_000_000
A_START = 1_700_000_000 * SECOND  # when the traced run starts, ns since 1970
B_START = A_START + 3600 * SECOND
ELSEWHERE = 1 << 63  # marks addresses that mean nothing in A

A_HEAP = 0x7f00_0000_0000
B_HEAP = 0x7e00_0020_0000  # B's allocations lie elsewhere, by a multiple of 2 MiB


def sonde(*words):
    return subprocess.run([SONDE, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)


class TracedRun:
    """Run A: kernels with times, the calls that launched them, allocations."""

    def __init__(self, process=100, start=A_START):
        self.process, self.start, self.now = process, start, start
        self.correlation = 1000
        self.host, self.device, self.memory = [], [], []

    def launch(self, name, grid=1, stream=13, context=1, device=0, graph_exec=0, node=0, correlation=None):
        """Returns the launch's correlation id. The call takes 1 us, the kernel begins 5 us after it."""
        self.now += 10_000
        if correlation is None:
            self.correlation += 1
            self.host.append({'type': 'sonde.host.call', 'time': self.now, 'end': self.now + 1000, 'thread': 1,
                              'correlation': self.correlation, 'function': 'cudaLaunchKernel', 'domain': 'cuda'})
        self.device.append({'type': 'sonde.device.kernel', 'time': self.now + 5000, 'end': self.now + 9000,
                            'correlation': correlation or self.correlation, 'stream': stream, 'context': context,
                            'device': device, 'name': name, 'grid_x': grid, 'grid_y': 1, 'grid_z': 1, 'block_x': 128,
                            'block_y': 1, 'block_z': 1, 'graph_exec': graph_exec, 'graph_node': node})
        return correlation or self.correlation

    def allocate(self, address, size, device=0, **more):
        self.now += 1000
        self.memory.append({'type': 'sonde.memory.allocate', 'time': self.now, 'address': address, 'bytes': size,
                            'device': device, 'context': 1, 'kind': 3, **more})

    def free(self, address):
        self.now += 1000
        self.memory.append({'type': 'sonde.memory.free', 'time': self.now, 'address': address, 'context': 1, 'kind': 3})

    def batches(self):
        start = {'type': 'sonde.session.start', 'time': self.start, 'unix_ns': self.start, 'process': self.process,
                 'host': 'host', 'boot': 'boot', 'program': '/bin/program', 'command': 'program'}
        pair = {'type': 'sonde.session.clock_pair', 'time': self.start, 'value': 5, 'uncertainty': 7, 'clock': 16}
        return [{'stream': 1, 'records': [start, pair]}] + self.slices((2, self.host), (3, self.device),
                                                                       (4, self.memory))

    @staticmethod
    def slices(*streams):
        """Batches as a session delivers them: some of each stream in turn."""
        size = 1000
        longest = max(len(records) for _, records in streams)
        return [{'stream': stream, 'records': records[at:at + size]} for at in range(0, longest, size)
                for stream, records in streams if records[at:at + size]]

    def write(self, folder, name, **more):
        folder.mkdir(exist_ok=True)
        write({'path': str(folder / name), 'process': self.process, 'start_ns': self.start, 'stop_ns': self.now + SECOND,
               'batches': self.batches(), **more})
        return folder


class AccessedRun(TracedRun):
    """Run B: launches without device times, what they touched, allocations as this port sees them."""

    def __init__(self, process=200, start=B_START):
        super().__init__(process, start)
        self.ordinal = 0
        self.access = []

    def launch(self, name, grid=1, stream=0x55aa_0000, context=7, device=0, graph_exec=0, node=0, **more):
        """Returns the launch's ordinal. Everything takes ten times as long as in A."""
        self.now += 100_000
        self.ordinal += 1
        self.access.append({'type': 'sonde.access.launch', 'time': self.now, 'readable': self.now + 50_000,
                            'launch': self.ordinal, 'correlation': 5000 + self.ordinal, 'stream': stream,
                            'context': context, 'device': device, 'name': name, 'grid_x': grid, 'grid_y': 1,
                            'grid_z': 1, 'block_x': 128, 'block_y': 1, 'block_z': 1, 'graph_exec': graph_exec,
                            'graph_node': node, 'flags': 1, **more})
        return self.ordinal

    def touch(self, address, size, launch=None, **more):
        self.access.append({'type': 'sonde.access.object', 'time': self.now, 'launch': launch or self.ordinal,
                            'address': address, 'bytes': size, 'ordinal': 9, 'reads': 64, 'object_kind': 1,
                            'name': f'touched at {address:#x}', **more})

    def add(self, record_type, **fields):
        self.access.append({'type': f'sonde.access.{record_type}', 'time': self.now, 'launch': self.ordinal, **fields})

    def batches(self):
        return super().batches() + self.slices((5, self.access))


def write(capture):
    result = subprocess.run([WRITER], input=json.dumps(capture).encode(), stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, timeout=60)
    if result.returncode != 0:
        raise RuntimeError(result.stderr.decode())


class Test(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix='sonde-merge-'))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def merge(self, a, b, *words, code=0):
        """What the command says of the join, as JSON."""
        self.a = a.write(self.folder / 'a', 'a.sonde') if isinstance(a, TracedRun) else a
        self.b = b.write(self.folder / 'b', 'b.sonde') if isinstance(b, TracedRun) else b
        self.output = self.folder / 'joined'
        result = sonde('merge', self.a, self.b, '-o', self.output, '--json', *words)
        self.assertEqual(result.returncode, code, f'\n{result.stdout.decode()}\n{result.stderr.decode()}')
        self.error = result.stderr.decode()
        return json.loads(result.stdout) if result.stdout else None

    def records(self, kind, capture=None):
        result = sonde('dump', capture or self.output, '--format', 'json')
        self.assertEqual(result.returncode, 0, result.stderr)
        records = [json.loads(line) for line in result.stdout.decode().splitlines()]
        space, name = kind.rsplit('.', 1)
        return [record for record in records if record['space'] == space and record['type'] == name]

    def fields(self, kind, *names, capture=None):
        rows = [tuple(record['fields'][name] for name in names) for record in self.records(kind, capture)]
        return [row[0] for row in rows] if len(names) == 1 else rows

    def notes(self):
        return [record['fields'] for record in self.records('sonde.session.note')
                if record['fields']['origin'] == 'merge']

    def joined(self, report):
        self.assertEqual(len(report['processes']), 1)
        return report['processes'][0]


class Joining(Test):
    def both(self, names, **more):
        a, b = TracedRun(), AccessedRun()
        for name in names:
            a.launch(name, **more)
            b.launch(name)
        return a, b

    def test_identical_runs_match_altogether(self):
        a, b = self.both(['add', 'multiply', 'add', 'add'])
        report = self.merge(a, b)
        process = self.joined(report)
        self.assertEqual(process['launches'], {'matched': 4, 'out_of_order': 0, 'only_a': 0, 'only_b': 0})
        self.assertEqual((report['mismatch_share'], process['places']), (0, []))
        self.assertEqual(self.fields('sonde.access.launch', 'launch', 'correlation', 'stream', 'context', 'name'),
                         [(1, 1001, 13, 1, 'add'), (2, 1002, 13, 1, 'multiply'), (3, 1003, 13, 1, 'add'),
                          (4, 1004, 13, 1, 'add')])
        # A's own records are as they were.
        for kind, names in (('sonde.device.kernel', ('name', 'correlation', 'end')),
                            ('sonde.host.call', ('function', 'correlation', 'end'))):
            self.assertEqual(self.fields(kind, *names), self.fields(kind, *names, capture=self.a))

    def test_one_extra_launch_in_the_middle_of_b_moves_no_other(self):
        names = [f'kernel{number % 7}' for number in range(200)]
        a, b = TracedRun(), AccessedRun()
        for number, name in enumerate(names):
            a.launch(name)
            if number == 100:
                b.launch('warm_up', grid=3)
            b.launch(name)
        process = self.joined(self.merge(a, b))
        self.assertEqual(process['launches'], {'matched': 200, 'out_of_order': 0, 'only_a': 0, 'only_b': 1})
        self.assertEqual(process['places'], ['launch only in B: number 101 of stream 0x55aa0000 (device 0, context 7): '
                                             'warm_up<<<3x1x1, 128x1x1>>>'])
        found = self.fields('sonde.access.launch', 'launch', 'correlation')
        self.assertEqual(found, [(number, 1000 + number) for number in range(1, 101)] + [(101, 0)] +
                         [(number + 1, 1000 + number) for number in range(101, 201)])
        warnings = [note['text'] for note in self.notes() if note['severity'] == 'warning']
        self.assertIn('launches of A and B: 200 matched, 0 only in A, 1 only in B', warnings)
        self.assertIn(process['places'][0], warnings)

    def test_the_grid_tells_launches_of_one_name_apart(self):
        a, b = TracedRun(), AccessedRun()
        for grid in (1, 2, 3):
            a.launch('add', grid=grid)
        for grid in (2, 3):
            b.launch('add', grid=grid)
        self.merge(a, b, '--force')
        self.assertEqual(self.fields('sonde.access.launch', 'grid_x', 'correlation'), [(2, 1002), (3, 1003)])

    def test_two_streams_that_interleave_differently_match_stream_by_stream(self):
        a, b = TracedRun(), AccessedRun()
        expected = {}
        for number in range(20):
            expected[('load', number + 1)] = a.launch('load', grid=number + 1, stream=13)
            expected[('store', number + 1)] = a.launch('store', grid=number + 1, stream=14)
        # In B the other stream is used first, and then all of one before the rest of the other.
        for number in range(20):
            b.launch('store', grid=number + 1, stream=0x9000)
        for number in range(20):
            b.launch('load', grid=number + 1, stream=0x8000)
        process = self.joined(self.merge(a, b))
        self.assertEqual(process['launches'], {'matched': 40, 'out_of_order': 0, 'only_a': 0, 'only_b': 0})
        found = self.fields('sonde.access.launch', 'name', 'grid_x', 'correlation', 'stream')
        self.assertEqual({(name, grid): correlation for name, grid, correlation, _ in found}, expected)
        self.assertEqual({name: stream for name, _, _, stream in found}, {'load': 13, 'store': 14})

    def test_streams_that_run_the_same_match_in_order_of_first_use(self):
        a, b = TracedRun(), AccessedRun()
        for stream_a, stream_b in ((13, 0x9000), (14, 0x8000), (15, 0x9500)):
            for _ in range(3):
                a.launch('same', stream=stream_a)
                b.launch('same', stream=stream_b)
        self.merge(a, b)
        self.assertEqual(self.fields('sonde.access.launch', 'stream'), 3 * [13] + 3 * [14] + 3 * [15])

    def test_nodes_of_a_graph_launch_match_in_any_order(self):
        a, b = TracedRun(), AccessedRun()
        for launch in range(3):
            first = a.launch('left', graph_exec=5, node=11, stream=13)
            a.launch('right', graph_exec=5, node=12, stream=14, correlation=first)
            for name, node in (('right', 0xB), ('left', 0xA)) if launch % 2 else (('left', 0xA), ('right', 0xB)):
                b.launch(name, graph_exec=77, node=node)
        process = self.joined(self.merge(a, b))
        self.assertEqual(process['launches']['matched'], 6)
        self.assertEqual(self.fields('sonde.access.launch', 'name', 'correlation', 'graph_exec', 'graph_node'),
                         [('left', 1001, 5, 11), ('right', 1001, 5, 12), ('right', 1002, 5, 12), ('left', 1002, 5, 11),
                          ('left', 1003, 5, 11), ('right', 1003, 5, 12)])

    def test_times_of_b_lie_on_the_time_line_of_a(self):
        a, b = self.both(['add', 'multiply', 'add'])
        calls = [record['time'] for record in a.host]
        report = self.merge(a, b)
        self.assertEqual(self.joined(report)['moments'], 3)
        launches = self.records('sonde.access.launch')
        self.assertEqual([record['time_ns'] for record in launches], calls)
        # Half way between two launches of B (100 us apart) is half way in A (10 us apart); after the last one time runs
        # as it did in B.
        self.assertEqual([record['fields']['readable_ns'] - call for record, call in zip(launches, calls)],
                         [5_000, 5_000, 50_000])

    def test_a_clock_that_is_not_ns_is_read_through_its_line(self):
        a, b = self.both(['add', 'multiply'])
        folder = self.folder / 'b'
        folder.mkdir()
        ticks = {'id': 0, 'base_raw': 10**12, 'base_ns': B_START, 'multiplier': 1, 'shift': 1}  # 2 ticks a ns
        batches = [{'stream': 5, 'clock': ticks,
                    'records': [{**record, **{name: 10**12 + 2 * (record[name] - B_START) for name in
                                              ('time', 'readable')}} for record in b.access]}]
        write({'path': str(folder / 'b.sonde'), 'start_ns': B_START, 'batches': batches})
        self.merge(a, folder)
        self.assertEqual([record['time_ns'] for record in self.records('sonde.access.launch')],
                         [record['time'] for record in a.host])

    def test_the_result_holds_a_long_run_in_order_of_time(self):
        a, b = TracedRun(), AccessedRun()
        for number in range(20_000):
            a.launch(f'kernel{number % 5}')
            b.launch(f'kernel{number % 5}')
            b.touch(0x1000, 16)
        self.merge(a, b)
        kernels = self.records('sonde.device.kernel')
        launches = self.records('sonde.access.launch')
        self.assertEqual(len(kernels), 20_000)
        self.assertEqual([record['fields']['correlation'] for record in launches],
                         [record['fields']['correlation'] for record in kernels])
        self.assertEqual(len(self.records('sonde.access.object')), 20_000)
        # A replay that merges by time must not wait for the end of the file: chunks of the two alternate.
        dump = sonde('dump', self.output, '--format', 'json').stdout.decode().splitlines()
        spaces = [json.loads(line)['space'] for line in dump]
        turns = sum(one != other for one, other in zip(spaces, spaces[1:])
                    if {one, other} == {'sonde.device', 'sonde.access'})
        self.assertGreater(turns, 2)

    def test_what_both_have_is_taken_from_a_and_counted(self):
        a, b = self.both(['add'])
        a.allocate(A_HEAP, 512)
        b.allocate(B_HEAP, 512)
        process = self.joined(self.merge(a, b))
        self.assertEqual(self.fields('sonde.memory.allocate', 'address'), [A_HEAP])
        self.assertEqual(process['records']['left_out'], {'sonde.session.start': 1, 'sonde.memory.allocate': 1})
        self.assertEqual(len(self.records('sonde.session.start')), 1)
        self.assertEqual(self.fields('sonde.session.start', 'process'), [100])

    def test_clock_pairs_of_both_are_kept_apart(self):
        a, b = self.both(['add'])
        self.merge(a, b)
        self.assertEqual(sorted(self.fields('sonde.session.clock_pair', 'clock', 'value')),
                         [(16, 5), (16 + (1 << 31), 5)])

    def test_losses_of_both_are_kept(self):
        a, b = self.both(['add'])  # A has the streams 1 to 3
        a = a.write(self.folder / 'a', 'a.sonde', losses=[{'stream': 3, 'cause': 5, 'records': 4}])
        b = b.write(self.folder / 'b', 'b.sonde', losses=[{'stream': 5, 'cause': 1, 'records': 2},
                                                          {'stream': 0, 'cause': 7, 'records': 1}])
        process = self.joined(self.merge(a, b))
        self.assertEqual(process['lost_records'], {'a': 4, 'b': 3})
        doctor = json.loads(sonde('doctor', self.output, '--format', 'json').stdout)
        self.assertEqual([(row['stream'], row['cause'], row['records']) for row in doctor['losses']['rows']],
                         [(0, 'disk', 1), (3, 'dropped by the runtime', 4), (3 + 5, 'ring full', 2)])

    def test_the_doctor_finds_nothing_wrong_with_a_good_join(self):
        a, b = self.both(['add', 'multiply'])
        self.merge(a, b)
        result = sonde('doctor', self.output)
        self.assertEqual(result.returncode, 0, result.stdout.decode())

    def test_an_analysis_replays_the_result(self):
        a, b = self.both(['add', 'multiply'])
        self.merge(a, b)
        report = sonde('replay', self.output, '-p', 'workload', '--format', 'json')
        self.assertEqual(report.returncode, 0, report.stderr)
        self.assertIn(b'multiply', report.stdout)

    def test_the_text_says_the_same(self):
        a, b = self.both(['add', 'multiply'])
        self.merge(a, b)
        result = sonde('merge', self.a, self.b, '-o', self.folder / 'again')
        self.assertEqual(result.returncode, 0)
        text = result.stdout.decode()
        self.assertIn('process 100 of A with process 200 of B: program', text)
        self.assertIn('launches     2 matched, 0 only in A, 0 only in B', text)
        self.assertIn('mismatches: 0 %, tolerated 1 %', text)


class Translating(Test):
    def test_addresses_move_with_their_allocation(self):
        a, b = TracedRun(), AccessedRun()
        for base, run in ((A_HEAP, a), (B_HEAP, b)):
            run.allocate(base, 4096)
            run.allocate(base + (0x10000 if run is a else 0x90000), 1024)
            run.launch('add')
        b.touch(B_HEAP, 4096)
        b.touch(B_HEAP + 0x90000 + 256, 64)
        process = self.joined(self.merge(a, b))
        self.assertEqual(self.fields('sonde.access.object', 'address', 'name'),
                         [(A_HEAP, f'touched at {B_HEAP:#x}'), (A_HEAP + 0x10000 + 256, f'touched at {B_HEAP + 0x90100:#x}')])
        self.assertEqual(process['allocations']['matched'], 2)
        self.assertEqual(process['addresses']['translated'], 2)
        self.assertEqual(process['addresses']['marked'], 0)

    def test_an_address_that_is_used_again_is_another_allocation(self):
        a, b = TracedRun(), AccessedRun()
        a.allocate(A_HEAP, 4096)
        a.launch('first')
        a.free(A_HEAP)
        a.allocate(A_HEAP + 0x100000, 4096)
        a.launch('second')
        b.allocate(B_HEAP, 4096)
        b.launch('first')
        b.free(B_HEAP)
        b.allocate(B_HEAP, 4096)
        b.launch('second')
        # Both results come at the end: what counts is when the launch was.
        b.touch(B_HEAP, 4096, launch=2)
        b.touch(B_HEAP, 4096, launch=1)
        self.merge(a, b)
        self.assertEqual(self.fields('sonde.access.object', 'launch', 'address'),
                         [(2, A_HEAP + 0x100000), (1, A_HEAP)])

    def test_a_missing_allocation_moves_no_other(self):
        a, b = TracedRun(), AccessedRun()
        for number in range(10):
            a.allocate(A_HEAP + number * 0x10000, 512 * (number + 1))
            if number != 4:
                b.allocate(B_HEAP + number * 0x20000, 512 * (number + 1))
        a.launch('add')
        b.launch('add')
        b.touch(B_HEAP + 9 * 0x20000, 5120)
        process = self.joined(self.merge(a, b, '--tolerance', '10'))
        self.assertEqual(process['allocations']['matched'], 9)
        self.assertEqual((process['allocations']['only_a'], process['allocations']['only_b']), (1, 0))
        self.assertEqual(process['places'],
                         [f'allocation only in A: number 5 of device 0, 2560 bytes at {A_HEAP + 0x40000:#x}'])
        self.assertEqual(self.fields('sonde.access.object', 'address'), [A_HEAP + 9 * 0x10000])

    def test_an_allocation_of_another_size_matches_and_is_counted(self):
        a, b = TracedRun(), AccessedRun()
        for run, base, middle in ((a, A_HEAP, 1000), (b, B_HEAP, 2000)):
            run.allocate(base, 512)
            run.allocate(base + 0x10000, middle)
            run.allocate(base + 0x20000, 512)
            run.launch('add')
        b.touch(B_HEAP + 0x10000 + 999, 1)
        b.touch(B_HEAP + 0x10000 + 1000, 1)
        process = self.joined(self.merge(a, b, '--force'))
        self.assertEqual(process['allocations'], {'matched': 3, 'size_differs': 1, 'only_a': 0, 'only_b': 0,
                                                  'not_recorded_by_b': 0, 'not_recorded_by_a': 0})
        self.assertEqual(self.fields('sonde.access.object', 'address'), [A_HEAP + 0x10000 + 999, B_HEAP + 0x10000 + 1000])
        self.assertEqual(process['addresses']['past_smaller'], 1)
        self.assertIn('allocation of another size: 1000 bytes', process['places'][0])

    def test_variables_of_modules_are_no_mismatch(self):
        # Modules are loaded when they are needed, and CUPTI tells of more of their variables than the Compute Sanitizer.
        a, b = TracedRun(), AccessedRun()
        static = 6
        for number in range(5):
            a.allocate(A_HEAP + 0x100000 + number * 0x1000, 2304, kind=static)
        b.allocate(B_HEAP + 0x100000, 2304, kind=static)
        b.allocate(B_HEAP + 0x200000, 512, kind=static)
        for run, base in ((a, A_HEAP), (b, B_HEAP)):
            run.allocate(base, 4096)
            run.launch('add')
        b.touch(B_HEAP, 4096)
        process = self.joined(self.merge(a, b))
        self.assertEqual(process['allocations'], {'matched': 2, 'size_differs': 0, 'only_a': 0, 'only_b': 0,
                                                  'not_recorded_by_b': 4, 'not_recorded_by_a': 1})
        self.assertEqual(process['places'], [])
        self.assertEqual(self.fields('sonde.access.object', 'address'), [A_HEAP])

    def test_addresses_in_no_allocation_are_kept_and_counted(self):
        a, b = TracedRun(), AccessedRun()
        for run, base in ((a, A_HEAP), (b, B_HEAP)):
            run.allocate(base, 4096)
            run.launch('add')
        b.touch(0x1234_5000, 8)
        b.touch(A_HEAP + 16, 8)  # in no allocation of B, yet in one of A
        process = self.joined(self.merge(a, b))
        self.assertEqual(self.fields('sonde.access.object', 'address'), [0x1234_5000, A_HEAP + 16 + ELSEWHERE])
        self.assertEqual((process['addresses']['in_no_allocation'], process['addresses']['marked']), (2, 1))

    def test_what_only_b_allocates_keeps_its_accesses_together(self):
        a, b = TracedRun(), AccessedRun()
        a.allocate(A_HEAP, 4096)
        a.launch('add')
        b.allocate(B_HEAP, 4096)
        b.allocate(A_HEAP + 1024, 777)  # where A has something else
        b.launch('add')
        b.touch(A_HEAP + 1024, 777)
        b.free(A_HEAP + 1024)
        process = self.joined(self.merge(a, b, '--force'))
        self.assertEqual(process['allocations']['only_b'], 1)
        self.assertEqual(self.fields('sonde.access.object', 'address'), [A_HEAP + 1024 + ELSEWHERE])
        self.assertEqual(sorted(self.fields('sonde.memory.allocate', 'address', 'bytes')),
                         [(A_HEAP, 4096), (A_HEAP + 1024 + ELSEWHERE, 777)])
        self.assertEqual(self.fields('sonde.memory.free', 'address'), [A_HEAP + 1024 + ELSEWHERE])

    def test_host_memory_that_one_port_does_not_record_is_no_mismatch(self):
        a, b = TracedRun(), AccessedRun()
        for run, base in ((a, A_HEAP), (b, B_HEAP)):
            run.allocate(base, 4096)
            run.launch('add')
        a.allocate(0x6000_0000, 64, kind=2)
        report = self.merge(a, b)
        self.assertEqual(self.joined(report)['allocations'], {'matched': 1, 'size_differs': 0, 'only_a': 0, 'only_b': 0,
                                                              'not_recorded_by_b': 1, 'not_recorded_by_a': 0})
        self.assertEqual(report['mismatch_share'], 0)

    def test_pages_move_by_whole_pages(self):
        a, b = TracedRun(), AccessedRun()
        a.allocate(A_HEAP, 1 << 20)
        a.allocate(A_HEAP + (1 << 22) + 4096 + 512, 1 << 20)
        b.allocate(B_HEAP, 1 << 20)
        b.allocate(B_HEAP + (1 << 22), 1 << 20)
        a.launch('add')
        b.launch('add')
        for base in (B_HEAP, B_HEAP + (1 << 22)):
            b.add('pages', address=base, bytes=1 << 20, page_bytes=4096, pages=[base // 4096, base // 4096 + 3],
                  counts=[5, 6])
        process = self.joined(self.merge(a, b))
        first, second = self.fields('sonde.access.pages', 'address', 'pages', 'counts')
        self.assertEqual(first, (A_HEAP, [A_HEAP // 4096, A_HEAP // 4096 + 3], [5, 6]))
        # 512 bytes into its page: most of a page of B lies in the page that holds its begin.
        begin = A_HEAP + (1 << 22) + 4096 + 512
        self.assertEqual(second, (begin, [begin // 4096, begin // 4096 + 3], [5, 6]))
        self.assertEqual(process['addresses']['page_histograms_shifted'], 1)

    def test_intervals_and_bad_accesses(self):
        a, b = TracedRun(), AccessedRun()
        for run, base in ((a, A_HEAP), (b, B_HEAP)):
            run.allocate(base, 4096)
            run.launch('add')
        b.add('intervals', address=B_HEAP, bytes=4096, edges=[0, 64, 128, 256], touched=192, kind=1, granule=1)
        b.add('invalid', address=0x99, nearest=B_HEAP, nearest_bytes=4096, pc=0x40, function='add', reason=1, count=3)
        self.merge(a, b)
        self.assertEqual(self.fields('sonde.access.intervals', 'address', 'edges'), [(A_HEAP, [0, 64, 128, 256])])
        self.assertEqual(self.fields('sonde.access.invalid', 'address', 'nearest', 'pc', 'function', 'count'),
                         [(0x99, A_HEAP, 0x40, 'add', 3)])

    def test_warp_accesses(self):
        head = struct.Struct('<HBBIQiIIHBB')  # sonde_warp_access_t
        shift = A_HEAP - B_HEAP

        def warp(form, base, stride=0, mask=0b111, tail=b'', access=1):
            size8 = (head.size + len(tail) + 7) // 8
            entry = head.pack(size8, form, 0, mask, base, stride, 3, 0x10, 1, 4, access) + tail
            return entry + bytes(8 * size8 - len(entry))

        def entries(base, other, moved):
            return [warp(0, base, stride=4),
                    warp(1, base, tail=struct.pack('<3i', 0, 400, 40)),
                    warp(2, 0, tail=struct.pack('<3Q', base, other, 0x50)),
                    warp(0, 0x80, access=1 | 1 << 4),  # shared memory has addresses of its own
                    # Its last lane lies in the other allocation.
                    warp(1, base, tail=struct.pack('<3i', 0, 4, 0x10000))]

        a, b = TracedRun(), AccessedRun()
        a.allocate(A_HEAP, 4096)
        a.allocate(A_HEAP + 0x50000, 4096)
        b.allocate(B_HEAP, 4096)
        b.allocate(B_HEAP + 0x10000, 4096)
        a.launch('add')
        b.launch('add')
        given = entries(B_HEAP, B_HEAP + 0x10000 + 8, 0)
        b.add('warps', count=len(given), data=b''.join(given).hex())
        process = self.joined(self.merge(a, b))
        expected = entries(B_HEAP + shift, A_HEAP + 0x50000 + 8, shift)
        self.assertEqual(self.fields('sonde.access.warps', 'data'), [b''.join(expected).hex()])
        self.assertEqual(process['addresses']['warp_accesses_split'], 1)

    def test_device_events(self):
        event = struct.Struct('<QQIIIHH')  # sonde_device_event_t
        a, b = TracedRun(), AccessedRun()
        for run, base in ((a, A_HEAP), (b, B_HEAP)):
            run.allocate(base, 4096)
            run.launch('add')

        def events(base):
            return (event.pack(base + 64, 128, 1, 0, 0, 0, 12) +  # a bulk load of 128 bytes
                    event.pack(B_HEAP, 32, 1, 0, 0, 0, 3)).hex()  # a barrier: its number is no address
        b.add('events', count=2, data=events(B_HEAP))
        self.merge(a, b)
        self.assertEqual(self.fields('sonde.access.events', 'data'), [events(A_HEAP)])

    def test_blocks_of_a_framework_inside_allocations(self):
        a, b = TracedRun(), AccessedRun()
        for run, base, inner in ((a, A_HEAP, 0), (b, B_HEAP, 2048)):
            run.allocate(base, 1 << 20)
            run.memory.append({'type': 'sonde.memory.sub_allocate', 'time': run.now + 1, 'address': base + inner,
                               'bytes': 1000, 'device': 0, 'kind': 3})
            run.launch('add')
        b.touch(B_HEAP + 2048, 1000, object_kind=2)  # the tensor
        b.touch(B_HEAP, 1 << 20, object_kind=3)      # what remains of the allocation
        self.merge(a, b)
        self.assertEqual(self.fields('sonde.access.object', 'address', 'bytes'), [(A_HEAP, 1000), (A_HEAP, 1 << 20)])


class Refusing(Test):
    def runs(self, extra):
        a, b = TracedRun(), AccessedRun()
        for number in range(100):
            a.launch(f'kernel{number % 5}')
            b.launch(f'kernel{number % 5}')
        for _ in range(extra):
            b.launch('extra')
        return a, b

    def test_more_mismatches_than_tolerated(self):
        report = self.merge(*self.runs(3), code=1)
        self.assertIsNone(report['output'])
        self.assertFalse(self.output.exists())
        self.assertEqual(list(self.folder.glob('joined*')), [])
        self.assertIn('nothing was written', self.error)
        self.assertIn('launch only in B: number 101', self.error)
        self.assertAlmostEqual(report['mismatch_share'], 3 / 103)

    def test_as_many_as_tolerated(self):
        report = self.merge(*self.runs(1))  # 1 of 101
        self.assertEqual(report['output'], str(self.output))

    def test_a_greater_tolerance(self):
        self.merge(*self.runs(3), '--tolerance', '3')
        self.assertTrue(self.output.is_dir())

    def test_force(self):
        self.merge(*self.runs(50), '--force')
        self.assertEqual(len(self.records('sonde.access.launch')), 150)

    def test_a_different_program(self):
        a, b = self.runs(0)
        a = a.write(self.folder / 'a', 'a.sonde', program='/usr/bin/train')
        b = b.write(self.folder / 'b', 'b.sonde', program='/usr/bin/serve')
        self.assertIsNone(self.merge(a, b, code=2))
        self.assertIn('different programs: train and serve', self.error)
        self.assertFalse(self.output.exists())
        self.merge(a, b, '--force')

    def test_the_runs_in_the_wrong_order(self):
        a, b = self.runs(0)
        self.merge(b, a, code=2)
        self.assertIn('access records itself', self.error)

    def test_a_first_run_without_kernels(self):
        a = TracedRun()
        a.allocate(A_HEAP, 8)
        self.merge(a, self.runs(0)[1], code=2)
        self.assertIn('has no kernels', self.error)

    def test_a_directory_in_use(self):
        self.folder.joinpath('joined').mkdir()
        (self.folder / 'joined/file').write_text('')
        self.merge(*self.runs(0), code=2)
        self.assertIn('exists already', self.error)

    def test_what_is_no_capture(self):
        a, _ = self.runs(0)
        self.merge(a, self.folder / 'missing', code=3)

    def test_a_damaged_capture_is_joined_and_says_so(self):
        a, b = self.runs(0)
        folder = b.write(self.folder / 'b', 'b.sonde')
        path = folder / 'b.sonde'
        path.write_bytes(path.read_bytes()[:-16])  # without its trailer the process did not end well
        self.merge(a, folder)
        self.assertTrue([note for note in self.notes() if note['severity'] == 'error'])
        self.assertEqual(sonde('doctor', self.output).returncode, 1)


class Processes(Test):
    def write_runs(self, order_a, order_b, commands=None):
        """One file a process: process p runs kernels of its own name."""
        for letter, order, kind, base in (('a', order_a, TracedRun, A_START), ('b', order_b, AccessedRun, B_START)):
            for place, name in enumerate(order):
                run = kind(process=(100 if letter == 'a' else 200) + place, start=base + place * 1000)
                for _ in range(4):
                    run.launch(name)
                more = {'command': f'program --rank {name}'} if commands else {}
                run.write(self.folder / letter, f'{letter}{place}.sonde', **more)
        return self.folder / 'a', self.folder / 'b'

    def test_processes_match_in_order_of_start(self):
        a, b = self.write_runs(['left', 'right'], ['left', 'right'])
        report = self.merge(a, b)
        self.assertEqual([(process['process_a'], process['process_b'], process['launches']['matched'], process['file'])
                          for process in report['processes']],
                         [(100, 200, 4, 'a0.sonde'), (101, 201, 4, 'a1.sonde')])
        self.assertEqual(sorted(path.name for path in self.output.iterdir()), ['a0.sonde', 'a1.sonde'])
        doctor = json.loads(sonde('doctor', self.output, '--format', 'json').stdout)
        self.assertEqual([(source['process'], source['program'], source['boot']) for source in doctor['sources']],
                         [(100, '/bin/program', 'boot'), (101, '/bin/program', 'boot')])

    def test_processes_of_one_command_line_match_first(self):
        a, b = self.write_runs(['left', 'right'], ['right', 'left'], commands=True)
        report = self.merge(a, b)
        self.assertEqual([(process['process_a'], process['process_b']) for process in report['processes']],
                         [(100, 201), (101, 200)])
        for record in self.records('sonde.access.launch'):
            self.assertNotEqual(record['fields']['correlation'], 0)

    def test_a_process_that_one_run_lacks_is_a_mismatch(self):
        a, b = self.write_runs(['left', 'right'], ['left'])
        report = self.merge(a, b, code=1)
        self.assertEqual(report['mismatch_share'], 0.5)
        report = self.merge(a, b, '--force')
        self.assertEqual([(process['process_a'], process['process_b'], process['launches']['only_a'])
                          for process in report['processes']], [(100, 200, 0), (101, None, 4)])
        self.assertEqual(len(self.records('sonde.device.kernel')), 8)


def main():
    global SONDE, WRITER
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--sonde', required=True)
    parser.add_argument('--writer', required=True)
    parser.add_argument('names', nargs='*')
    arguments = parser.parse_args()
    SONDE, WRITER = os.path.abspath(arguments.sonde), os.path.abspath(arguments.writer)
    unittest.main(argv=[sys.argv[0], *arguments.names], verbosity=1)


if __name__ == '__main__':
    main()
