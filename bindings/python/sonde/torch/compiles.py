"""Compilations of torch.compile, from the trace that PyTorch writes for tools (the log "torch.__trace").

Each event there has a dict of metadata, and for some a text. Listening costs nothing while nothing is compiled.
"""

import json
import logging
import re
import threading

from .. import _sonde

_COMPILE, _RECOMPILE, _GRAPH_BREAK = 0, 1, 2
_LOG = "torch.__trace"


def attach_compiles(attachment, torch):
    """Adds the listener to the attachment, or the reason why there is none."""
    if not hasattr(torch, "_dynamo") and not _has_dynamo():
        attachment.note("no data", "no data on compilations because this PyTorch has no torch._dynamo")
        return
    if not hasattr(getattr(torch, "_logging", None), "trace_structured"):
        attachment.note("no data", f"no data on compilations because PyTorch {torch.__version__} writes no trace of them")
        return
    attachment._parts.append(CompileListener(attachment.session))


def _has_dynamo():
    import importlib.util

    return importlib.util.find_spec("torch._dynamo") is not None


class CompileListener(logging.Handler):
    """Emits compilations into one session until `stop`."""

    def __init__(self, session):
        super().__init__(logging.DEBUG)
        self._session = session
        self._guards = {}  # (frame, compile) -> reasons of a recompilation that is under way
        self._graphs = {}  # (frame, compile) -> {node: source} of the graph that a kernel was generated from
        self._traces = {}  # (frame, compile) -> {node: source} of the graph that was traced from the program
        self._stacks = {}  # (frame, compile) -> {kernel: [source]}
        self._lock = threading.Lock()
        log = logging.getLogger(_LOG)
        self._level = log.level
        if not log.isEnabledFor(logging.DEBUG):
            log.setLevel(logging.DEBUG)
        log.addHandler(self)

    def stop(self):
        log = logging.getLogger(_LOG)
        log.removeHandler(self)
        if not log.handlers:
            log.setLevel(self._level)
        for reasons in self._guards.values():
            self._compile(_RECOMPILE, "", reasons, "", 0, "", 0)
        self._guards.clear()

    def emit(self, record):
        # It must never fail: it runs inside the compiler.
        try:
            metadata = getattr(record, "metadata", None)
            if isinstance(metadata, dict):
                self._event(metadata, getattr(record, "payload", None))
        except Exception as failure:  # the trace is not an interface that PyTorch keeps stable
            try:
                _sonde.note(self._session, 1, "torch", f"a compile event could not be read: {failure!r}")
            except _sonde.Error:
                pass

    def _event(self, metadata, payload):
        key = metadata.get("frame_id"), metadata.get("frame_compile_id")
        artifact = metadata.get("artifact")
        name = artifact.get("name") if isinstance(artifact, dict) else None
        if name == "dynamo_graph_break_reason":
            self._graph_break(metadata, payload or "")
        elif name == "recompile_reasons":
            with self._lock:
                self._guards[key] = _texts(payload)
        elif name == "inductor_provenance_tracking_kernel_stack_traces":
            with self._lock:
                self._stacks[key] = _stack_sources(payload)
        elif name == "inductor_post_grad_graph" or "inductor_post_grad_graph" in metadata:
            with self._lock:
                self._graphs[key] = graph_sources(payload or "")
        elif "dynamo_output_graph" in metadata:
            with self._lock:
                self._traces[key] = graph_sources(payload or "")
        elif isinstance(metadata.get("compilation_metrics"), dict):
            self._compiled(metadata["compilation_metrics"], key, metadata)
        elif isinstance(metadata.get("bwd_compilation_metrics"), dict):
            self._compiled({**metadata["bwd_compilation_metrics"], "co_name": "backward"}, key, metadata)
        elif "inductor_output_code" in metadata:
            self._output_code(key, payload or "")

    def _compile(self, kind, name, reasons, file, line, identity, attempt, begin=0, end=0):
        stamp = _sonde.stamp()
        _sonde.emit_compile(self._session, kind, name, "\n".join(reasons), file, line, identity, attempt,
                            begin or stamp, end or stamp)

    def _graph_break(self, metadata, text):
        place = re.search(r"Graph break in user code at (.+):(\d+)", text)
        reason = re.search(r"Graph Break Reason: (.*?)(?:\n\s*\n|\Z)", text, re.DOTALL)
        function = re.findall(r'File "[^"]+", line \d+, in (\S+)', text.split("Traceback (most recent")[0])
        self._compile(_GRAPH_BREAK, function[-1] if function else "", [(reason.group(1) if reason else text).strip()],
                      place.group(1) if place else "", int(place.group(2)) if place else 0, _identity(metadata),
                      metadata.get("attempt") or 0)

    def _compiled(self, metrics, key, metadata):
        with self._lock:
            reasons = self._guards.pop(key, None) or []
        if not reasons and metrics.get("recompile_reason"):
            reasons = [str(metrics["recompile_reason"])]
        failure = metrics.get("fail_reason")
        kind = _RECOMPILE if reasons else _COMPILE
        if failure and not reasons:
            reasons = [f"failed: {failure}"]
        # The framework's times are of the wall clock; how long it took is all that is needed of them.
        end = _sonde.stamp()
        begin = _sonde.stamp_before(self._session, end, int(metrics.get("duration_us") or 0) * 1000)
        self._compile(kind, str(metrics.get("co_name") or ""), reasons, str(metrics.get("co_filename") or ""),
                      int(metrics.get("co_firstlineno") or 0), str(metrics.get("compile_id") or _identity(metadata)),
                      metadata.get("attempt") or 0, begin, end)

    def _output_code(self, key, code):
        with self._lock:
            # The graph comes before its code, a backward one replaces it. None comes for code from a cache.
            graph = self._graphs.pop(key, {})
            trace = self._traces.get(key, {})
            stacks = self._stacks.get(key, {})
        for kernel in output_kernels(code):
            sources = [graph.get(node) for node in kernel["nodes"]] if graph else []
            if not any(sources):
                sources = [trace.get(node) for node in kernel["trace_nodes"]]
            sources += stacks.get(kernel["name"], ())
            _sonde.emit_compiled_kernel(self._session, kernel["name"], _identity_of(key), kernel["operators"],
                                        list(dict.fromkeys(source for source in sources if source)))


