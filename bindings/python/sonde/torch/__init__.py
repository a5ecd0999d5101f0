"""The PyTorch adapter: operators, modules, tensors and compilations of any PyTorch from 1.13 on, as it is installed.

`sonde.capture` attaches it by itself; `attach` adds it to a session that runs already, for example that of `sonde run`.

    attachment = sonde.torch.attach(shapes=True)
    ...
    attachment.detach()

Operators and tensors come from a small native part that is compiled once against the installed PyTorch, with the
machine's compiler, and kept in a cache. Without a compiler, operators come from a dispatch mode, which sees less. What
could not be captured is said in `Attachment.notes` and in the capture.
"""

from .. import _sonde, scopes
from .build import Unavailable, load

__all__ = ["Attachment", "Unavailable", "attach", "load"]

_OPERATORS, _SHAPES, _STACKS, _CUDA, _ANNOUNCE, _CPU = 1, 2, 4, 8, 16, 32
_SEVERITIES = ("info", "warning", "error", "no data")


class Attachment:
    """What one session gets from PyTorch, until `detach`. A context manager. Made by `attach`."""

    def __init__(self, session):
        self.session = session
        self.notes = []  # (severity, text)
        self.native = None
        self._sink = None
        self._parts = []  # with stop()

    def note(self, severity, text):
        self.notes.append((severity, text))
        _sonde.note(self.session, _SEVERITIES.index(severity), "torch", text)

    def detach(self):
        """Ends it; doing so twice is no fault."""
        parts, self._parts = self._parts, []
        for part in reversed(parts):
            part.stop()
        if self._sink is not None:
            self.native.stop(self._sink, _sonde.session_address(self.session))
            self._sink = None
        self.session = None

    def __enter__(self):
        return self

    def __exit__(self, *failure):
        self.detach()
        return False


def attach(session=None, *, operators=True, shapes=False, stacks=False, modules=True, tensors=True, compiles=True,
           native=True):
    """Attaches PyTorch to a session; None: the current one.

    operators  every operator of every thread, with its autograd link; False: none
    shapes     types and shapes of their inputs
    stacks     the Python call path of outermost operators
    modules    calls of torch.nn modules as scopes
    tensors    blocks of the allocators: True for CUDA's where there is CUDA, else the CPU's; False, "cuda", "cpu", "both";
               CUDA's are told to sonde.ranges too
    compiles   compilations, graph breaks, recompilations and generated kernels of torch.compile
    native     False: without the compiled part
    """
    import torch  # the real one: imports in this package are absolute

    if session is None:
        session = _sonde.current_session()
        if session is None:
            raise _sonde.Error("no session to attach PyTorch to; open a sonde.capture, or use `sonde run`", -3)
    if tensors not in (True, False, "cuda", "cpu", "both"):
        raise ValueError(f"tensors is True, False, 'cuda', 'cpu' or 'both', not {tensors!r}")
    attachment = Attachment(session)
    scopes._is_compiling = getattr(getattr(torch, "compiler", None), "is_compiling", None)
    try:
        if operators or tensors:
            _attach_native(attachment, torch, operators, shapes, stacks, tensors, native)
        if modules:
            from .modules import ModuleScopes

            try:
                attachment._parts.append(ModuleScopes(torch, session))
            except _sonde.Error as failure:
                attachment.note("no data", f"no data on modules because {failure.args[0]}")
        if compiles:
            from .compiles import attach_compiles

            attach_compiles(attachment, torch)
    except BaseException:
        attachment.detach()
        raise
    return attachment


def _attach_native(attachment, torch, operators, shapes, stacks, tensors, wanted):
    reason = "the compiled part was not asked for"
    if wanted:
        try:
            attachment.native = load()
        except Unavailable as missing:
            reason = str(missing)
    if attachment.native is None:
        _fall_back(attachment, torch, operators, shapes, stacks, tensors, reason)
        return
    options = 0
    if operators:
        options |= _OPERATORS | (_SHAPES if shapes else 0) | (_STACKS if stacks else 0)
    if tensors is True:
        tensors = "cuda" if torch.cuda.is_available() else "cpu"
    on_cuda = tensors in ("cuda", "both") and _attach_cuda(attachment, torch)
    on_cpu = tensors in ("cpu", "both") and _attach_cpu(attachment)
    options |= (_CUDA | _ANNOUNCE if on_cuda else 0) | (_CPU if on_cpu else 0)
    sink = attachment.native.start(_sonde.host_address(), _sonde.session_address(attachment.session), options)
    if sink < 0:
        attachment.note("no data", f"no data on operators and tensors because the adapter could not start ({sink}): "
                                   "at most 4 captures run at the same time")
        return
    attachment._sink = sink
    if on_cuda:
        _announce_earlier(attachment, torch)


def _fall_back(attachment, torch, operators, shapes, stacks, tensors, reason):
    if operators:
        try:
            from .fallback import DispatchOperators

            attachment._parts.append(DispatchOperators(attachment.session))
            attachment.note("warning", "operators come from a dispatch mode: only those below autograd, of this thread "
                                       f"and of the backward passes it starts, without autograd links, because {reason}")
            if shapes or stacks:
                attachment.note("no data", f"no data on inputs and call paths of operators because {reason}")
        except ImportError as missing:
            attachment.note("no data", f"no data on operators because {reason}, and {missing}")
    if tensors:
        attachment.note("no data", f"no data on tensors because {reason}")


def _attach_cuda(attachment, torch):
    try:
        if not torch.cuda.is_available():
            attachment.note("no data", "no data on CUDA tensors because this PyTorch sees no CUDA device")
            return False
        torch.cuda.init()  # there is nothing to attach to before
    except (AssertionError, RuntimeError) as failure:
        attachment.note("no data", f"no data on CUDA tensors because {failure}")
        return False
    problem = attachment.native.attach_cuda()
    if problem:
        attachment.note("no data", f"no data on CUDA tensors because {problem}")
    return not problem


def _attach_cpu(attachment):
    problem = attachment.native.attach_cpu()
    if problem:
        attachment.note("no data", f"no data on CPU tensors because {problem}")
    return not problem


def _announce_earlier(attachment, torch):
    # Blocks that live already. One that is allocated meanwhile is told twice, which replaces it.
    tensor, pool = 1, 2
    native = attachment.native
    for device in range(torch.cuda.device_count()):
        statistics = torch.cuda.memory_stats(device)
        native.set_totals(device, statistics.get("requested_bytes.all.current", 0),
                          statistics.get("reserved_bytes.all.current", 0))
    for segment in torch.cuda.memory_snapshot():
        first, second = segment.get("segment_pool_id", (0, 0))
        identity = first or second << 32
        device, stream = segment["device"], segment["stream"]
        native.announce(pool, segment["address"], segment["total_size"], device, identity, stream)
        address = segment["address"]
        for block in segment["blocks"]:
            if block["state"] == "active_allocated":
                native.announce(tensor, block.get("address", address), block.get("requested_size", block["size"]),
                                device, identity, stream)
            address += block["size"]
