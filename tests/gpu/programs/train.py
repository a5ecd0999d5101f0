"""A small training run: a transformer on token sequences, then a conv net on images.

The script knows no tool that records it. Everything is seeded and no step depends on the data's
values, so two runs with the same options launch the same kernels and copies in the same order.

    python3 train.py                        eager
    python3 train.py --nvtx                 with a range for each operator and each step
    python3 train.py --graph                each training step captured once and replayed
    python3 train.py --check-profile F      the same steps under torch.profiler; counts go to F

What is inside the --check-profile window: all of `main` after the CUDA context exists, that is
warm-up steps, capture, replays and the final reads. There is no warm-up outside of it. The
operator ranges of --nvtx use the same hooks as torch.profiler and exclude it, so the two options
refuse each other; ranges start no device work, hence the counts with and without them are equal.
"""

import argparse
import contextlib
import json
import sys
import time

import torch
from torch import nn
from torch.nn import functional

import torch_counts

VOCABULARY = 512
SEQUENCE = 32
CLASSES = 10
GRAPH_WARM_UP_STEPS = 3


class TokenModel(nn.Module):
    """Next-token model: embedding, two encoder layers, projection to the vocabulary."""

    def __init__(self, width=128, layers=2):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, width)
        self.position = nn.Parameter(torch.zeros(SEQUENCE, width))
        layer = nn.TransformerEncoderLayer(
            width, nhead=4, dim_feedforward=4 * width, dropout=0.1, batch_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(width, VOCABULARY)

    def forward(self, tokens):
        return self.head(self.encoder(self.embedding(tokens) + self.position))


class ImageModel(nn.Module):
    """Three convolutions with batch normalisation, pooling and a linear layer."""

    def __init__(self, channels=32):
        super().__init__()
        blocks = []
        inputs = 3
        for outputs in (channels, 2 * channels, 4 * channels):
            blocks += [
                nn.Conv2d(inputs, outputs, 3, stride=2, padding=1, bias=False),
                nn.BatchNorm2d(outputs),
                nn.ReLU(),
            ]
            inputs = outputs
        self.features = nn.Sequential(*blocks)
        self.head = nn.Linear(inputs, CLASSES)

    def forward(self, images):
        return self.head(self.features(images).mean(dim=(2, 3)))


class Training:
    """One model with its optimizer, its fixed device inputs and its stream of host batches."""

    def __init__(self, name, model, optimizer, batches, loss_function):
        self.name = name
        self.model = model
        self.optimizer = optimizer
        self.batches = batches
        self.loss_function = loss_function
        device = next(model.parameters()).device
        self.inputs = torch.empty_like(batches[0][0], device=device)
        self.targets = torch.empty_like(batches[0][1], device=device)

    def load(self, step):
        """Copies the batch of a step from pinned host memory into the fixed device inputs."""
        inputs, targets = self.batches[step % len(self.batches)]
        self.inputs.copy_(inputs, non_blocking=True)
        self.targets.copy_(targets, non_blocking=True)

    def update(self):
        """One forward pass, backward pass and optimizer step; returns the loss tensor."""
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.loss_function(self.model(self.inputs), self.targets)
        loss.backward()
        self.optimizer.step()
        return loss


def token_training(device):
    model = TokenModel().to(device)
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=1e-3, foreach=True, capturable=device.type == "cuda"
    )
    batches = []
    for _ in range(4):
        tokens = torch.randint(VOCABULARY, (8, SEQUENCE + 1))
        batches.append(pinned(tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous(), device))

    def loss_function(logits, targets):
        return functional.cross_entropy(logits.reshape(-1, VOCABULARY), targets.reshape(-1))

    return Training("transformer", model, optimizer, batches, loss_function)


def image_training(device):
    model = ImageModel().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2, momentum=0.9, foreach=True)
    batches = []
    for _ in range(4):
        images = torch.rand(16, 3, 32, 32)
        batches.append(pinned(images, torch.randint(CLASSES, (16,)), device))
    return Training("conv_net", model, optimizer, batches, functional.cross_entropy)


def pinned(inputs, targets, device):
    if device.type != "cuda":
        return inputs, targets
    return inputs.pin_memory(), targets.pin_memory()


def step_range(enabled, text):
    return torch.cuda.nvtx.range(text) if enabled else contextlib.nullcontext()


def train_eagerly(training, steps, nvtx):
    """Returns the loss of every step; each is read back, as training loops commonly do."""
    losses = []
    for step in range(steps):
        with step_range(nvtx, f"{training.name} step {step}"):
            training.load(step)
            losses.append(training.update().item())
    return losses


def train_by_graph(training, steps, nvtx):
    """Captures one whole step after a warm-up on a side stream and replays it `steps` times."""
    side_stream = torch.cuda.Stream()
    side_stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side_stream), step_range(nvtx, f"{training.name} warm-up"):
        for step in range(GRAPH_WARM_UP_STEPS):
            training.load(step)
            training.update()
    torch.cuda.current_stream().wait_stream(side_stream)
    graph = torch.cuda.CUDAGraph()
    with step_range(nvtx, f"{training.name} capture"), torch.cuda.graph(graph):
        loss = training.update()
    losses = []
    for step in range(steps):
        with step_range(nvtx, f"{training.name} replay {step}"):
            training.load(step)
            graph.replay()
            losses.append(loss.item())
    return losses


def parse_arguments(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=12, help="steps of each model (default 12)")
    parser.add_argument("--seed", type=int, default=20)
    parser.add_argument("--nvtx", action="store_true", help="a range for each operator and step")
    parser.add_argument("--graph", action="store_true", help="replay captured training steps")
    parser.add_argument("--check-profile", metavar="FILE", help="counts by torch.profiler")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    options = parser.parse_args(arguments)
    if options.steps < 1:
        parser.error("--steps must be at least 1")
    if options.nvtx and options.check_profile:
        parser.error("--nvtx and --check-profile exclude each other: both use PyTorch's operator hooks")
    if options.device == "cpu" and (options.nvtx or options.graph or options.check_profile):
        parser.error("--nvtx, --graph and --check-profile need --device cuda")
    return options


def main(arguments=None):
    options = parse_arguments(arguments)
    device = torch.device(options.device)
    torch.manual_seed(options.seed)
    torch.backends.cudnn.benchmark = False
    if device.type == "cuda":
        torch.cuda.synchronize()  # creates the context, starts no kernel

    losses = {}
    begin = time.perf_counter()
    ranges = torch.autograd.profiler.emit_nvtx() if options.nvtx else contextlib.nullcontext()
    with torch_counts.whole_run(options.check_profile), ranges:
        for training in (token_training(device), image_training(device)):
            run = train_by_graph if options.graph else train_eagerly
            losses[training.name] = run(training, options.steps, options.nvtx)
        if device.type == "cuda":
            torch.cuda.synchronize()
    print(
        json.dumps(
            {
                "program": "train",
                "graph": options.graph,
                "nvtx": options.nvtx,
                "steps": options.steps,
                "seconds": round(time.perf_counter() - begin, 3),
                "final_loss": {name: values[-1] for name, values in losses.items()},
            }
        )
    )
    return 0 if all(value == value for values in losses.values() for value in values) else 1


if __name__ == "__main__":
    sys.exit(main())
