#!/usr/bin/env python3
"""The `sonde` command from outside: what it prints, where it writes, how it ends.

  test_cli.py --sonde bin/sonde --emit bin/tests/cli_emit --build BUILD [CLASS...]
"""

import argparse
import collections
import csv
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

SONDE = EMIT = BUILD = None

# What emit.cpp makes, besides the session's own records.
KERNELS = ['{"device": "cpu"}(12): run', 'operator"" _km', 'a\x01z', '3 \u00d7 4', 'C:\\kernel', 'kernel\ufffd',
           '_Z30000' + 30000 * 'k' + 'v', 'reversed', 'zero']
COUNTS = {'sonde.device.kernel': len(KERNELS), 'sonde.device.copy': 1, 'sonde.memory.allocate': 2,
          'sonde.memory.free': 2, 'sonde.framework.scope_push': 2, 'sonde.framework.scope_pop': 2,
          'sonde.host.call_begin': 1}
ADDRESS = 0xffff800012345678


def sonde(*words, environment=None, **more):
    return subprocess.run([SONDE, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120,
                          env={**os.environ, **(environment or {})}, **more)


class Test(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix='sonde-cli-'))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def ended(self, result, code):
        self.assertEqual(result.returncode, code, f'\n{result.stdout.decode(errors="replace")[-2000:]}'
                                                  f'\n{result.stderr.decode(errors="replace")[-2000:]}')
        return result

    def good(self, *words, **more):
        return self.ended(sonde(*words, **more), 0).stdout.decode()

    def recorded(self):
        """A capture that the emitter makes on its own."""
        capture = self.folder / 'capture'
        subprocess.run([EMIT, capture], check=True, timeout=60)
        return capture


class Usage(Test):
    def test_help_of_every_subcommand_has_an_example(self):
        text = self.good('--help')
        self.assertIn('Exit status', text)
        for name in ('run', 'record', 'replay', 'dump', 'doctor', 'list', 'describe', 'call', 'new', 'manifest',
                     'merge'):
            self.assertIn(name, text)
            self.assertIn('Example', self.good(name, '--help'), name)

    def test_version(self):
        self.assertRegex(self.good('version'), r'^sonde \d+\.\d+\.\d+, interface \d+\.\d+\n$')
        self.assertRegex(self.good('--version'), r'^sonde \d+\.\d+\.\d+\n$')

    def test_what_cannot_be_understood_ends_with_2(self):
        for words in ((), ('bogus',), ('replay',), ('list', 'bogus'), ('dump', 'x', '--format', 'xml'),
                      ('run', '-p', 'workload'), ('record',), ('replay', self.folder), ('new', 'plugin', 'Bad-Name')):
            result = self.ended(sonde(*words), 2)
            self.assertTrue(result.stderr, words)

    def test_what_does_not_exist_ends_with_3(self):
        missing = self.folder / 'missing'
        for words in (('dump', missing), ('doctor', missing), ('replay', missing, '-p', 'workload'),
                      ('describe', 'no_such_plugin'), ('replay', missing, '-p', 'no_such_plugin'),
                      ('replay', missing, '-s', self.folder / 'missing.lua')):
            result = self.ended(sonde(*words), 3)
            self.assertIn(b'sonde: ', result.stderr, words)

    def test_a_file_that_is_no_capture_ends_with_3(self):
        path = self.folder / 'x.sonde'
        path.write_bytes(b'this is no capture' * 100)
        self.ended(sonde('dump', path), 3)

    def test_a_full_disk_is_an_error(self):
        if not os.path.exists('/dev/full'):
            self.skipTest('no /dev/full')
        capture = self.recorded()
        with open('/dev/full', 'wb') as full:
            result = subprocess.run([SONDE, 'dump', capture], stdout=full, stderr=subprocess.PIPE, timeout=60)
        self.assertEqual(result.returncode, 3, result.stderr)
        self.assertIn(b'cannot write', result.stderr)


