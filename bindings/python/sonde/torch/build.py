"""Builds the native part against the installed PyTorch, once, and loads it.

It is kept in $SONDE_CACHE, or $XDG_CACHE_HOME/sonde, or ~/.cache/sonde, under a name made of everything it depends on:
its sources, Sonde's headers, PyTorch's version and place, and what its headers offer. $CXX names another compiler.
$SONDE_TORCH_BUILD=0 forbids building; what is in the cache is still used.
"""

import ctypes
import hashlib
import os
import pathlib
import shutil
import subprocess
import tempfile
import threading

_FOLDER = pathlib.Path(__file__).absolute().parent
_SOURCES = ("sinks.cpp", "operators.cpp", "stacks.cpp", "allocators.cpp")
_HEADERS = ("native.h",)
_lock = threading.Lock()
_loaded = None
_failure = None


class Unavailable(Exception):
    """Why there is no native part."""


class Native:
    """The functions of the native part, see native/sinks.cpp and native/allocators.cpp."""

    def __init__(self, path, cuda_problem=""):
        self.path = path
        self._cuda_problem = cuda_problem  # why it was built without CUDA, where that was tried
        library = ctypes.CDLL(str(path))
        u64, i64, u32, i32 = ctypes.c_uint64, ctypes.c_int64, ctypes.c_uint32, ctypes.c_int32
        self.start = library.sonde_torch_start
        self.start.argtypes, self.start.restype = [ctypes.c_void_p, ctypes.c_void_p, u32], i32
        self.stop = library.sonde_torch_stop
        self.stop.argtypes, self.stop.restype = [i32, ctypes.c_void_p], None
        self.set_totals = library.sonde_torch_set_totals
        self.set_totals.argtypes, self.set_totals.restype = [u32, i64, i64], None
        self.announce = library.sonde_torch_announce
        self.announce.argtypes, self.announce.restype = [u32, u64, u64, u32, u64, u64], None
        self._attach = {}
        for kind in ("cuda", "cpu"):
            function = self._attach[kind] = getattr(library, f"sonde_torch_attach_{kind}")
            function.argtypes, function.restype = [ctypes.c_char_p, u64], i32

    def _attached(self, kind):
        # "" when it is attached, otherwise why not.
        text = ctypes.create_string_buffer(1024)
        if self._attach[kind](text, len(text)) == 1:
            return ""
        return text.value.decode("utf-8", "replace").strip().splitlines()[0]

    def attach_cuda(self):
        return self._cuda_problem or self._attached("cuda")

    def attach_cpu(self):
        return self._attached("cpu")


def load():
    """The native part, built where needed. Unavailable says why there is none; it is not tried again then."""
    global _loaded, _failure
    with _lock:
        if _failure is not None:
            raise Unavailable(_failure)
        if _loaded is None:
            try:
                _loaded = Native(*_library())
            except (Unavailable, OSError, AttributeError) as failure:
                _failure = str(failure)
                raise Unavailable(_failure) from failure
        return _loaded


def _library():
    """Its path, and why it cannot watch CUDA's allocator ("": it can, or there is no CUDA)."""
    plan = _Plan()
    try:
        return plan.made(), ""
    except Unavailable as failure:
        if not plan.cuda:
            raise
        # Operators need nothing of CUDA.
        return _Plan(with_cuda=False).made(), str(failure)


def _cache():
    folder = os.environ.get("SONDE_CACHE")
    if not folder:
        folder = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "sonde")
    folder = pathlib.Path(folder) / "torch"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if os.access(folder, os.W_OK):
            return folder
    except OSError:
        pass
    return pathlib.Path(tempfile.mkdtemp(prefix="sonde-torch-"))  # for this process alone


