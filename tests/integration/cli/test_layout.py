#!/usr/bin/env python3
"""`sonde layout show|convert|plan|check` from outside.

  test_layout.py --sonde bin/sonde [CLASS...]

Expected cells are computed here from bases written out by hand, never taken from the command's output.
"""

import argparse
import fcntl
import json
import os
import pty
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
import unittest
import xml.etree.ElementTree as ElementTree
from pathlib import Path

SONDE = None
MODULE = Path(__file__).parents[2] / 'data/layouts/ttgir/matmul_hopper.ttgir'
SVG = '{http://www.w3.org/2000/svg}'

# The tile of include/sonde/layout.h with a warp more: register 1 of lane 9 holds (2, 3).
TILE = {'register': [(0, 1), (1, 0)], 'lane': [(0, 2), (0, 4), (0, 8), (2, 0), (4, 0)], 'warp': [(8, 0)]}
TILE_JSON = json.dumps({'in': [[name, rows] for name, rows in TILE.items()], 'out': [['dim0', 16], ['dim1', 16]]})
BLOCKED = ('#ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>')
MMA = '#ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>'
PADDED = '#ttg.padded_shared<[32:+4] {order = [1, 0], shape = [4, 32]}>'
SWIZZLED = '#ttg.swizzled_shared<{vec = 4, perPhase = 1, maxPhase = 4, order = [1, 0]}>'


def apply(bases, owner):
    """The element at an owner: the exclusive or of the bases of its bits."""
    index = [0] * 2
    for name, value in owner.items():
        for bit, basis in enumerate(bases.get(name, [])):
            if value >> bit & 1:
                index = [a ^ b for a, b in zip(index, basis)]
    return index


def sonde(*words, environment=None, **more):
    clean = {name: value for name, value in os.environ.items() if name not in ('NO_COLOR', 'COLORTERM')}
    return subprocess.run([SONDE, 'layout', *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=120, env={**clean, **(environment or {})}, **more)


def grid(text):
    """{(row, column): label} of the first grid in a text, by its head line and row labels."""
    lines = text.split('\n')
    begin = next(i for i, line in enumerate(lines) if line.startswith('cells:')) + 1
    while not re.fullmatch(r'[ \d]+', lines[begin]) or not lines[begin].strip():
        begin += 1
    columns = list(map(int, lines[begin].split()))
    cells = {}
    for line in lines[begin + 1:]:
        if not line.strip():
            break
        row, *labels = line.split()
        assert len(labels) == len(columns), line
        cells.update({(int(row), column): label for column, label in zip(columns, labels)})
    return cells


class Test(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix='sonde-layout-'))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def ended(self, result, code):
        self.assertEqual(result.returncode, code, f'\n{result.stdout.decode(errors="replace")[-2000:]}'
                                                  f'\n{result.stderr.decode(errors="replace")[-2000:]}')
        return result

    def good(self, *words, **more):
        return self.ended(sonde(*words, **more), 0).stdout.decode()

    def refused(self, code, *words):
        """The command ends with this status, nothing on standard output, and a reason, which is returned."""
        result = self.ended(sonde(*words), code)
        self.assertEqual(result.stdout, b'', words)
        self.assertTrue(result.stderr, words)
        return result.stderr.decode()

    def cells(self, *words):
        return json.loads(self.good('show', *words, '--format', 'json'))['grid']['cells']


class Naming(Test):
    def test_help_has_examples(self):
        for name in ('show', 'convert', 'plan', 'check'):
            self.assertIn('Example', self.good(name, '--help'), name)
        self.assertIn('FILE.ttgir:#', self.good('--help'))

    def test_every_way_to_name_a_layout(self):
        path = self.folder / 'tile.json'
        path.write_text(TILE_JSON)
        for name in (TILE_JSON, f'@{path}'):
            self.assertEqual(json.loads(self.good('convert', name, '--to', 'json'))['out'],
                             [['dim0', 16], ['dim1', 16]])
        attribute = self.folder / 'attribute'
        attribute.write_text(MMA + '\n')
        module = self.folder / 'module.ttgir'
        module.write_text(f'#mine = {MMA}\n')
        texts = {self.good('convert', name, '--shape', shape, '--to', 'json')
                 for name in (MMA, f'@{attribute}', f'{module}:#mine') for shape in ('32x16', '32,16')}
        self.assertEqual(len(texts), 1)

    def test_a_module_tells_shape_and_element(self):
        # #mma is used by tensor<64x64xf32> and tensor<64x64xbf16>: the shape is known, the element is not.
        found = json.loads(self.good('show', f'{MODULE}:#mma', '--format', 'json'))
        self.assertEqual(([out['bits'] for out in found['facts']['out']], found['element_bits']), ([6, 6], 0))
        # #shared is used by buffers of 64x128xbf16 and 128x64xbf16: the other way round.
        self.assertIn('64x128, 128x64', self.refused(2, 'show', f'{MODULE}:#shared'))
        found = json.loads(self.good('show', f'{MODULE}:#shared', '--shape', '64x128', '--format', 'json'))
        self.assertEqual(found['element_bits'], 16)

    def test_what_cannot_be_understood_says_what_to_do(self):
        for words, part in (((BLOCKED,), '--shape'), ((BLOCKED, '--shape', '3x4'), 'powers of two'),
                            ((BLOCKED, '--shape', '16x'), 'powers of two'), (('#blocked',), 'FILE.ttgir:#blocked'),
                            (('nonsense',), 'names no layout'), (('{"in": 3}',), '"in"'),
                            (('#ttg.blocked<{sizePerThread = [1, 4}>', '--shape', '16x16'), 'at byte'),
                            ((f'{MODULE}:#absent', '--shape', '16x16'), '#blocked1'), ((str(MODULE),), ':#alias'),
                            ((TILE_JSON, '--type', 'f17'), 'f16'), ((TILE_JSON, '--rows', '3:99'), '--rows'),
                            ((TILE_JSON, '--by', 'block'), 'register, lane, warp'),
                            ((TILE_JSON, '--by', 'bank'), 'offset'),
                            ((SWIZZLED, '--shape', '8x16', '--by', 'bank'), '--bits')):
            self.assertIn(part, self.refused(2, 'show', *words), words)

    def test_files_that_are_missing_or_damaged(self):
        damaged = self.folder / 'damaged'
        damaged.write_bytes(b'SNDL' + bytes(20))
        half = self.folder / 'half.json'
        half.write_text(TILE_JSON[:50])
        for name in ('@/no/such/file', '/no/such.ttgir:#a', f'@{damaged}', f'@{half}'):
            self.refused(3, 'show', name)
        self.refused(3, 'show', TILE_JSON, '-o', '/no/such/folder/file')


class Showing(Test):
    def test_each_cell_says_who_holds_the_element(self):
        text = self.good('show', TILE_JSON)
        cells = grid(text)
        self.assertEqual(len(cells), 256)
        self.assertEqual(cells[2, 3], '9:1')
        for (row, column), label in cells.items():
            lane, register = map(int, label.split(':'))
            self.assertEqual(apply(TILE, {'register': register, 'lane': lane, 'warp': row // 8}), [row, column])
        self.assertIn('not said: warp', text)
        self.assertIn('register=1 -> (0, 1)', text)
        self.assertRegex(text, r'(?m)^properties .*surjective, injective, permutation')
        self.assertRegex(text, r'(?m)^thread +4 registers, 4 of them distinct; contiguous: 2 along dim0, 2 along dim1')

    def test_ways_to_say_who(self):
        for way, label in (('register', '1'), ('lane', '9'), ('warp', '1'), ('all', '1:9:1')):
            self.assertEqual(grid(self.good('show', TILE_JSON, '--by', way))[10, 3], label, way)

    def test_json_cells_are_the_layouts(self):
        cells = self.cells(TILE_JSON)
        self.assertEqual(sorted(cell['index'] for cell in cells), [[i, j] for i in range(16) for j in range(16)])
        for cell in cells:
            self.assertEqual(apply(TILE, cell['owner']), cell['index'])

    def test_copies_and_the_least_holder(self):
        # The tile on 4 x 16 elements: lane 16 and the warp hold copies, so 2 * 2 of each element.
        bases = {**TILE, 'lane': TILE['lane'][:4] + [(0, 0)], 'warp': [(0, 0)]}
        layout = json.dumps({'in': [[name, rows] for name, rows in bases.items()], 'out': [['dim0', 4], ['dim1', 16]]})
        self.assertRegex(self.good('show', layout), r'(?m)^copies +4 of each element, by lane 16; warp 1$')
        for cell in self.cells(layout):
            self.assertEqual(apply(bases, cell['owner']), cell['index'])
            self.assertLess(cell['owner']['lane'], 16)
            self.assertEqual(cell['owner']['warp'], 0)

    def test_elements_that_nobody_holds(self):
        # Only even columns of a 1 x 4 tensor.
        layout = '{"in": [["register", []], ["lane", [[0, 2]]]], "out": [["dim0", 1], ["dim1", 4]]}'
        self.assertEqual(grid(self.good('show', layout)), {(0, 0): '0:0', (0, 1): '-', (0, 2): '1:0', (0, 3): '-'})
        self.assertEqual([cell['owner'] is None for cell in self.cells(layout)], [False, True, False, True])
        picture = ElementTree.fromstring(self.good('show', layout, '--format', 'svg'))
        self.assertEqual([text.text for text in picture.iterfind(f".//{SVG}g[@class='cell']/{SVG}text")],
                         ['0:0', '-', '1:0', '-'])

    def test_shared_memory_shows_offset_and_bank(self):
        # A row of 16 elements is 32 bytes: four vectors of 4 elements, exchanged by the row's number modulo 4.
        cells = grid(self.good('show', SWIZZLED, '--shape', '8x16', '--type', 'f16'))
        self.assertEqual(len(cells), 128)
        for (row, column), label in cells.items():
            offset = 16 * row + 4 * ((column // 4) ^ (row % 4)) + column % 4
            self.assertEqual(label, f'{offset}:{offset // 2 % 32}', (row, column))
        # Without an element's size there are no banks.
        self.assertEqual(grid(self.good('show', SWIZZLED, '--shape', '8x16'))[1, 0], '20')

    def test_paddings_move_banks(self):
        # After every 32 elements 4 are left out: offset 32 lies at element 36, of 32 bits in bank 4.
        cells = grid(self.good('show', PADDED, '--shape', '4x32', '--bits', 32))
        for (row, column), label in cells.items():
            self.assertEqual(label, f'{32 * row + column}:{(36 * row + column) % 32}')

    def test_three_dims_are_slices(self):
        bases = [['register', [[0, 0, 1]]], ['lane', [[0, 1, 0], [1, 0, 0]]]]
        layout = json.dumps({'in': bases, 'out': [['dim0', 2], ['dim1', 2], ['dim2', 2]]})
        text = self.good('show', layout)
        first, second = text.split('dim0 = 1\n')
        self.assertIn('dim0 = 0\n', first)
        self.assertEqual(grid(first), {(0, 0): '0:0', (0, 1): '0:1', (1, 0): '1:0', (1, 1): '1:1'})
        self.assertEqual(grid('cells:\n' + second), {(0, 0): '2:0', (0, 1): '2:1', (1, 0): '3:0', (1, 1): '3:1'})
        one = self.good('show', layout, '--slices', '1')
        self.assertNotIn('dim0 = 0\n', one)
        self.assertIn('slices 1:2 of 2', one)

    def test_one_dim_is_broken_into_lines(self):
        layout = '{"in": [["register", [[1]]], ["lane", [[2], [4], [8], [16], [32]]]], "out": [["dim0", 64]]}'
        cells = grid(self.good('show', layout))
        self.assertEqual(len(cells), 64)
        for (begin, column), label in cells.items():
            self.assertEqual(label, f'{(begin + column) // 2}:{(begin + column) % 2}')

    def test_a_part_of_a_large_tensor(self):
        whole = self.cells(BLOCKED, '--shape', '128x64')
        text = self.good('show', BLOCKED, '--shape', '128x64')
        self.assertRegex(text, r'shown: rows 0:64 of 128, columns 0:\d+ of 64')
        part = grid(self.good('show', BLOCKED, '--shape', '128x64', '--rows', '100:104', '--columns', '60:'))
        self.assertEqual(sorted(part), [(row, column) for row in range(100, 104) for column in range(60, 64)])
        labels = {tuple(cell['index']): cell['label'] for cell in whole}
        for place, label in part.items():
            self.assertEqual(label, labels[place])

    def test_a_layout_of_40_bits_is_drawn_in_part(self):
        layout = json.dumps({'in': [['lane', [[0, 1 << i] for i in range(20)]]],
                             'out': [['dim0', 1], ['dim1', 1 << 20]]})
        cells = grid(self.good('show', layout, '--columns', '1000000:1000004', '--by', 'lane'))
        self.assertEqual(cells, {(0, 10 ** 6 + i): str(10 ** 6 + i) for i in range(4)})
        wide = json.dumps({'in': [['lane', [[1 << i] for i in range(40)]]], 'out': [['dim0', 1 << 40]]})
        self.assertIn('too large', self.refused(2, 'show', wide))

    def test_output_is_the_same_each_time(self):
        for form in ('text', 'svg', 'json'):
            words = ('show', MMA, '--shape', '32x16', '--color', 'always', '--format', form)
            self.assertEqual(self.good(*words), self.good(*words))
            path = self.folder / form
            self.good(*words, '-o', path)
            self.assertEqual(path.read_text(), self.good(*words))


class Colours(Test):
    TRUE = {'COLORTERM': 'truecolor'}
    CELL = re.compile(r'\x1b\[48;2;(\d+);(\d+);(\d+);38;2;(\d+);(\d+);(\d+)m ([ \d:]+)\x1b\[0m')

    def painted(self, *words):
        """(background, label) of the cells of a tile of 16 x 16, row by row, and what the legend says."""
        found = self.CELL.findall(self.good('show', TILE_JSON, '--color', 'always', *words, environment=self.TRUE))
        backgrounds = [(tuple(map(int, one[:3])), one[6].strip()) for one in found]
        return backgrounds[:256], {int(label): color for color, label in backgrounds[256:]}

    def test_cells_have_the_colour_of_their_warp(self):
        cells, legend = self.painted()
        self.assertEqual(len(set(legend.values())), 2)
        for place, (color, _) in enumerate(cells):
            self.assertEqual(color, legend[place // 16 // 8], place)

    def test_cells_have_the_colour_of_their_lane(self):
        cells, legend = self.painted('--by', 'lane')
        self.assertEqual(len(set(legend.values())), 32)
        for color, label in cells:
            self.assertEqual(color, legend[int(label)])

    def test_text_is_readable_on_its_colour(self):
        def luminance(color):
            linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (x / 255 for x in color)]
            return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
        text = self.good('show', TILE_JSON, '--color', 'always', '--by', 'lane', environment=self.TRUE)
        for one in self.CELL.findall(text):
            low, high = sorted((luminance(tuple(map(int, one[:3]))), luminance(tuple(map(int, one[3:6])))))
            self.assertGreater((high + 0.05) / (low + 0.05), 4.5)  # WCAG 2, level AA

    def test_terminals_of_256_colours(self):
        text = self.good('show', TILE_JSON, '--color', 'always')
        self.assertEqual(len(re.findall(r'\x1b\[48;5;(\d+);38;5;(?:16|231)m', text)), 256 + 2)
        self.assertNotIn('48;2;', text)

    def test_no_colour_in_files_and_pipes(self):
        self.assertNotIn('\x1b', self.good('show', TILE_JSON))
        path = self.folder / 'text'
        self.good('show', TILE_JSON, '-o', path)
        self.assertNotIn('\x1b', path.read_text())

    def on_a_terminal(self, rows, columns, environment):
        main, other = pty.openpty()
        fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack('HHHH', rows, columns, 0, 0))
        clean = {name: value for name, value in os.environ.items() if name not in ('NO_COLOR', 'COLORTERM')}
        process = subprocess.Popen([SONDE, 'layout', 'show', BLOCKED, '--shape', '128x64'], stdout=other,
                                   stderr=subprocess.PIPE, env={**clean, 'TERM': 'xterm', **environment})
        os.close(other)
        text = b''
        while True:
            try:
                block = os.read(main, 65536)
            except OSError:  # the terminal was closed
                break
            if not block:
                break
            text += block
        os.close(main)
        self.assertEqual(process.wait(timeout=60), 0, process.stderr.read())
        process.stderr.close()
        return text.decode().replace('\r\n', '\n')

    def test_a_terminal_gets_what_fits(self):
        text = self.on_a_terminal(30, 80, {})
        self.assertIn('\x1b[48;5;', text)
        plain = re.sub(r'\x1b\[[\d;]*m', '', text)
        cells = grid(plain)
        rows = {row for row, _ in cells}
        self.assertLessEqual(len(rows), 30)
        self.assertGreater(len(rows), 10)
        body = plain[plain.index('cells:'):].split('shown:')[0].split('\n')[1:]
        self.assertLessEqual(max(map(len, body)), 80)
        self.assertIn('shown: rows 0:', plain)

    def test_no_color_is_respected(self):
        self.assertNotIn('\x1b', self.on_a_terminal(30, 80, {'NO_COLOR': '1'}))
        self.assertNotIn('\x1b', self.on_a_terminal(30, 80, {'TERM': 'dumb'}))


class Pictures(Test):
    def picture(self, *words):
        return ElementTree.fromstring(self.good('show', *words, '--format', 'svg'))

    def cells_of(self, picture):
        return [group for group in picture.iter(f'{SVG}g') if group.get('class') == 'cell']

    def test_each_element_is_there_once_with_its_owner(self):
        picture = self.picture(TILE_JSON)
        cells = self.cells_of(picture)
        self.assertEqual(sorted(tuple(map(int, cell.get('data-index').split(','))) for cell in cells),
                         [(i, j) for i in range(16) for j in range(16)])
        for cell in cells:
            register, lane, warp = map(int, cell.get('data-owner').split(','))
            index = list(map(int, cell.get('data-index').split(',')))
            self.assertEqual(apply(TILE, {'register': register, 'lane': lane, 'warp': warp}), index)
            self.assertEqual(cell.find(f'{SVG}text').text, f'{lane}:{register}')
            self.assertEqual(cell.find(f'{SVG}title').text,
                             f'({index[0]}, {index[1]}): warp {warp}, lane {lane}, register {register}')

    def test_cells_lie_side_by_side_within_the_picture(self):
        for words in ((TILE_JSON,), (BLOCKED, '--shape', '2x4'), (MMA, '--shape', '64x64', '--by', 'all')):
            picture = self.picture(*words)
            _, _, width, height = map(float, picture.get('viewBox').split())
            self.assertEqual((float(picture.get('width')), float(picture.get('height'))), (width, height))
            boxes = {}
            for cell in self.cells_of(picture):
                box = cell.find(f'{SVG}rect')
                x, y, w, h = (float(box.get(name)) for name in ('x', 'y', 'width', 'height'))
                self.assertTrue(0 <= x and x + w <= width and 0 <= y and y + h <= height, words)
                # 11-unit monospace letters are 6.6 wide: the label fits its cell.
                self.assertLessEqual(6.6 * len(cell.find(f'{SVG}text').text), w)
                row, column = map(int, cell.get('data-index').split(','))
                boxes[row, column] = (x, y, w, h)
            x, y, w, h = boxes[0, 0]
            for (row, column), box in boxes.items():
                self.assertEqual(box, (x + column * w, y + row * h, w, h), words)

    def test_title_and_legend(self):
        picture = self.picture(MMA, '--shape', '32x16')
        self.assertEqual(picture.find(f'{SVG}title').text, MMA)
        lines = [text.text for text in picture.findall(f'{SVG}text') if text.get('class') == 'title']
        self.assertEqual(' '.join(lines), MMA)
        width = float(picture.get('width'))
        for line in lines:
            self.assertLess(len(line) * 6.6, width)
        swatches = {int(one.find(f'{SVG}text').text): one.find(f'{SVG}rect').get('fill')
                    for one in picture.iter(f'{SVG}g') if one.get('class') == 'swatch'}
        self.assertEqual(sorted(swatches), [0, 1, 2, 3])
        # Warp 1 begins at column 8, warp 2 at row 16.
        for cell in self.cells_of(picture):
            row, column = map(int, cell.get('data-index').split(','))
            self.assertEqual(cell.find(f'{SVG}rect').get('fill'), swatches[column // 8 + row // 16 * 2])

    def test_it_needs_nothing_else(self):
        text = self.good('show', TILE_JSON, '--format', 'svg')
        for part in ('href', 'url(', '@import', '<script', 'http'):
            self.assertNotIn(part, text.replace('http://www.w3.org/2000/svg', ''), part)

    def test_odd_names_are_escaped(self):
        path = self.folder / 'a<b>&"c\x01\xff.json'
        path.write_text(TILE_JSON)
        title = self.picture(f'@{path}').find(f'{SVG}title').text
        self.assertIn('a<b>&"c\ufffd', title)

    def test_what_is_cut_says_so(self):
        result = self.ended(sonde('show', BLOCKED, '--shape', '256x64', '--format', 'svg'), 0)
        self.assertIn(b'rows 0:128 of 256', result.stderr)
        picture = ElementTree.fromstring(result.stdout)
        self.assertEqual(len(self.cells_of(picture)), 128 * 64)
        self.assertTrue(any('rows 0:128 of 256' in (text.text or '') for text in picture.iter(f'{SVG}text')))


class Converting(Test):
    def test_files_come_back(self):
        for form in ('json', 'bytes'):
            path = self.folder / form
            self.good('convert', MMA, '--shape', '32x16', '--to', form, '-o', path)
            self.assertEqual(self.good('check', '--same', f'@{path}', MMA, '--shape', '32x16'), 'the same\n')
        self.assertEqual(self.good('convert', MMA, '--shape', '32x16', '--to', 'bytes-hex').strip(),
                         (self.folder / 'bytes').read_bytes().hex())

    def test_the_linear_attribute(self):
        # A 16 x 8 tile of mma.sync: two columns a lane, four lanes a row; rows 8 apart in registers; warps by column.
        self.assertEqual(self.good('convert', MMA, '--shape', '32x16', '--to', 'linear-attribute'),
                         '#ttg.linear<{register = [[0, 1], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], '
                         'warp = [[0, 8], [16, 0]], block = []}>\n')
        for name, shape in ((BLOCKED, '128x64'), (SWIZZLED, '8x16'), (f'{MODULE}:#mma', '64x64')):
            text = self.good('convert', name, '--shape', shape, '--to', 'linear-attribute').strip()
            self.assertEqual(self.good('check', '--same', text, name, '--shape', shape), 'the same\n')

    def test_what_has_no_linear_attribute(self):
        for layout, part in (('{"in": [["x", [[1]]]], "out": [["dim0", 2]]}', 'it has x'),
                             ('{"in": [["lane", [[1]]]], "out": [["y", 2]]}', 'dim0'),
                             ('{"in": [["lane", [[2]]]], "out": [["dim0", 4]]}', 'every element'),
                             ('{"in": [["lane", [[1]]]], "out": [["dim0", 2]], "offset": [1]}', 'maps 0')):
            self.assertIn(part, self.refused(2, 'convert', layout, '--to', 'linear-attribute'))

    def test_tritons_text_and_the_attribute(self):
        self.assertEqual(self.good('convert', '{"in": [["lane", [[1], [2]]], ["warp", []]], "out": [["dim0", 4]]}',
                                   '--to', 'triton').strip(),
                         '- lane=1 -> (1)\n   lane=2 -> (2)\n - warp is a size 1 dimension\n'
                         'where out dims are: [dim0 (size 4)]')
        self.assertEqual(self.good('convert', MMA, '--shape', '32x16', '--to', 'attribute').strip(), MMA)
        self.assertIn('linear-attribute', self.refused(2, 'convert', TILE_JSON, '--to', 'attribute'))

    def test_cute_both_ways(self):
        # Row-major 4 x 8: coordinate (i, j) lies at 8 i + j.
        for (row, column), label in grid(self.good('show', '(4,8):(8,1)', '--by', 'offset')).items():
            self.assertEqual(label, str(8 * row + column))
        self.assertEqual(self.good('convert', '(4,8):(8,1)', '--to', 'cute').strip(), '(4,8):(8,1)')
        # Sw<2,2,3> xors offset bits 2 and 3 with bits 5 and 6: with rows of 32 the vector with the row modulo 4.
        for (row, column), label in grid(self.good('show', 'Sw<2,2,3> o 0 o (8,32):(32,1)', '--by', 'offset')).items():
            self.assertEqual(int(label), 32 * row + (column ^ (row % 4) << 2))
        for text, part in (('(4,8):(16,1)', 'holes'), ('(3,8):(8,1)', 'power of two'),
                           ('(4,(2,4)):(8,(1,2))', '--shape'), ('(4,8:', 'column 5')):
            self.assertIn(part, self.refused(2, 'show', text), text)


class Planning(Test):
    LANES = [[2], [4], [8], [16], [32]]

    def layout(self, register, lane, warp=((64,),)):
        return json.dumps({'in': [['register', register], ['lane', lane], ['warp', list(warp)], ['block', []]],
                           'out': [['dim0', 128]]})

    def plan(self, *words):
        return json.loads(self.good('plan', *words, '--format', 'json'))

    def test_kinds(self):
        source = self.layout([[1]], self.LANES)
        swapped = self.layout([[2]], [[1]] + self.LANES[1:])
        warps = self.layout([[1]], self.LANES[:-1] + [[64]], [[32]])
        nothing = self.plan(source, source, '--bits', 32)
        self.assertEqual((nothing['kind'], nothing['shuffles'], nothing['shared_bytes'], nothing['memory']),
                         ('no-op', 0, 0, None))
        self.assertEqual(set(nothing['moved_share'].values()), {0})
        shuffles = self.plan(source, swapped, '--bits', 32)
        self.assertEqual(shuffles['kind'], 'warp shuffles')
        self.assertGreater(shuffles['shuffles'], 0)
        # Half of the registers and half of the lanes change places: those whose bits differ.
        self.assertEqual(shuffles['moved_share'], {'register': 0.5, 'lane': 0.5, 'warp': 0, 'block': 0})
        memory = self.plan(source, warps, '--bits', 32)
        self.assertEqual((memory['kind'], memory['shared_bytes'] * memory['repetitions']), ('shared memory', 512))
        self.assertEqual(memory['moved_share'], {'register': 0, 'lane': 0.5, 'warp': 0.5, 'block': 0})
        for side, instruction in (('store', 'st.shared'), ('load', 'ld.shared')):
            self.assertEqual((memory[side]['instruction'], memory[side]['conflicts']), (instruction, 0))
            # Every lane moves its two elements of 32 bits.
            self.assertEqual(memory[side]['vector_bits'] * memory[side]['instructions'], 64)
        self.assertEqual(self.plan(source, swapped, '--bits', 32, '--only-memory')['kind'], 'shared memory')

    def test_the_text_fits_a_screen(self):
        text = self.good('plan', BLOCKED, MMA, '--shape', '64x64', '--type', 'f16')
        self.assertLessEqual(text.count('\n'), 24)
        self.assertLessEqual(max(map(len, text.splitlines())), 120)
        for part in (BLOCKED, MMA, '16 bits', 'shared memory', 'st.shared', 'ld.shared', 'conflicts', 'vector'):
            self.assertIn(part, text)

    def test_matrix_instructions_where_the_device_has_them(self):
        # Rows of 8 contiguous elements on one side, columns on the other: what ldmatrix.trans is for.
        rows, operand = (json.dumps({'in': [['register', registers], ['lane', lanes]],
                                     'out': [['dim0', 32], ['dim1', 32]]}) for registers, lanes in
                         (([[0, 1], [0, 2], [0, 4], [16, 0], [0, 16]], [[1, 0], [2, 0], [4, 0], [8, 0], [0, 8]]),
                          ([[1, 0], [8, 0], [0, 8], [16, 0], [0, 16]], [[2, 0], [4, 0], [0, 1], [0, 2], [0, 4]])))
        words = (rows, operand, '--bits', 16, '--only-memory')
        self.assertEqual(self.plan(*words)['load']['instruction'], 'ld.shared')
        found = self.plan(*words, '--ldmatrix')
        self.assertEqual((found['store']['instruction'], found['load']['instruction']), ('st.shared', 'ldmatrix.trans'))
        self.assertEqual((found['store']['conflicts'], found['load']['conflicts']), (0, 0))

    def test_accesses_to_a_given_memory(self):
        # Lane i holds element i, of 32 bits. Where elements are 64 words apart all 32 lanes meet in one bank: 32
        # wavefronts where 1 would do. Side by side they meet nowhere.
        registers = json.dumps({'in': [['register', []], ['lane', [[1 << i, 0] for i in range(5)]]],
                                'out': [['dim0', 32], ['dim1', 1]]})
        strided = json.dumps({'in': [['offset', [[0, 0]] * 6 + [[1 << i, 0] for i in range(5)]]],
                              'out': [['dim0', 32], ['dim1', 1]]})
        dense = json.dumps({'in': [['offset', [[1 << i, 0] for i in range(5)]]], 'out': [['dim0', 32], ['dim1', 1]]})
        for memory, wavefronts in ((strided, 32), (dense, 1)):
            load = self.plan(memory, registers, '--bits', 32)['load']
            self.assertEqual(load, {'instruction': 'ld.shared', 'vector_bits': 32, 'instructions': 1,
                                    'wavefronts': wavefronts, 'conflicts': wavefronts - 1})
            store = self.plan(registers, memory, '--bits', 32)['store']
            self.assertEqual((store['instruction'], store['wavefronts']), ('st.shared', wavefronts))
        self.assertIn('loads from a given memory', self.good('plan', strided, registers, '--bits', 32))

    def test_a_module_knows_shape_and_element(self):
        path = self.folder / 'module.ttgir'
        path.write_text(f'#blocked = {BLOCKED}\n#mma = {MMA}\nmodule {{\n'
                        '  %0 = "a"() : () -> tensor<64x32xf16, #mma>\n'
                        '  %1 = ttg.convert_layout %0 : tensor<64x32xf16, #mma> -> tensor<64x32xf16, #blocked>\n}\n')
        found = self.plan(f'{path}:#mma', f'{path}:#blocked')
        self.assertEqual((found['element_bits'], found['shared_bytes'] * found['repetitions']), (16, 64 * 32 * 2))

    def test_what_cannot_be_planned_says_why(self):
        source = self.layout([[1]], self.LANES)
        half = self.layout([[0]], self.LANES)
        self.assertIn('--bits', self.refused(2, 'plan', source, source))
        self.assertIn('plan: ', self.refused(2, 'plan', half, source, '--bits', 32))
        self.assertIn('memories', self.refused(2, 'plan', SWIZZLED, SWIZZLED, '--shape', '16x16', '--bits', 16))
        self.assertIn('padded', self.refused(2, 'plan', BLOCKED, PADDED, '--shape', '4x32', '--bits', 16))
        self.assertIn('plan: ', self.refused(2, 'plan', source, source, '--bits', 24))
        self.refused(2, 'plan', source)


class Checking(Test):
    def test_a_real_module(self):
        found = json.loads(self.good('check', MODULE, '--format', 'json'))
        self.assertEqual(found['wrong'], 0)
        notes = {one['name'].rsplit(':', 1)[1]: (one['place'], one['note']) for one in found['layouts']}
        # "#mma = " begins line 4, so the attribute stands at column 8.
        self.assertEqual(notes['#mma'], ('4:8', 'built for 64x64'))
        self.assertIn('0 of ', self.good('check', MODULE))

    def test_a_module_with_a_mistake_says_where(self):
        path = self.folder / 'broken.ttgir'
        path.write_text('#good = ' + MMA + '\n\n#bad = #ttg.blocked<{sizePerThread = [1, 4}>\n')
        result = self.ended(sonde('check', path), 1)
        good, bad, last = result.stdout.decode().splitlines()
        self.assertTrue(good.startswith('ok'), good)
        self.assertRegex(bad, r'^WRONG .*#bad \(3:8\): ')
        self.assertEqual(last, '1 of 2 wrong')

    def test_a_shape_that_an_encoding_cannot_have_is_wrong(self):
        path = self.folder / 'rank.ttgir'
        path.write_text(f'#b = {BLOCKED}\nmodule {{\n  %x = "make"() : () -> tensor<16xf32, #b>\n}}\n')
        self.assertRegex(self.ended(sonde('check', path), 1).stdout.decode(), r'WRONG .*#b \(1:6\): 16: ')

    def test_attributes_and_files(self):
        path = self.folder / 'tile.json'
        path.write_text(TILE_JSON)
        self.assertIn('--shape', self.good('check', BLOCKED))
        self.assertRegex(self.good('check', BLOCKED, path, TILE_JSON, '--shape', '16x16'), r'(?m)^0 of 3 wrong')
        for wrong in ('#ttg.blocked<{sizePerThread = [1}>', '{"in": []}', '#ttg.no_such<{}>'):
            self.assertIn('WRONG', self.ended(sonde('check', wrong), 1).stdout.decode())
        path.write_text(TILE_JSON[:-1])
        self.assertIn('WRONG', self.ended(sonde('check', path), 1).stdout.decode())

    def test_status_of_missing_files_and_wrong_lines(self):
        self.refused(3, 'check', '/no/such.ttgir')
        self.refused(3, 'check', '@/no/such.json')
        self.refused(2, 'check')
        self.refused(2, 'check', '--same', TILE_JSON)
        self.refused(2, 'check', '--same', TILE_JSON, '{"in": 1}')

    def test_the_same_map_in_another_order(self):
        turned = json.dumps({'in': [[name, [row[::-1] for row in rows]] for name, rows in reversed(TILE.items())] +
                                   [['block', []]], 'out': [['dim1', 16], ['dim0', 16]]})
        self.assertEqual(self.good('check', '--same', TILE_JSON, turned), 'the same\n')

    def test_what_differs(self):
        other = TILE_JSON.replace('[4, 0]', '[6, 0]')
        result = self.ended(sonde('check', '--same', TILE_JSON, other, '--format', 'json'), 1)
        self.assertEqual(json.loads(result.stdout), {
            'same': False,
            'difference': 'lane 16 is at (dim0 4, dim1 0) in the first, at (dim0 6, dim1 0) in the second'})
        result = self.ended(sonde('check', '--same', TILE_JSON, TILE_JSON.replace('"warp"', '"block"')), 1)
        self.assertIn(b'in dims differ', result.stdout)


def main():
    global SONDE
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--sonde', required=True)
    parser.add_argument('names', nargs='*')
    arguments = parser.parse_args()
    SONDE = os.path.abspath(arguments.sonde)
    unittest.main(argv=[sys.argv[0], *arguments.names], verbosity=2)


if __name__ == '__main__':
    main()
