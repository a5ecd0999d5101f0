"""The measured loops. Each is made for a device and a way to open scopes, and runs one iteration a call.

`launches` is the number of kernels of an iteration where it is known by construction, else None.
"""

import threading

import torch
from torch import nn


class TinyAdds:
    """One addition of a few numbers: the launch is all there is to it."""

    iterations, warm_up, launches = 100000, 2000, 1

    def __init__(self, device, scopes):
        del scopes
        self.values = torch.zeros(256, device=device)
        self.one = torch.ones(256, device=device)

    def run(self, iterations):
        add, values, one = torch.add, self.values, self.one
        for _ in range(iterations):
            add(values, one, out=values)


class TinyTriton:
    """A Triton kernel over a few numbers, launched through Triton's own launcher."""

    iterations, warm_up, launches = 15000, 200, 1

    def __init__(self, device, scopes):
        del scopes
        import triton_kernel

        self.launch = triton_kernel.launch
        self.values = torch.zeros(256, device=device)

    def run(self, iterations):
        launch, values = self.launch, self.values
        for _ in range(iterations):
            launch(values)


class LongKernels:
    """Multiplications of about a millisecond: the program waits for the device."""

    iterations, warm_up, launches = 150, 10, None

    def __init__(self, device, scopes):
        del scopes
        size = 4096 if device.type == "cuda" else 64
        self.left = torch.randn(size, size, device=device)
        self.right = torch.randn(size, size, device=device)
        self.out = torch.empty_like(self.left)

    def run(self, iterations):
        for _ in range(iterations):
            torch.mm(self.left, self.right, out=self.out)


class GraphReplays:
    """Replays of a graph of 100 tiny additions."""

    iterations, warm_up, launches = 1000, 20, 100

    def __init__(self, device, scopes):
        del scopes
        values = torch.zeros(256, device=device)
        one = torch.ones(256, device=device)
        if device.type != "cuda":
            self.replay = lambda: [torch.add(values, one, out=values) for _ in range(self.launches)]
            return
        self.graph = torch.cuda.CUDAGraph()
        torch.add(values, one, out=values)
        torch.cuda.synchronize()
        with torch.cuda.graph(self.graph):
            for _ in range(self.launches):
                torch.add(values, one, out=values)
        self.replay = self.graph.replay
        self.kept = (values, one)

    def run(self, iterations):
        for _ in range(iterations):
            self.replay()


class FourThreads:
    """Tiny additions from four threads, each on a stream of its own."""

    iterations, warm_up, launches = 10000, 200, 4

    def __init__(self, device, scopes):
        del scopes
        self.device = device
        self.streams = [torch.cuda.Stream() if device.type == "cuda" else None for _ in range(4)]
        self.values = [torch.zeros(256, device=device) for _ in range(4)]
        self.one = torch.ones(256, device=device)

    def loop(self, index, iterations):
        values, one = self.values[index], self.one
        if self.streams[index] is not None:
            torch.cuda.set_stream(self.streams[index])
        for _ in range(iterations):
            torch.add(values, one, out=values)

    def run(self, iterations):
        threads = [threading.Thread(target=self.loop, args=(i, iterations)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


class DeepScopes:
    """A tiny addition inside eight nested scopes of the tool's own kind."""

    iterations, warm_up, launches = 8000, 200, 1
    DEPTH = 8

    def __init__(self, device, scopes):
        self.push, self.pop = scopes
        self.values = torch.zeros(256, device=device)
        self.one = torch.ones(256, device=device)
        self.names = [f"level {i}" for i in range(self.DEPTH)]

    def run(self, iterations):
        push, pop, names, values, one = self.push, self.pop, self.names, self.values, self.one
        for _ in range(iterations):
            opened = [push(name) for name in names]
            torch.add(values, one, out=values)
            while opened:
                pop(opened.pop())


class TrainingStep:
    """Forward, backward and update of an encoder whose kernels are shorter than their launches."""

    iterations, warm_up, launches = 25, 6, None

    def __init__(self, device, scopes, layers=8, width=256, batch=8, length=64):
        del scopes
        torch.manual_seed(20)
        layer = nn.TransformerEncoderLayer(width, 8, 4 * width, dropout=0.0, batch_first=True)
        self.model = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False).to(device)
        self.inputs = torch.randn(batch, length, width, device=device)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-3, foreach=True)

    def run(self, iterations):
        for _ in range(iterations):
            self.optimizer.zero_grad(set_to_none=True)
            self.model(self.inputs).square().mean().backward()
            self.optimizer.step()


WORKLOADS = {
    "adds": TinyAdds,
    "triton": TinyTriton,
    "long": LongKernels,
    "graph": GraphReplays,
    "threads": FourThreads,
    "scopes": DeepScopes,
    "training": TrainingStep,
}