class _Plan:
    """What to build from what."""

    def __init__(self, with_cuda=True):
        import torch

        self.root = pathlib.Path(torch.__file__).resolve().parent
        self.include = self.root / "include"
        self.libraries = self.root / "lib"
        record_function = self.include / "ATen" / "record_function.h"
        if not record_function.exists():
            raise Unavailable(f"PyTorch {torch.__version__} came without its C++ headers")
        self.headers = _FOLDER.parent / "include"
        if not (self.headers / "sonde" / "sonde.h").exists():
            raise Unavailable(f"Sonde's headers are not in {self.headers}")
        self.torch = torch
        self.defines = self._defines(with_cuda)

    def made(self):
        """The path of the library, which is built where it is not there yet."""
        path = self.path()
        if not path.exists():
            if os.environ.get("SONDE_TORCH_BUILD") == "0":
                raise Unavailable("SONDE_TORCH_BUILD=0 forbids building the native part")
            self.build(path)
        return path

    def _defines(self, with_cuda):
        defines = ["NDEBUG", f"_GLIBCXX_USE_CXX11_ABI={int(self.torch._C._GLIBCXX_USE_CXX11_ABI)}"]
        allocator = self._text("c10/core/Allocator.h")
        if "allocate(size_t n) const" in allocator:
            defines.append("SONDE_TORCH_CONST_ALLOCATE")
        if "virtual void copy_data(" in allocator:
            defines.append("SONDE_TORCH_COPY_DATA")
        self.cuda = None
        tracker = self._text("c10/cuda/CUDACachingAllocator.h")
        if with_cuda and self.torch.version.cuda and "attachAllocatorTraceTracker" in tracker:
            self.cuda = self._cuda_headers()
        if self.cuda:
            defines.append("SONDE_TORCH_CUDA")
            if "mempool_" in tracker + self._text("c10/core/CachingDeviceAllocator.h"):
                defines.append("SONDE_TORCH_MEMPOOL")
        return defines

    def _text(self, name):
        path = self.include / name
        return path.read_text(errors="replace") if path.exists() else ""

    def _cuda_headers(self):
        # A toolkit, or the headers that come with PyTorch's own CUDA packages beside it.
        roots = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"]
        places = [pathlib.Path(root) / "include" for root in roots if root]
        places += sorted(self.root.parent.glob("nvidia/*/include"))
        for place in places:
            if (place / "cuda_runtime_api.h").exists():
                return place
        return None

    def compiler(self):
        for name in (os.environ.get("CXX"), "c++", "g++", "clang++"):
            if name and shutil.which(name):
                return name
        raise Unavailable("there is no C++ compiler (c++, g++, clang++ or $CXX)")

    def path(self):
        digest = hashlib.sha256()
        for name in (*_SOURCES, *_HEADERS):
            digest.update((_FOLDER / "native" / name).read_bytes())
        for header in sorted((self.headers / "sonde").rglob("*.h")):
            digest.update(header.read_bytes())
        version = self.torch.__version__
        for part in (version, str(self.torch.version.git_version), str(self.torch.version.cuda), str(self.root),
                     str(self.cuda), *self.defines):
            digest.update(part.encode() + b"\0")
        name = "".join(letter if letter.isalnum() or letter in ".+" else "_" for letter in version)
        return _cache() / f"native-{name}-{digest.hexdigest()[:16]}.so"

    def build(self, path):
        compiler = self.compiler()
        failures = []
        # PyTorch moved from C++17 to C++20; each refuses or warns about the other at some version.
        newer = tuple(int(part) for part in self.torch.__version__.split(".")[:2]) >= (2, 8)
        for standard in ("c++20", "c++17") if newer else ("c++17", "c++20"):
            with tempfile.TemporaryDirectory(prefix="sonde-torch-") as folder:
                problem = self._compile(compiler, standard, pathlib.Path(folder), path)
            if problem is None:
                return
            failures.append(problem)
        raise Unavailable(f"the native part did not compile with {compiler}: {failures[0]}")

    def _compile(self, compiler, standard, folder, path):
        flags = [f"-std={standard}", "-O2", "-fPIC", "-fvisibility=hidden", "-w", "-I", str(self.headers),
                 "-isystem", str(self.include), *(f"-D{define}" for define in self.defines)]
        if self.cuda:
            flags += ["-isystem", str(self.cuda)]
        jobs = []
        for name in _SOURCES:
            target = folder / (name + ".o")
            command = [compiler, *flags, "-c", str(_FOLDER / "native" / name), "-o", str(target)]
            # Errors go to files: a full pipe would stop a compiler while another is waited for.
            with open(folder / (name + ".txt"), "wb") as errors:
                jobs.append((target, errors.name, subprocess.Popen(command, stdout=errors, stderr=errors)))
        codes = [job.wait() for _, _, job in jobs]
        for code, (_, errors, _) in zip(codes, jobs):
            if code != 0:
                return _first_error(pathlib.Path(errors).read_text(errors="replace"))
        library = folder / "native.so"
        link = [compiler, "-shared", "-o", str(library), *(str(target) for target, _, _ in jobs),
                f"-L{self.libraries}", "-ltorch_cpu", "-lc10", *(["-lc10_cuda"] if self.cuda else []),
                f"-Wl,-rpath,{self.libraries}", "-ldl", "-lpthread"]
        done = subprocess.run(link, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        if done.returncode != 0:
            return _first_error(done.stderr.decode("utf-8", "replace"))
        # Another process may build the same: the last one wins, both are alike.
        temporary = path.with_name(f".{path.name}.{os.getpid()}")
        shutil.copy(library, temporary)
        os.replace(temporary, path)
        return None


def _first_error(text):
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return next((line for line in lines if "error" in line.lower()), lines[0] if lines else "no message")[:500]
