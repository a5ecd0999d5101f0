import sonde
import torch

model = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

with sonde.capture(torch={"shapes": True}) as captured:
    for _ in range(3):
        with sonde.scope("step"):
            loss = model(torch.randn(16, 64)).square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            sonde.metric("loss", loss.item())

operators = captured.operators
for operator in operators:
    if operator["name"] == "AddmmBackward0":
        forward = operators[operator["forward"]]
        shapes = [entry["shape"] for entry in forward["inputs"][:3]]
        print(operator["name"], "runs for", forward["name"], shapes, "of module", forward["module"])
print([metric["value"] for metric in captured.metrics], "losses")
print(sum(block["bytes"] for block in captured.tensors), "bytes in", len(captured.tensors), "blocks")
