"""Runs, captures and their results."""

import json
import os

from . import _sonde
from .events import Events
from .frames import frame

# What `records=True` keeps: all that the program and its frameworks say about themselves.
SAID_BY_THE_PROGRAM = {"sonde.framework": None, "sonde.object": ["call_path"], "sonde.session": ["note"]}


def _yaml(configuration):
    # JSON is YAML: flow mappings, quoted strings, exact integers.
    return configuration if isinstance(configuration, str) else json.dumps(configuration)


class Results:
    """Tables, findings and losses of a finished run. Valid after the run is closed: everything was read before."""

    def __init__(self, session):
        self._tables = {}
        self._columns = {}
        for origin, name in _sonde.table_names(session):
            _, columns, rows = _sonde.read_table(session, origin, name)
            names = [column[0] for column in columns]
            self._columns[origin, name] = [dict(zip(("name", "unit", "help"), column)) for column in columns]
            self._tables[origin, name] = [dict(zip(names, row)) for row in rows]
        self.findings = _sonde.findings(session)
        self.losses = _sonde.losses(session)
        self._reports = {form: _sonde.report(session, form) for form in ("text", "json", "sarif", "csv")}

    @property
    def tables(self):
        """Names as (origin, name), in the order of their making."""
        return list(self._tables)

    def table(self, origin, name):
        """Rows as dicts by column name; an empty cell is None. KeyError names the tables there are."""
        try:
            return self._tables[origin, name]
        except KeyError:
            known = ", ".join(f"{o}.{n}" for o, n in self._tables) or "none"
            raise KeyError(f"no table {origin}.{name}; there are: {known}") from None

    def columns(self, origin, name):
        """Name, unit and definition of each column."""
        self.table(origin, name)
        return self._columns[origin, name]

    def frame(self, origin, name):
        """The table as a pandas.DataFrame. ImportError where pandas is absent."""
        return frame(self.table(origin, name))

    def report(self, format="text"):
        """The report as text, json, sarif or csv."""
        return self._reports[format]


class Run:
    """A run in this process: a session with analyses. A context manager; its results are there afterwards.

    `configuration` is YAML text or a dict with the keys of a run file; `analyses`, `ports` and `record` are shorthands
    for those keys. `records` names what to keep in memory as dicts, {space: [types] or None for all}; True: what the
    program says about itself. Past `records_limit` bytes, records are counted in `records_left_out` and not kept.
    """

    def __init__(self, configuration=None, analyses=None, ports=None, record=None, records=None,
                 records_limit=64 << 20):
        tree = dict(configuration) if isinstance(configuration, dict) else configuration
        if tree is None or isinstance(tree, dict):
            tree = tree or {}
            if analyses is not None:
                tree["analyses"] = analyses
            if ports is not None:
                tree["ports"] = ports
            if record is not None:
                tree["record"] = {"path": os.fspath(record)}
        elif not (analyses is None and ports is None and record is None):
            raise TypeError("analyses, ports and record belong into the YAML text of the configuration")
        self.results = None
        self.records = []
        self.records_left_out = 0
        self._previous = self._collector = None
        self._handle = _sonde.open_run(_yaml(tree))
        self.session = _sonde.run_session(self._handle)
        if records:
            wanted = SAID_BY_THE_PROGRAM if records is True else records
            self._collector = _sonde.collect(self.session, wanted, records_limit)

    def start(self):
        _sonde.start_run(self._handle)
        self._previous = _sonde.current_session()
        _sonde.set_current(self.session)
        return self

    def finish(self):
        """Stops, runs the analyses to their end and returns the results."""
        if self.results is None:
            self._leave()
            _sonde.finish_run(self._handle)
            self._collect()
        return self.results

    def _leave(self):
        # The session before becomes the current one again, unless another took its place meanwhile.
        current = _sonde.current_session()
        if current is None or _sonde.session_address(current) != _sonde.session_address(self.session):
            return
        try:
            _sonde.set_current(self._previous)
        except _sonde.Error:
            _sonde.set_current(None)  # it was closed meanwhile
        self._previous = None

    def _collect(self):
        try:
            self.results = Results(self.session)
            if self._collector is not None:
                self.records, self.records_left_out = _sonde.collected(self._collector, self.session)
        finally:
            self.close()

    def close(self):
        """Ends the run without results where it is not finished yet."""
        handle, self._handle = self._handle, None
        self.session = self._collector = None
        if handle is not None:
            _sonde.close_run(handle)

    def replay(self, path):
        _sonde.replay_run(self._handle, os.fspath(path))
        return self.finish()

    def report(self, format="text"):
        return self.finish().report(format)

    def __enter__(self):
        return self.start()

    def __exit__(self, *failure):
        self.finish()
        return False

    def __del__(self):
        if getattr(self, "_handle", None) is not None:
            self.close()


class Capture:
    """A capture file or run directory."""

    def __init__(self, path):
        self.path = os.fspath(path)
        if not os.path.exists(self.path):
            raise FileNotFoundError(f"no capture at {self.path}")

    def analyse(self, *plugins, scripts=(), **options):
        """Replays through plugins by id (their options as keywords: workload={"idle_share": 0.2}) and Lua scripts."""
        analyses = {name: {} for name in plugins}
        analyses.update(options)
        tree = {"analyses": analyses}
        if scripts:
            tree["scripts"] = [{"path": os.fspath(script)} for script in scripts]
        return Run(tree).replay(self.path)

    def events(self, spaces=None, limit=256 << 20):
        """What was recorded, as `Events`. `spaces`: {space: [types] or None}; default: what the program said."""
        run = Run(records=spaces or True, records_limit=limit)
        run.replay(self.path)
        return Events(run.records, run.records_left_out)


def open(path):
    """Opens a capture for analysis."""
    return Capture(path)
