"""Speech recognition in small: tones to spectrograms, a recurrent network, connectionist losses."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

RATE, SYMBOLS, TONE = 800, 4, 160


def utterances(count: int) -> list[tuple[Any, Any]]:
    """Pairs of a wave [samples] and its symbols [2 to 4], each symbol a tone of its own."""
    rng = np.random.default_rng(0)
    time = np.arange(TONE) / RATE
    made = []
    for _ in range(count):
        symbols = rng.integers(1, SYMBOLS, rng.integers(2, 5))
        wave = np.concatenate([np.sin(2 * math.pi * 80 * s * time) for s in symbols])
        made.append((wave + 0.05 * rng.standard_normal(wave.size), symbols))
    return made


def spectrogram(torch: Any, wave: Any) -> Any:
    """The logarithm of the power of each band in each frame, [frames, 17]."""
    window = torch.hann_window(32, dtype=wave.dtype)
    frames = torch.stft(wave, 32, hop_length=16, window=window, return_complex=True)
    return torch.log1p(frames.abs().pow(2)).transpose(-1, -2)


def greedy(torch: Any, log_probs: Any, lengths: Any) -> list[list[int]]:
    """The best symbol of each frame, without repetitions and blanks (0)."""
    best = log_probs.argmax(dim=-1)
    kept = [
        torch.unique_consecutive(row[:n]) for row, n in zip(best.t(), lengths.tolist(), strict=True)
    ]
    return [row[row != 0].tolist() for row in kept]


def train(torch: Any, steps: int = 50) -> list[float]:
    """The losses of an epoch each fifth of the steps."""
    nn, rnn, data = torch.nn, torch.nn.utils.rnn, torch.utils.data

    class Utterances(data.Dataset):
        def __init__(self) -> None:
            self.items = utterances(32)

        def __len__(self) -> int:
            return len(self.items)

        def __getitem__(self, index: int) -> Any:
            wave, symbols = self.items[index]
            return spectrogram(torch, torch.from_numpy(wave)), torch.as_tensor(symbols)

    def collate(batch: Any) -> Any:
        spectra, targets = zip(*batch, strict=True)
        sizes = torch.tensor([len(each) for each in spectra], dtype=torch.int32)
        target_sizes = torch.IntTensor([len(each) for each in targets])
        padded = rnn.pad_sequence(spectra, batch_first=True)
        return padded, sizes, torch.cat(targets), target_sizes

    class Recogniser(nn.Module):
        def __init__(self, hidden: int = 16) -> None:
            super().__init__()
            self.conv = nn.Conv1d(17, hidden, kernel_size=3, stride=2, padding=1)
            self.norm = nn.BatchNorm1d(hidden)
            self.rnn = nn.GRU(hidden, hidden, batch_first=True, bidirectional=True)
            self.head = nn.Linear(2 * hidden, SYMBOLS)

        def forward(self, x: Any, sizes: Any) -> Any:
            x = torch.relu(self.norm(self.conv(x.transpose(1, 2)))).transpose(1, 2)
            sizes = torch.div(sizes - 1, 2, rounding_mode="floor") + 1
            packed = rnn.pack_padded_sequence(
                x, sizes.cpu(), batch_first=True, enforce_sorted=False
            )
            out, _ = rnn.pad_packed_sequence(self.rnn(packed)[0], batch_first=True)
            return self.head(out).log_softmax(2).transpose(0, 1), sizes

    torch.manual_seed(0)
    model = Recogniser().double()
    loader = data.DataLoader(Utterances(), batch_size=8, shuffle=True, collate_fn=collate)
    criterion = nn.CTCLoss(blank=0, zero_infinity=True)
    optimizer = torch.optim.RMSprop(model.parameters(), lr=3e-3, momentum=0.5)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1e-2, total_steps=steps + 8)
    losses: list[float] = []
    while len(losses) < steps:
        model.train()
        for x, sizes, targets, target_sizes in loader:
            optimizer.zero_grad()
            out, out_sizes = model(x, sizes)
            loss = criterion(out, targets, out_sizes, target_sizes)
            loss.backward()
            nn.utils.clip_grad_value_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            losses.append(loss.item())
    model.eval()
    x, sizes, _, target_sizes = next(iter(loader))
    with torch.no_grad():
        guessed = greedy(torch, *model(x, sizes))
    assert len(guessed) == len(target_sizes)
    return losses[:steps]