def _identity_of(key):
    return f"{key[0]}/{key[1]}" if key[0] is not None else ""


def _identity(metadata):
    return _identity_of((metadata.get("frame_id"), metadata.get("frame_compile_id")))


def _texts(payload):
    try:
        value = json.loads(payload)
    except (TypeError, ValueError):
        value = payload
    if isinstance(value, list):
        return [str(item) for item in value]
    return [str(value)] if value else []


def _stack_sources(payload):
    """{kernel: ["file:line: code"]} from {kernel with a counter: [formatted traceback]}."""
    found = {}
    for kernel, traces in (json.loads(payload) if isinstance(payload, str) else payload or {}).items():
        lines = found.setdefault(kernel.rsplit(":", 1)[0], [])
        for trace in traces if isinstance(traces, list) else [traces]:
            places = re.findall(r'File "([^"]+)", line (\d+)[^\n]*\n\s*([^\n]*)', str(trace))
            if places:
                file, line, code = places[-1]
                lines.append(f"{file}:{line}: {code.strip()}")
    return found


def graph_sources(text):
    """{node: "file:line: code"} of a graph as PyTorch prints it: a comment with the source line stands above the nodes
    that come from it."""
    nodes, source = {}, None
    for line in text.splitlines():
        place = re.match(r"\s*#\s*File: (.+?):(\d+) in .*?, code: (.*)$", line)
        if place:
            source = f"{place.group(1)}:{place.group(2)}: {place.group(3).strip()}"
        elif re.match(r"\s*#\s*No stacktrace", line):
            source = None
        else:
            node = re.match(r'\s*(\w+)(?:\s*:\s*"[^"]*")?\s*=\s*\S', line)
            if node and source:
                nodes[node.group(1)] = source
    return nodes


def output_kernels(code):
    """The kernels of the code that Inductor generated, as dicts of name, operators in the order of the graph, nodes of
    the graph, and trace_nodes of the graph as it was traced. The comments above a kernel name what was fused into it."""
    kernels = {}
    comment = []
    for line in code.splitlines():
        text = line.strip()
        if text.startswith("#"):
            comment.append(text)
            continue
        made = re.match(r"(\w+)\s*=\s*async_compile\.\w+\(", text)
        called = re.match(r"(?:\w+\s*=\s*)?(extern_kernels\.\w+)\(", text)
        if made or (called and comment):
            name = (made or called).group(1)
            kernel = kernels.setdefault(name, {"name": name, "operators": [], "nodes": [], "trace_nodes": []})
            text = "\n".join(comment)
            found = {
                "operators": _list(r"Original ATen: \[([^\]]*)\]", text),
                "nodes": re.findall(r"^#\s+%(\w+)[^\n]*= call_function\[", text, re.MULTILINE),
                "trace_nodes": _list(r"Source Nodes: \[([^\]]*)\]", text),
            }
            for key, values in found.items():
                kernel[key].extend(value for value in values if value not in kernel[key])
        comment = []
    return list(kernels.values())


def _list(pattern, text):
    found = re.search(pattern, text)
    return [item.strip() for item in found.group(1).split(",") if item.strip()] if found else []
