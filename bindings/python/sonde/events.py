"""What a program said about itself: operators, scopes, tensors and compilations from its records, as dicts.

Begins and ends are joined by their identity, or by order on the thread where they have none. What has no end keeps
`end_ns` None; an end without a begin is counted in `unmatched`. Times are nanoseconds since 1970; order between threads
goes by the raw `stamp` of a record, because a clock's line is refined while a capture runs.
"""

from .frames import frame

_BEGINS = {"operator_begin": "operator", "scope_push": "scope", "range_start": "range"}
_ENDS = {"operator_end": "operator", "scope_pop": "scope", "range_end": "range"}
_HOST = 2**32 - 1
_KINDS = ("operators", "scopes", "marks", "metrics", "tensors", "compilations", "compiled_kernels", "notes")


class Events:
    """Lists of dicts; each list is made at its first use. `frame(kind)` gives one of them as a pandas.DataFrame."""

    def __init__(self, records, left_out=0):
        self.records = records
        self.left_out = left_out  # records that were too many to keep
        self._intervals = None
        self.unmatched = 0

    def of(self, space, *types):
        """Records of a space, of some types or all, in the order of their delivery."""
        return [r for r in self.records if r["space"] == space and (not types or r["type"] in types)]

    def frame(self, kind):
        """operators, scopes, marks, metrics, tensors, compilations, compiled_kernels or notes."""
        if kind not in _KINDS:
            raise KeyError(f"no events {kind!r}; there are: {', '.join(_KINDS)}")
        return frame(getattr(self, kind))

    @property
    def operators(self):
        """In the order of their begin on each thread, joined with what is known of them:

        index, name, domain, category, thread, begin_ns, end_ns, duration_ns; parent and depth among the operators of
        the thread; scopes, the names of those around it from the outside in; module, the innermost torch.nn module
        (for a backward operator the one of its forward operator); link, "none", "forward" or "backward", with
        sequence; forward, the index of the operator that made the node which a backward operator runs; inputs, dicts
        of argument, type and shape where they were asked for; call_path, frames from the inside out.
        """
        return self._joined()["operator"]

    @property
    def scopes(self):
        """Scopes and ranges: index, name, domain, category, thread, begin_ns, end_ns, duration_ns, parent, depth."""
        return self._joined()["scope"]

    @property
    def marks(self):
        return self.of("sonde.framework", "mark")

    @property
    def metrics(self):
        return self.of("sonde.framework", "metric")

    @property
    def notes(self):
        """severity (info, warning, error or no_data), origin and text: what a reader must know."""
        return [{key: r[key] for key in ("severity", "origin", "text")} for r in self.of("sonde.session", "note")]

    @property
    def compilations(self):
        """kind: compile, recompile, graph_break or cache_hit; with name, reason, file, line, id, attempt."""
        return self.of("sonde.framework", "compile")

    @property
    def compiled_kernels(self):
        """name, id of the compilation, operators, sources."""
        return self.of("sonde.framework", "compiled_kernel")

    @property
    def tensors(self):
        """Blocks of the framework's allocators: allocator, device (None: the host), address, bytes, pool, stream, thread, begin_ns,
        end_ns (None: still alive), operator (index of the one it was allocated in), earlier (it lived before)."""
        by_scope = {operator["scope"]: operator["index"] for operator in self.operators}
        alive, blocks = {}, []
        changes = self.of("sonde.framework", "tensor_allocate", "tensor_free")
        for record in sorted(changes, key=lambda r: (r["source"], r["stamp"])):
            key = record["source"], record["name"], record["device"], record["address"]
            if record["type"] == "tensor_free":
                block = alive.pop(key, None)
                if block is None:
                    self.unmatched += 1
                else:
                    block["end_ns"] = record["time_ns"]
                continue
            block = {"allocator": record["name"], "begin_ns": record["time_ns"], "end_ns": None}
            block.update((key, record[key]) for key in ("device", "address", "bytes", "pool", "stream", "thread"))
            if block["device"] == _HOST:
                block["device"] = None
            block["operator"] = by_scope.get(record["scope"])
            block["earlier"] = "earlier" in (record["flags"] or ())
            alive[key] = block
            blocks.append(block)
        return blocks

    def _joined(self):
        if self._intervals is None:
            self._intervals = {"operator": [], "scope": []}
            paths = {r["path"]: r["frames"] for r in self.of("sonde.object", "call_path")}
            threads = {}
            for record in self.records:
                if record["space"] == "sonde.framework" and (record["type"] in _BEGINS or record["type"] in _ENDS):
                    threads.setdefault((record["source"], record["thread"]), []).append(record)
            open_ranges = {}
            for records in threads.values():
                self._join_thread(records, paths, open_ranges)
            self._join_links()
        return self._intervals

    def _join_thread(self, records, paths, open_ranges):
        stack = []
        for record in records:
            if record["type"] in _ENDS:
                self._close(record, stack, open_ranges)
                continue
            family = _BEGINS[record["type"]]
            into = self._intervals["operator" if family == "operator" else "scope"]
            entry = {
                "index": len(into), "name": record["name"], "domain": record["domain"],
                "category": record["category"], "scope": record["scope"], "thread": record["thread"],
                "stamp": record["stamp"],
                "begin_ns": record["time_ns"], "end_ns": None, "duration_ns": None,
            }
            same = [other for kind, other in stack if kind == family]
            entry["parent"] = same[-1]["index"] if same else None
            entry["depth"] = len(same)
            if family == "operator":
                around = [other for kind, other in stack if kind == "scope"]
                entry["scopes"] = [other["name"] for other in around]
                modules = [other["name"] for other in around if other["domain"] == "torch.nn"]
                entry["module"] = modules[-1] if modules else None
                entry["link"] = record["link"] or "none"
                entry["sequence"] = record["sequence"] if entry["link"] != "none" else None
                entry["forward_thread"] = record["forward_thread"]
                entry["forward"] = None
                entry["inputs"] = _inputs(record)
                entry["call_path"] = paths.get(record["call_path"] or 0)
                entry["source"] = record["source"]
            into.append(entry)
            if family == "range":
                open_ranges[record["source"], record["scope"]] = entry
            else:
                stack.append((family, entry))

    def _close(self, record, stack, open_ranges):
        family = _ENDS[record["type"]]
        if family == "range":
            entry = open_ranges.pop((record["source"], record["scope"]), None)
        else:
            # By identity, else the innermost open one of the family.
            at = next((i for i in range(len(stack) - 1, -1, -1) if stack[i][0] == family and
                       (not record["scope"] or stack[i][1]["scope"] == record["scope"])), None)
            entry = stack.pop(at)[1] if at is not None else None
        if entry is None:
            self.unmatched += 1
            return
        entry["end_ns"] = record["time_ns"]
        entry["duration_ns"] = record["time_ns"] - entry["begin_ns"]

    def _join_links(self):
        # Of the forward operators with the number, the one that began last before the backward one made the node.
        operators = self._intervals["operator"]
        makers = {}
        for operator in operators:
            if operator["link"] == "forward":
                makers.setdefault((operator["source"], operator["thread"], operator["sequence"]), []).append(operator)
        for operator in operators:
            if operator["link"] != "backward":
                continue
            found = makers.get((operator["source"], operator["forward_thread"], operator["sequence"]), ())
            earlier = [other for other in found if other["stamp"] <= operator["stamp"]]
            if earlier:
                forward = max(earlier, key=lambda other: other["stamp"])
                operator["forward"] = forward["index"]
                operator["module"] = operator["module"] or forward["module"]
        for operator in operators:
            if operator["module"] is None and operator["parent"] is not None:
                operator["module"] = operators[operator["parent"]]["module"]


def _inputs(record):
    """None where inputs were not asked for."""
    if not record["input_arguments"]:
        return None
    inputs, at = [], 0
    dimensions = record["input_shapes"]
    for argument, kind, rank in zip(record["input_arguments"], record["input_types"], record["input_ranks"]):
        shape = None
        if rank >= 0:
            shape = dimensions[at:at + rank]
            at += rank
        inputs.append({"argument": argument, "type": kind, "shape": shape})
    return inputs
