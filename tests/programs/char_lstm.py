"""A character language model: embedding, two LSTM layers, state carried between batches."""

from __future__ import annotations

from typing import Any

TEXT = """the weaver sends the shuttle through the shed, the weft lies down upon the thread;
the reed beats up, the shed is changed, the pattern grows as it was arranged. """


def train(torch: Any, steps: int = 50) -> list[float]:
    nn = torch.nn
    letters = sorted(set(TEXT))
    index = {letter: i for i, letter in enumerate(letters)}

    class CharModel(nn.Module):
        def __init__(self, size: int, hidden: int, layers: int) -> None:
            super().__init__()
            self.embed = nn.Embedding(size, 24)
            self.lstm = nn.LSTM(24, hidden, num_layers=layers, dropout=0.2, batch_first=True)
            self.decode = nn.Linear(hidden, size)

        def forward(self, x: Any, state: Any) -> tuple[Any, Any]:
            output, state = self.lstm(self.embed(x), state)
            return self.decode(output), state

    torch.manual_seed(3)
    data = torch.tensor([index[letter] for letter in TEXT * 12])
    batch, length, hidden, layers = 4, 16, 48, 2
    usable = (len(data) - 1) // batch * batch
    inputs, targets = data[:usable].view(batch, -1), data[1 : usable + 1].view(batch, -1)

    model = CharModel(len(letters), hidden, layers)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    state = (torch.zeros(layers, batch, hidden), torch.zeros(layers, batch, hidden))
    losses = []
    model.train()
    for step in range(steps):
        start = step * length % (inputs.size(1) - length)
        x, y = inputs[:, start : start + length], targets[:, start : start + length]
        state = tuple(part.detach() for part in state)
        logits, state = model(x, state)
        loss = criterion(logits.reshape(-1, len(letters)), y.reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return losses
