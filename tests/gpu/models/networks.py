"""The networks of PASTA's Table V that are plain enough to define anew, with random weights. Any PyTorch from 1.13 on.

    build(name, **sizes) -> (module, make_batch(batch, device) -> (inputs, targets), loss(outputs, targets))

    python3 networks.py        checks parameter counts against the published ones, and a tiny step of each on the CPU
"""

import sys

import torch
from torch import nn
from torch.nn import functional

NAMES = ("alexnet", "resnet18", "resnet34", "bert", "gpt2")
# Batch sizes of the paper's artifact.
BATCHES = {"alexnet": 128, "resnet18": 32, "resnet34": 32, "bert": 16, "gpt2": 8}
# Krizhevsky's one-column AlexNet and He et al.'s ResNets for 1,000 classes, Devlin et al.'s BERT-base (uncased
# vocabulary, with pooler), Radford et al.'s GPT-2 (output tied to the embedding).
PARAMETERS = {"alexnet": 61_100_840, "resnet18": 11_689_512, "resnet34": 21_797_672, "bert": 109_482_240,
              "gpt2": 124_439_808}


class AlexNet(nn.Module):
    def __init__(self, classes=1000):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 64, 11, stride=4, padding=2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2),
            nn.Conv2d(64, 192, 5, padding=2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2),
            nn.Conv2d(192, 384, 3, padding=1), nn.ReLU(inplace=True),
            nn.Conv2d(384, 256, 3, padding=1), nn.ReLU(inplace=True),
            nn.Conv2d(256, 256, 3, padding=1), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2))
        self.pool = nn.AdaptiveAvgPool2d(6)
        self.classifier = nn.Sequential(
            nn.Dropout(), nn.Linear(256 * 36, 4096), nn.ReLU(inplace=True),
            nn.Dropout(), nn.Linear(4096, 4096), nn.ReLU(inplace=True), nn.Linear(4096, classes))

    def forward(self, images):
        return self.classifier(self.pool(self.features(images)).flatten(1))


class BasicBlock(nn.Module):
    """Two convolutions of 3 x 3 beside a short cut."""

    def __init__(self, inside, outside, stride):
        super().__init__()
        self.first = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
        self.first_norm = nn.BatchNorm2d(outside)
        self.second = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
        self.second_norm = nn.BatchNorm2d(outside)
        self.shortcut = None
        if stride != 1 or inside != outside:
            self.shortcut = nn.Sequential(nn.Conv2d(inside, outside, 1, stride, bias=False), nn.BatchNorm2d(outside))

    def forward(self, x):
        beside = x if self.shortcut is None else self.shortcut(x)
        x = functional.relu(self.first_norm(self.first(x)), inplace=True)
        return functional.relu(self.second_norm(self.second(x)) + beside, inplace=True)


class ResNet(nn.Module):
    def __init__(self, blocks, classes=1000):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True),
                                  nn.MaxPool2d(3, 2, 1))
        layers, inside = [], 64
        for stage, count in enumerate(blocks):
            outside = 64 << stage
            for i in range(count):
                layers.append(BasicBlock(inside, outside, 2 if stage > 0 and i == 0 else 1))
                inside = outside
        self.layers = nn.Sequential(*layers)
        self.classifier = nn.Linear(inside, classes)

    def forward(self, images):
        return self.classifier(self.layers(self.stem(images)).mean((2, 3)))