class Listing(Test):
    def test_plugins_ports_and_services(self):
        self.assertRegex(self.good('list'), r'(?m)^workload +\d')
        self.assertRegex(self.good('list', 'ports'), r'(?m)^host +\d')
        self.assertNotIn('workload', self.good('list', 'ports'))
        self.assertRegex(self.good('list', 'services'), r'(?m)^sonde\.capture/1 +\w')

    def test_functions_have_readable_signatures(self):
        self.assertRegex(self.good('list', 'functions'), r'(?m)^host\.scope_push +\(session, text, text\)')

    def test_describe_shows_options_with_defaults(self):
        text = self.good('describe', 'workload')
        self.assertIn('Options', text)
        self.assertRegex(text, r'default ')

    def test_manifest_is_that_of_the_build(self):
        written = self.folder / 'workload.yaml'
        self.good('manifest', Path(BUILD) / 'plugins/workload.so', '-o', written)
        self.assertEqual(written.read_text(), (Path(BUILD) / 'plugins/workload.yaml').read_text())


class Recording(Test):
    def test_record_tells_what_was_captured(self):
        capture = self.folder / 'capture'
        result = self.ended(sonde('record', '-o', capture, '--', EMIT), 0)
        self.assertEqual(result.stdout, b'')
        text = result.stderr.decode()
        self.assertRegex(text, r'1 file, .* records')
        self.assertRegex(text, r'losses: 0')
        self.assertEqual(len(list(capture.glob('*.sonde'))), 1)
        self.assertTrue((capture / 'run.yaml').is_file())

    def test_the_programs_status_is_passed_on(self):
        self.ended(sonde('record', '-o', self.folder / 'a', '--', EMIT, '--exit', 3), 3)
        self.ended(sonde('record', '-o', self.folder / 'b', '--', EMIT, '--kill', int(signal.SIGKILL)), 128 + 9)
        self.ended(sonde('record', '-o', self.folder / 'c', '--', '/no/such/program'), 127)
        self.ended(sonde('record', '-o', self.folder / 'd', '--', '/dev/null'), 126)

    def test_nothing_captured_says_why(self):
        result = self.ended(sonde('record', '-o', self.folder / 'a', '--', '/bin/true'), 5)
        self.assertIn(b'nothing was captured', result.stderr)

    def test_a_directory_in_use_is_refused(self):
        capture = self.recorded()
        result = self.ended(sonde('record', '-o', capture, '--', EMIT), 2)
        self.assertIn(b'not empty', result.stderr)

    def test_what_the_user_preloads_is_kept(self):
        result = self.ended(sonde('record', '-o', self.folder / 'a', '--', '/bin/sh', '-c',
                                  'echo "$LD_PRELOAD"; exec ' + EMIT,
                                  environment={'LD_PRELOAD': 'libm.so.6'}), 0)
        self.assertRegex(result.stdout.decode(), r'^libm\.so\.6:.*libsonde_inject\.so\n')

    def test_a_value_for_cuda_is_kept_with_a_warning(self):
        result = self.ended(sonde('record', '-o', self.folder / 'a', '--', '/bin/sh', '-c',
                                  'echo $CUDA_INJECTION64_PATH; exec ' + EMIT,
                                  environment={'CUDA_INJECTION64_PATH': '/other/tool.so'}), 0)
        self.assertEqual(result.stdout, b'/other/tool.so\n')
        self.assertIn(b'warning: CUDA_INJECTION64_PATH', result.stderr)

    def test_a_signal_to_the_command_reaches_the_program(self):
        command = subprocess.Popen([SONDE, 'record', '-o', self.folder / 'a', '--', EMIT, '--stay'],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(command.stdout.close)
        self.addCleanup(command.stderr.close)
        self.assertEqual(command.stdout.readline(), b'ready\n')
        command.send_signal(signal.SIGTERM)
        self.assertEqual(command.wait(timeout=60), 7, command.stderr.read())


class Dumping(Test):
    def records(self, capture, *words):
        return [json.loads(line) for line in self.good('dump', capture, '--format', 'json', *words).splitlines()]

    def test_every_record_comes_out_once(self):
        counts = collections.Counter(f'{r["space"]}.{r["type"]}' for r in self.records(self.recorded()))
        for name, count in COUNTS.items():
            self.assertEqual(counts[name], count, name)

    def test_names_and_numbers_survive(self):
        capture = self.recorded()
        kernels = self.records(capture, '--space', 'device', '--type', 'kernel')
        self.assertEqual([k['fields']['name'] for k in kernels], KERNELS)
        self.assertEqual({k['fields']['correlation'] for k in kernels}, {2**53 + 1})
        allocations = self.records(capture, '--type', 'allocate')
        self.assertEqual([a['fields']['address'] for a in allocations], [ADDRESS, ADDRESS + 4096])
        self.assertEqual(allocations[0]['fields']['kind'], 'device')
        copy, = self.records(capture, '--type', 'copy')
        self.assertEqual((copy['fields']['kind'], copy['fields']['flags']), ('host_to_device', ['async']))

    def test_stamps_that_cannot_be_right_keep_their_raw_value(self):
        kernels = {k['fields']['name']: k for k in self.records(self.recorded(), '--type', 'kernel')}
        self.assertEqual(kernels['reversed']['repair'], 'reversed')
        self.assertEqual(kernels['reversed']['time'] - kernels['reversed']['fields']['end'], 500)
        self.assertEqual(kernels['zero']['repair'], 'zero')
        self.assertEqual(kernels['zero']['fields']['end'], 0)
        self.assertNotIn('repair', kernels['C:\\kernel'])

    def test_times_are_those_of_the_recording(self):
        before = time.time_ns()
        capture = self.recorded()
        after = time.time_ns()
        for record in self.records(capture, '--type', 'scope_push'):
            self.assertTrue(before <= record['time_ns'] <= after, (before, record['time_ns'], after))

    def test_csv_has_one_row_a_record(self):
        rows = list(csv.reader(io.StringIO(self.good('dump', self.recorded(), '--type', 'kernel', '--format', 'csv'),
                                           newline='')))
        head, *rows = rows
        self.assertEqual(len(rows), len(KERNELS))
        self.assertEqual([row[head.index('name')] for row in rows], KERNELS)
        self.assertTrue(all(len(row) == len(head) for row in rows))

    def test_text_is_one_line_a_record_without_control_bytes(self):
        output = sonde('dump', self.recorded()).stdout
        self.assertFalse([byte for byte in output if byte < 32 and byte != 10])
        self.assertEqual(sum(b' sonde.device.kernel ' in line for line in output.split(b'\n')), len(KERNELS))

    def test_limit_ends_the_dump(self):
        capture = self.recorded()
        self.assertEqual(len(self.records(capture, '--limit', 3)), 3)
        self.assertEqual(len(self.records(capture, '--limit', 2, '--type', 'kernel')), 2)

    def test_two_dumps_are_the_same_bytes(self):
        capture = self.recorded()
        self.assertEqual(self.good('dump', capture), self.good('dump', capture))

    def test_an_unknown_type_lists_the_known_ones(self):
        result = self.ended(sonde('dump', self.recorded(), '--type', 'bogus'), 2)
        self.assertIn(b'kernel', result.stderr)


class Doctoring(Test):
    def test_it_counts_what_is_unmatched_and_repaired(self):
        capture = self.recorded()
        result = self.ended(sonde('doctor', capture, '--format', 'json'), 1)
        found = json.loads(result.stdout)
        for name, count in COUNTS.items():
            self.assertEqual(found['records'][name], count, name)
        self.assertEqual(found['losses']['records'], 0)
        self.assertEqual(found['repairs']['reversed'], 1)
        self.assertEqual(found['repairs']['zero'], 1)
        unmatched = found['unmatched']
        self.assertEqual(unmatched['calls'], {'begins': 1, 'ends': 0, 'begins_without_end': 1, 'ends_without_begin': 0})
        self.assertEqual(unmatched['scopes'],
                         {'begins': 2, 'ends': 2, 'begins_without_end': 1, 'ends_without_begin': 1})
        self.assertEqual(unmatched['memory'], {'allocations': 2, 'frees': 2, 'frees_without_allocation': 1,
                                               'allocations_over_live': 0, 'never_freed': 1, 'never_freed_bytes': 1024})
        self.assertIn({'source': 1, 'severity': 'no data', 'origin': 'emit', 'text': 'the test has no device'},
                      found['notes'])
        self.assertTrue(found['verdict'].startswith('limited'))
        source, = found['sources']
        self.assertTrue(source['complete'])

    def test_the_text_ends_with_the_verdict(self):
        result = self.ended(sonde('doctor', self.recorded()), 1)
        lines = result.stdout.decode().splitlines()
        self.assertIn('Missing: no data from emit: the test has no device', lines)
        self.assertTrue(lines[-1].startswith('Verdict: limited'), lines[-1])

    def test_a_killed_process_is_said_and_its_capture_works(self):
        capture = self.folder / 'capture'
        self.ended(sonde('record', '-o', capture, '--', EMIT, '--kill', int(signal.SIGKILL)), 128 + 9)
        result = self.ended(sonde('doctor', capture, '--format', 'json'), 1)
        found = json.loads(result.stdout)
        self.assertFalse(found['sources'][0]['complete'])
        self.assertTrue(any('before its capture was closed' in limit for limit in found['limits']), found['limits'])
        # Everything was flushed before the kill, so everything is there.
        self.assertEqual(found['records']['sonde.device.kernel'], len(KERNELS))
        self.good('replay', capture, '-p', 'workload')


class Replaying(Test):
    def test_json_has_tables_findings_and_losses_and_is_the_same_twice(self):
        capture = self.recorded()
        first = self.good('replay', capture, '-p', 'workload', '--format', 'json')
        report = json.loads(first)
        self.assertIn('workload.kernels', report['tables'])
        self.assertIsInstance(report['findings'], list)
        self.assertEqual(report['losses']['records'], 0)
        self.assertEqual(first, self.good('replay', capture, '-p', 'workload', '--format', 'json'))

    def test_every_format_is_what_it_says(self):
        capture = self.recorded()
        log = json.loads(self.good('replay', capture, '-p', 'workload', '--format', 'sarif'))
        self.assertEqual(log['version'], '2.1.0')
        text = self.good('replay', capture, '-p', 'workload', '--format', 'csv')
        rows = list(csv.reader(io.StringIO(text, newline='')))
        self.assertIn(['# workload.kernels'], rows)
        text = self.good('replay', capture, '-p', 'workload')
        self.assertIn('workload.kernels', text)
        self.assertRegex(text, r'(?m)^Losses: 0$')
        self.assertNotIn('\x1b', text)

    def test_a_report_file_is_written_whole(self):
        capture = self.recorded()
        report = self.folder / 'report.json'
        self.assertEqual(self.good('replay', capture, '-p', 'workload', '--format', 'json', '-o', report), '')
        json.loads(report.read_text())
        self.assertEqual([path.name for path in self.folder.iterdir()].count('report.json.partial'), 0)
        self.ended(sonde('replay', capture, '-p', 'workload', '-o', self.folder / 'no' / 'report'), 3)

    def test_one_table_can_be_shown_alone(self):
        capture = self.recorded()
        report = json.loads(self.good('replay', capture, '-p', 'workload', '--format', 'json',
                                      '--only', 'workload.kernels'))
        self.assertEqual(list(report['tables']), ['workload.kernels'])

    def test_what_the_capture_says_of_itself_is_repeated(self):
        result = self.ended(sonde('replay', self.recorded(), '-p', 'workload', '--format', 'json'), 0)
        self.assertIn(b'sonde: no data from emit: the test has no device\n', result.stderr)
        json.loads(result.stdout)

    def test_a_single_file_is_a_capture_too(self):
        path, = self.recorded().glob('*.sonde')
        self.good('replay', path, '-p', 'workload')

    def test_a_function_of_a_plugin_can_be_called(self):
        functions = self.good('list', 'functions').splitlines()
        self.assertRegex(self.good('call', 'host', 'now'), r'^\d+\n$') if any(
            line.startswith('host.now ') for line in functions) else self.fail('host.now is not listed')
        self.ended(sonde('call', 'host', 'now', '1'), 2)
        self.ended(sonde('call', 'host', 'no_such_function'), 3)


class Running(Test):
    def test_run_records_then_reports(self):
        result = self.ended(sonde('run', '-p', 'workload', '--format', 'json', '--', EMIT), 0)
        report = json.loads(result.stdout)
        kernels = report['tables']['workload.kernels']
        count = [column['name'] for column in kernels['columns']].index('count')
        self.assertEqual(sum(row[count] for row in kernels['rows']), len(KERNELS))

    def test_several_processes_make_one_report(self):
        capture = self.folder / 'capture'
        result = self.ended(sonde('run', '-p', 'workload', '-o', capture, '--format', 'json', '--', '/bin/sh', '-c',
                                  f'{EMIT}; {EMIT}'), 0)
        kernels = json.loads(result.stdout)['tables']['workload.kernels']
        count = [column['name'] for column in kernels['columns']].index('count')
        self.assertEqual(sum(row[count] for row in kernels['rows']), 2 * len(KERNELS))
        self.assertEqual(len(list(capture.glob('*.sonde'))), 2)

    def test_the_programs_status_comes_first(self):
        self.ended(sonde('run', '-p', 'workload', '--', EMIT, '--exit', 3), 3)
        self.ended(sonde('run', '-p', 'workload', '--', '/no/such/program'), 127)
        self.ended(sonde('run', '-p', 'workload', '--', '/bin/true'), 5)

    def test_the_report_can_go_to_a_file(self):
        report = self.folder / 'report.json'
        result = self.ended(sonde('run', '-p', 'workload', '--format', 'json', '--report', report, '--', EMIT), 0)
        self.assertEqual(result.stdout, b'')
        json.loads(report.read_text())

    def test_a_mistake_shows_before_the_program_runs(self):
        marker = self.folder / 'ran'
        self.ended(sonde('run', '-p', 'no_such_plugin', '--', '/usr/bin/touch', marker), 3)
        self.assertFalse(marker.exists())


class Configuring(Test):
    def write(self, text):
        path = self.folder / 'run.yaml'
        path.write_text(text)
        return path

    def test_a_file_alone_says_what_to_do(self):
        report = self.folder / 'report.json'
        path = self.write('analyses:\n  workload: {}\noutputs:\n  - {format: json, path: "%s"}\n' % report)
        self.assertEqual(self.good('replay', self.recorded(), '-c', path), '')
        self.assertIn('workload.kernels', json.loads(report.read_text())['tables'])

    def test_flags_add_to_a_file(self):
        for text in ('session: {memory: 32Mi}\nports: {host: {}}\nrecord: {level: 1}\n',
                     'analyses:\n  workload: {}\n', 'analyses: [workload]\n', 'analyses:\n  - workload: {}\n'):
            path = self.write(text)
            report = json.loads(self.good('replay', self.recorded(), '-c', path, '-p', 'workload', '--format', 'json'))
            self.assertIn('workload.kernels', report['tables'], text)
            shutil.rmtree(self.folder / 'capture')

    def test_run_takes_the_file_apart(self):
        capture = self.folder / 'capture'
        path = self.write('session: {memory: 32Mi}\nports: {host: {}}\nrecord: {level: 1, path: "%s"}\n'
                          'analyses: {workload: {}}\n' % capture)
        self.good('run', '-c', path, '--', EMIT)
        self.assertEqual(len(list(capture.glob('*.sonde'))), 1)
        text = (capture / 'run.yaml').read_text()
        self.assertNotIn('analyses', text)
        self.assertIn('32Mi', text)

    def test_unknown_keys_name_their_place(self):
        path = self.write('analyses:\n  workload:\n    no_such_option: 1\n')
        result = self.ended(sonde('replay', self.recorded(), '-c', path), 2)
        self.assertIn(f'{path}:3:5'.encode(), result.stderr)
        path = self.write('bogus: 1\nanalyses: {workload: {}}\n')
        result = self.ended(sonde('replay', self.folder / 'capture', '-c', path), 2)
        self.assertIn(b'bogus', result.stderr)
        result = self.ended(sonde('replay', self.folder / 'capture', '-c', path, '-p', 'workload'), 2)
        self.assertIn(b'bogus', result.stderr)

    def test_text_that_is_no_yaml_names_its_place(self):
        path = self.write('analyses: [\n')
        result = self.ended(sonde('replay', self.recorded(), '-c', path), 2)
        self.assertIn(str(path).encode() + b':', result.stderr)


class RealCaptures(Test):
    """The captures of tests/data, made on a GPU."""

    def captures(self):
        data = Path(__file__).resolve().parents[2] / 'data'
        found = sorted(path.parent for path in data.glob('*/run.json'))
        self.assertTrue(found, f'no captures in {data}')
        return found

    def test_reports_are_valid_and_the_same_twice(self):
        for capture in self.captures():
            first = self.good('replay', capture, '-p', 'workload', '--format', 'json')
            report = json.loads(first)
            self.assertTrue(report['tables']['workload.kernels']['rows'], capture)
            self.assertEqual(first, self.good('replay', capture, '-p', 'workload', '--format', 'json'), capture)

    def test_doctor_and_dump_count_the_same(self):
        for capture in self.captures():
            examined = json.loads(sonde('doctor', capture, '--format', 'json').stdout)
            for name, count in examined['records'].items():
                if not name.startswith('sonde.device.'):
                    continue
                space, kind = name.rsplit('.', 1)
                lines = self.good('dump', capture, '--space', space, '--type', kind, '--format', 'json').splitlines()
                self.assertEqual(len(lines), count, f'{capture} {name}')

    def test_nothing_was_lost(self):
        for capture in self.captures():
            examined = json.loads(sonde('doctor', capture, '--format', 'json').stdout)
            self.assertEqual(examined['losses'], {'records': 0, 'exact': True, 'rows': []}, capture)


class Scaffolding(Test):
    """What `sonde new plugin` makes builds against the installed package alone and passes its own test."""

    @classmethod
    def setUpClass(cls):
        cls.prefix = Path(tempfile.mkdtemp(prefix='sonde-prefix-'))
        for component in ('runtime', 'development'):
            subprocess.run(['cmake', '--install', BUILD, '--prefix', cls.prefix, '--component', component],
                           check=True, stdout=subprocess.DEVNULL, timeout=300)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.prefix, ignore_errors=True)

    def check(self, language):
        installed = self.prefix / 'bin/sonde'
        source, build = self.folder / 'mine', self.folder / 'build'
        subprocess.run([installed, 'new', 'plugin', 'mine', '--lang', language, source], check=True,
                       stdout=subprocess.DEVNULL, timeout=60)
        environment = {key: value for key, value in os.environ.items() if not key.startswith('SONDE_')}
        for command in (['cmake', '-S', source, '-B', build, f'-DCMAKE_PREFIX_PATH={self.prefix}',
                         '-DCMAKE_C_FLAGS=-Wall -Wextra -Wpedantic -Werror',
                         '-DCMAKE_CXX_FLAGS=-Wall -Wextra -Wpedantic -Werror'],
                        ['cmake', '--build', build],
                        ['ctest', '--test-dir', build, '--output-on-failure', '--no-tests=error']):
            result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=600,
                                    env=environment)
            self.assertEqual(result.returncode, 0, result.stdout.decode()[-4000:])
        module = build / 'mine.so'
        listed = subprocess.run([installed, 'list', '--plugin-path', build], check=True, stdout=subprocess.PIPE)
        self.assertRegex(listed.stdout.decode(), r'(?m)^mine +0\.1\.0')
        capture = self.recorded()
        counted = subprocess.run([installed, 'call', module, 'kernel_count', '--capture', capture, '-p', module],
                                 check=True, stdout=subprocess.PIPE, timeout=60)
        self.assertEqual(int(counted.stdout), len(KERNELS))

    def test_a_plugin_in_c(self):
        self.check('c')

    def test_a_plugin_in_cpp(self):
        self.check('cpp')

    def test_a_script_in_lua(self):
        installed = self.prefix / 'bin/sonde'
        source = self.folder / 'mine'
        subprocess.run([installed, 'new', 'plugin', 'mine', '--lang', 'lua', source], check=True,
                       stdout=subprocess.DEVNULL, timeout=60)
        result = subprocess.run([source / 'test.sh'], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60,
                                env={**os.environ, 'SONDE': str(installed)})
        self.assertEqual((result.returncode, result.stdout), (0, b'good\n'))

    def test_a_directory_in_use_is_refused(self):
        (self.folder / 'file').write_text('')
        self.ended(sonde('new', 'plugin', 'mine', self.folder), 2)


def main():
    global SONDE, EMIT, BUILD
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--sonde', required=True)
    parser.add_argument('--emit', required=True)
    parser.add_argument('--build', required=True)
    parser.add_argument('names', nargs='*')
    arguments = parser.parse_args()
    SONDE, EMIT, BUILD = (os.path.abspath(path) for path in (arguments.sonde, arguments.emit, arguments.build))
    unittest.main(argv=[sys.argv[0], *arguments.names], verbosity=2)


if __name__ == '__main__':
    main()
