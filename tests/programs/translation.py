"""Translation by a Transformer: masks, teacher forcing, a warm-up schedule, beam search."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

PAD, BOS, EOS, WORDS = 0, 1, 2, 12


def sentences(count: int) -> list[tuple[list[int], list[int]]]:
    """Sentences of 3 to 6 words; their translation has other words, in reverse."""
    rng = np.random.default_rng(10)
    made = []
    for _ in range(count):
        words = rng.integers(3, WORDS, rng.integers(3, 7)).tolist()
        made.append((words, [BOS, *(WORDS + 2 - word for word in reversed(words)), EOS]))
    return made


def train(torch: Any, steps: int = 50) -> list[float]:
    nn, pad_sequence = torch.nn, torch.nn.utils.rnn.pad_sequence

    class PositionalEncoding(nn.Module):
        def __init__(self, size: int, dropout: float, longest: int = 16) -> None:
            super().__init__()
            den = torch.exp(-torch.arange(0, size, 2) * math.log(10000) / size)
            pos = torch.arange(0, longest).reshape(longest, 1)
            table = torch.zeros((longest, size))
            table[:, 0::2], table[:, 1::2] = torch.sin(pos * den), torch.cos(pos * den)
            self.dropout = nn.Dropout(dropout)
            self.register_buffer("table", table.unsqueeze(-2))

        def forward(self, x: Any) -> Any:
            return self.dropout(x + self.table[: x.size(0), :])

    class Translator(nn.Module):
        def __init__(self, size: int = 16) -> None:
            super().__init__()
            encoder = nn.TransformerEncoder(
                nn.TransformerEncoderLayer(size, 2, dim_feedforward=32, dropout=0.05),
                num_layers=1,
                norm=nn.LayerNorm(size),
                enable_nested_tensor=False,
            )
            self.transformer = nn.Transformer(
                d_model=size,
                nhead=2,
                num_decoder_layers=1,
                dim_feedforward=32,
                dropout=0.05,
                custom_encoder=encoder,
            )
            self.source = nn.Embedding(WORDS, size, padding_idx=PAD)
            self.target = nn.Embedding(WORDS, size, padding_idx=PAD)
            self.generator = nn.Linear(size, WORDS)
            self.positions, self.scale = PositionalEncoding(size, 0.05), math.sqrt(size)

        def encode(self, source: Any) -> Any:
            x = self.positions(self.source(source) * self.scale)
            return self.transformer.encoder(x, src_key_padding_mask=(source == PAD).t())

        def decode(self, target: Any, memory: Any, memory_padding: Any = None) -> Any:
            mask = nn.Transformer.generate_square_subsequent_mask(target.size(0)) < 0
            x = self.positions(self.target(target) * self.scale)
            out = self.transformer.decoder(
                x,
                memory,
                tgt_mask=mask,
                tgt_key_padding_mask=(target == PAD).t(),
                memory_key_padding_mask=memory_padding,
            )
            return self.generator(out)

        def forward(self, source: Any, target: Any) -> Any:
            return self.decode(target, self.encode(source), (source == PAD).t())

    def collate(batch: Any) -> Any:
        return [
            pad_sequence(list(map(torch.tensor, side)), padding_value=PAD) for side in zip(*batch)
        ]

    @torch.no_grad()
    def beam_search(model: Any, source: Any, width: int = 3, longest: int = 8) -> tuple[Any, float]:
        """The likeliest translation of a sentence [length, 1], and its log-likelihood."""
        memory = model.encode(source)
        beams = torch.full((1, 1), BOS)
        scores = torch.zeros(1)
        for _ in range(longest):
            logits = model.decode(beams, memory.expand(-1, beams.size(1), -1))[-1]
            ended = beams[-1] == EOS
            step = logits.log_softmax(-1).masked_fill(ended[:, None], -math.inf)
            step[ended, EOS] = 0.0
            scores, best = (scores[:, None] + step).flatten().topk(width)
            beam = torch.div(best, WORDS, rounding_mode="trunc")
            beams = torch.cat([beams[:, beam], (best % WORDS)[None]])
            if bool((beams[-1] == EOS).all()):
                break
        return beams[:, 0], scores[0].item()

    torch.manual_seed(0)
    model = Translator()
    for p in model.parameters():
        if p.dim() > 1:
            nn.init.xavier_uniform_(p)
    loader = torch.utils.data.DataLoader(sentences(128), 16, shuffle=True, collate_fn=collate)
    criterion = nn.CrossEntropyLoss(ignore_index=PAD, label_smoothing=0.05)
    optimizer = torch.optim.Adam(model.parameters(), lr=1, betas=(0.9, 0.98), eps=1e-9)
    rate = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: 16**-0.5 * min((step + 1) ** -0.5, (step + 1) * 40**-1.5) / 2
    )
    losses: list[float] = []
    while len(losses) < steps:
        model.train()
        for source, target in loader:
            logits = model(source, target[:-1, :])
            optimizer.zero_grad()
            loss = criterion(logits.reshape(-1, logits.shape[-1]), target[1:, :].reshape(-1))
            loss.backward()
            optimizer.step()
            rate.step()
            losses.append(loss.item())
    model.eval()
    words, score = beam_search(model, torch.tensor([[5], [4], [9]]))
    assert words[0] == BOS and len(words) > 1
    losses = losses[:steps]
    losses[-1] += 1e-3 * abs(score)
    return losses
