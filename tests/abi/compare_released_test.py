#!/usr/bin/env python3
"""The comparison of headers must find each kind of break, and must let each kind of addition pass."""

import tempfile
import unittest
from pathlib import Path

import compare_released
import headers

VERSION = '#define SONDE_ABI_MAJOR 1\n#define SONDE_ABI_MINOR 0\n'
BASE = VERSION + '''
#include <stdint.h>
#define SONDE_KIND_A 1u
typedef int32_t sonde_status;
typedef struct sonde_pair_t {
  uint32_t first;
  uint32_t second;
} sonde_pair_t;
typedef struct sonde_record_t {
  uint16_t size8;
} sonde_record_t;
typedef struct sonde_event_t {
  sonde_record_t header;
  uint64_t end;
} sonde_event_t;
typedef struct sonde_inner_t {
  uint32_t struct_size;
  uint32_t kind;
} sonde_inner_t;
typedef struct sonde_service_t {
  uint32_t struct_size;
  sonde_inner_t inner;
  sonde_status (*open)(const char *name, uint64_t *out);
  sonde_status (*close)(uint64_t id);
} sonde_service_t;
uint32_t sonde_version(void);
'''


class CompareReleased(unittest.TestCase):
    def compare(self, *replacements):
        """Problems of the base headers after the replacements (old text, new text)."""
        text = BASE
        for old, new in replacements:
            self.assertIn(old, text)
            text = text.replace(old, new)
        interfaces = []
        for source in (BASE, text):
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / 'sonde' / 'all.h'
                path.parent.mkdir()
                path.write_text(source, encoding='utf-8')
                interfaces.append(headers.read(folder))
        return compare_released.compare(*interfaces)

    def assert_breaks(self, word, *replacements):
        problems, _ = self.compare(*replacements)
        self.assertTrue(any(word in problem for problem in problems), problems)

    def test_the_same_headers_agree(self):
        self.assertEqual(self.compare(), ([], []))

    def test_a_service_may_grow_at_its_end(self):
        close = '  sonde_status (*close)(uint64_t id);\n'
        problems, additions = self.compare((close, close + '  sonde_status (*flush)(uint64_t id);\n'))
        self.assertEqual((problems, additions), ([], ['sonde_service_t']))

    def test_a_record_may_grow_at_its_end(self):
        problems, additions = self.compare(('  uint64_t end;\n', '  uint64_t end;\n  uint64_t more;\n'))
        self.assertEqual((problems, additions), ([], ['sonde_event_t']))

    def test_a_new_struct_and_constant_may_come(self):
        problems, additions = self.compare(
            ('#define SONDE_KIND_A 1u\n', '#define SONDE_KIND_A 1u\n#define SONDE_KIND_B 2u\n'),
            ('uint32_t sonde_version', 'typedef struct sonde_new_t { uint32_t a; } sonde_new_t;\nuint32_t sonde_version'))
        self.assertEqual((problems, additions), ([], ['sonde_new_t', 'SONDE_KIND_B']))

    def test_a_reordered_table_breaks(self):
        open_ = '  sonde_status (*open)(const char *name, uint64_t *out);\n'
        close = '  sonde_status (*close)(uint64_t id);\n'
        self.assert_breaks('sonde_service_t', (open_ + close, close + open_))

    def test_a_reordered_and_grown_table_breaks(self):
        open_ = '  sonde_status (*open)(const char *name, uint64_t *out);\n'
        close = '  sonde_status (*close)(uint64_t id);\n'
        self.assert_breaks('sonde_service_t', (open_ + close, close + open_ + '  void (*more)(void);\n'))

    def test_a_changed_parameter_breaks(self):
        self.assert_breaks('sonde_service_t', ('(uint64_t id)', '(uint32_t id)'))

    def test_a_removed_member_breaks(self):
        self.assert_breaks('close', ('  sonde_status (*close)(uint64_t id);\n', ''))

    def test_a_plain_struct_may_not_grow(self):
        self.assert_breaks('may not grow', ('  uint32_t second;\n', '  uint32_t second;\n  uint32_t third;\n'))

    def test_a_struct_held_by_value_may_not_grow(self):
        self.assert_breaks('may not grow', ('  uint32_t kind;\n', '  uint32_t kind;\n  uint64_t more;\n'))

    def test_the_record_header_may_not_grow(self):
        self.assert_breaks('may not grow', ('  uint16_t size8;\n', '  uint16_t size8;\n  uint16_t more;\n'))

    def test_a_changed_constant_breaks(self):
        self.assert_breaks('SONDE_KIND_A', ('SONDE_KIND_A 1u', 'SONDE_KIND_A 2u'))

    def test_a_changed_typedef_breaks(self):
        self.assert_breaks('sonde_status', ('int32_t sonde_status', 'int64_t sonde_status'))

    def test_a_removed_function_breaks(self):
        self.assert_breaks('sonde_version', ('uint32_t sonde_version(void);\n', ''))


if __name__ == '__main__':
    unittest.main()
