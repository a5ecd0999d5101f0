"""`sonde.capture`: a run in this process with the framework adapters that fit, as a context manager or a decorator."""

import functools
import inspect
import sys

from .events import Events
from .runs import SAID_BY_THE_PROGRAM, Run


# Every operator of a program goes through a thread's ring: it holds some 30,000 of them before its reader must come.
_SESSION = {"ring": "8Mi", "memory": "256Mi"}


class capture(Events):
    """Captures what the body does; afterwards the results are there as plain dicts.

        with sonde.capture(torch={"shapes": True}) as captured:
            model(x).sum().backward()
        for operator in captured.operators: ...

        @sonde.capture("run", done=lambda captured: print(captured.report()))
        def train(): ...

    record         path of a run directory to write, None: memory only
    analyses, ports, configuration
                   as of `sonde.Run`; rings are of 8 MiB a thread within 256 MiB unless the configuration says `session`
    torch          "auto": attach `sonde.torch` when the program has imported torch; True: import it; False: leave it;
                   a dict: True with these options of `sonde.torch.attach`
    records        what to keep as dicts: True, False, or {space: [types] or None}
    records_limit  bytes of them; what is beyond is counted in `left_out`
    done           for the decorator: called with the capture after each call

    An exception in the body ends the capture and goes on. Captures may overlap and nest; scopes and metrics of
    Python go to the one that started last.
    """

    def __init__(self, record=None, *, analyses=None, ports=None, configuration=None, torch="auto", records=True,
                 records_limit=64 << 20, done=None):
        super().__init__([])
        if configuration is None or isinstance(configuration, dict):
            configuration = {"session": _SESSION, **(configuration or {})}
        wanted = dict(SAID_BY_THE_PROGRAM if records is True else records or {})
        self._options = {"configuration": configuration, "analyses": analyses, "ports": ports, "record": record,
                         "records": wanted, "records_limit": records_limit}
        self._torch = torch
        self._done = done
        self._run = self._attachment = None
        self.results = None

    @property
    def session(self):
        """The session while the capture runs, else None."""
        return self._run.session if self._run is not None else None

    def __enter__(self):
        if self._run is not None:
            raise RuntimeError("this capture runs already; make another for a nested one")
        super().__init__([])
        self.results = None
        run = Run(**self._options)
        try:
            run.start()
            self._attachment = self._attach(run.session)
        except BaseException:
            run._leave()
            run.close()
            raise
        self._run = run
        return self

    def __exit__(self, *failure):
        run, self._run = self._run, None
        attachment, self._attachment = self._attachment, None
        try:
            if attachment is not None:
                attachment.detach()
        finally:
            self.results = run.finish()
            self.records, self.left_out = run.records, run.records_left_out
        return False

    def _attach(self, session):
        if self._torch is False or (self._torch == "auto" and "torch" not in sys.modules):
            return None
        from . import torch as adapter

        options = dict(self._torch) if isinstance(self._torch, dict) else {}
        return adapter.attach(session, **options)

    def report(self, format="text"):
        """The report of the analyses as text, json, sarif or csv."""
        if self.results is None:
            raise RuntimeError("the capture has no results before it has ended")
        return self.results.report(format)

    def _again(self):
        made = capture(torch=self._torch, done=self._done)
        made._options = self._options
        return made

    def __call__(self, function):
        """Each call of the function is a capture of its own; the last one is `function.captured`."""
        def finished(captured):
            wrapper.captured = captured
            if self._done is not None:
                self._done(captured)

        if inspect.iscoroutinefunction(function):
            @functools.wraps(function)
            async def wrapper(*arguments, **keywords):
                captured = self._again()
                try:
                    with captured:
                        return await function(*arguments, **keywords)
                finally:
                    finished(captured)
        else:
            @functools.wraps(function)
            def wrapper(*arguments, **keywords):
                captured = self._again()
                try:
                    with captured:
                        return function(*arguments, **keywords)
                finally:
                    finished(captured)
        wrapper.captured = None
        return wrapper