class Attention(nn.Module):
    def __init__(self, width, heads, causal):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.inward = nn.Linear(width, 3 * width)
        self.outward = nn.Linear(width, width)

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.inward(x).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        query, key, value = parts[0], parts[1], parts[2]
        scores = query @ key.transpose(-1, -2) * (width // self.heads) ** -0.5
        if self.causal:
            later = torch.ones(length, length, dtype=torch.bool, device=x.device).triu(1)
            scores = scores.masked_fill(later, float("-inf"))
        mixed = scores.softmax(-1) @ value
        return self.outward(mixed.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    """A transformer's layer; BERT normalises after each part, GPT-2 before."""

    def __init__(self, width, heads, causal):
        super().__init__()
        self.causal = causal
        self.attention = Attention(width, heads, causal)
        self.attention_norm = nn.LayerNorm(width)
        self.wide = nn.Linear(width, 4 * width)
        self.narrow = nn.Linear(4 * width, width)
        self.wide_norm = nn.LayerNorm(width)
        self.drop = nn.Dropout(0.1)

    def forward(self, x):
        if self.causal:
            x = x + self.drop(self.attention(self.attention_norm(x)))
            return x + self.drop(self.narrow(functional.gelu(self.wide(self.wide_norm(x)))))
        x = self.attention_norm(x + self.drop(self.attention(x)))
        return self.wide_norm(x + self.drop(self.narrow(functional.gelu(self.wide(x)))))


class Bert(nn.Module):
    """The encoder with its pooler; what it answers is two classes of the first token."""

    def __init__(self, vocabulary=30522, width=768, layers=12, heads=12, positions=512):
        super().__init__()
        self.words = nn.Embedding(vocabulary, width)
        self.places = nn.Embedding(positions, width)
        self.segments = nn.Embedding(2, width)
        self.norm = nn.LayerNorm(width)
        self.blocks = nn.Sequential(*[Block(width, heads, False) for _ in range(layers)])
        self.pooler = nn.Linear(width, width)

    def forward(self, tokens):
        places = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.words(tokens) + self.places(places) + self.segments(torch.zeros_like(tokens))
        return torch.tanh(self.pooler(self.blocks(self.norm(x))[:, 0]))


class Gpt(nn.Module):
    def __init__(self, vocabulary=50257, width=768, layers=12, heads=12, positions=1024):
        super().__init__()
        self.words = nn.Embedding(vocabulary, width)
        self.places = nn.Embedding(positions, width)
        self.blocks = nn.Sequential(*[Block(width, heads, True) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)

    def forward(self, tokens):
        x = self.words(tokens) + self.places(torch.arange(tokens.shape[1], device=tokens.device))
        return self.norm(self.blocks(x)) @ self.words.weight.t()


def _images(side, classes):
    def make(batch, device):
        return (torch.randn(batch, 3, side, side, device=device), torch.randint(classes, (batch,), device=device))
    return make


def token_loss(outputs, targets):
    return functional.cross_entropy(outputs.reshape(-1, outputs.shape[-1]), targets.reshape(-1))


def build(name, tiny=False, length=None):
    """`tiny`: the same structure in sizes for a CPU. `length`: tokens of a text, default 128 (bert) and 512 (gpt2)."""
    if name == "alexnet":
        return AlexNet(10 if tiny else 1000), _images(64 if tiny else 224, 10), functional.cross_entropy
    if name in ("resnet18", "resnet34"):
        blocks = (2, 2, 2, 2) if name == "resnet18" else (3, 4, 6, 3)
        return ResNet(blocks, 10 if tiny else 1000), _images(32 if tiny else 224, 10), functional.cross_entropy
    sizes = {"vocabulary": 100, "width": 48, "layers": 2, "heads": 4, "positions": 64} if tiny else {}
    length = length or (16 if tiny else 128 if name == "bert" else 512)
    if name == "bert":
        vocabulary = sizes.get("vocabulary", 30522)

        def texts(batch, device):
            tokens = torch.randint(vocabulary, (batch, length), device=device)
            return tokens, torch.randint(2, (batch,), device=device)
        return Bert(**sizes), texts, functional.cross_entropy
    if name == "gpt2":
        vocabulary = sizes.get("vocabulary", 50257)

        def continued(batch, device):
            tokens = torch.randint(vocabulary, (batch, length + 1), device=device)
            return tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()
        return Gpt(**sizes), continued, token_loss
    raise ValueError(f"no network {name!r}; there are {', '.join(NAMES)}")


def self_test():
    for name in NAMES:
        model, _, _ = build(name)
        count = sum(parameter.numel() for parameter in model.parameters())
        if count != PARAMETERS[name]:
            raise SystemExit(f"{name}: {count} parameters, {PARAMETERS[name]} are published")
        torch.manual_seed(1)
        model, make_batch, loss_of = build(name, tiny=True)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        inputs, targets = make_batch(2, "cpu")
        model.eval()
        with torch.no_grad():
            before = loss_of(model(inputs), targets).item()
        for _ in range(6):
            optimizer.zero_grad()
            loss_of(model(inputs), targets).backward()
            optimizer.step()
        with torch.no_grad():
            after = loss_of(model(inputs), targets).item()
        if not after < before:
            raise SystemExit(f"{name}: six steps took the loss from {before} to {after}")
        print(f"{name}: {count} parameters; six tiny steps: {before:.4f} -> {after:.4f}")


if __name__ == "__main__":
    self_test()
    sys.exit(0)
