"""A convolutional classifier of small pictures: bars, crosses, boxes and discs."""

from __future__ import annotations

from typing import Any

SIZE = 16


def picture(torch: Any, kind: int) -> Any:
    """One picture [1, SIZE, SIZE] of the kind, somewhere, with noise."""
    row, column = (int(v) for v in torch.randint(5, SIZE - 5, (2,)))
    image = torch.zeros(SIZE, SIZE)
    if kind == 0:
        image[row, :] = 1.0
    elif kind == 1:
        image[row, :] = 1.0
        image[:, column] = 1.0
    elif kind == 2:
        image[row - 4 : row + 5, column - 4 : column + 5] = 1.0
        image[row - 3 : row + 4, column - 3 : column + 4] = 0.0
    else:
        y = torch.arange(SIZE).reshape(-1, 1) - row
        x = torch.arange(SIZE).reshape(1, -1) - column
        image[(y * y + x * x) <= 16] = 1.0
    return (image + torch.rand(SIZE, SIZE) * 0.5).unsqueeze(0)


def train(torch: Any, steps: int = 50) -> list[float]:
    nn, F = torch.nn, torch.nn.functional

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv1 = nn.Conv2d(1, 8, kernel_size=3, padding=1)
            self.bn1 = nn.BatchNorm2d(8)
            self.conv2 = nn.Conv2d(8, 16, kernel_size=3, padding=1)
            self.bn2 = nn.BatchNorm2d(16)
            self.dropout = nn.Dropout(0.25)
            self.fc1 = nn.Linear(16 * (SIZE // 4) ** 2, 32)
            self.fc2 = nn.Linear(32, 4)

        def forward(self, x: Any) -> Any:
            x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 2)
            x = F.max_pool2d(F.relu(self.bn2(self.conv2(x))), 2)
            x = self.dropout(torch.flatten(x, 1))
            x = F.relu(self.fc1(x))
            return F.log_softmax(self.fc2(x), dim=1)

    torch.manual_seed(1)
    labels = torch.randint(0, 4, (128,))
    images = torch.stack([picture(torch, int(label)) for label in labels])

    model = Net()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    losses = []
    model.train()
    for _ in range(steps):
        chosen = torch.randperm(len(images))[:32]
        optimizer.zero_grad()
        loss = F.nll_loss(model(images[chosen]), labels[chosen])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses
