"""A small GPT that learns to add: "12+34=46" as a language over eleven signs."""

from __future__ import annotations

import math
from typing import Any

SIGNS = "0123456789+="


def sums(torch: Any, count: int) -> Any:
    """Rows of sign numbers, such as 0 7 + 1 5 = 0 2 2."""
    index = {sign: i for i, sign in enumerate(SIGNS)}
    terms = torch.randint(0, 100, (count, 2)).tolist()
    rows = [f"{a:02d}+{b:02d}={a + b:03d}" for a, b in terms]
    return torch.tensor([[index[sign] for sign in row] for row in rows])


def train(torch: Any, steps: int = 50) -> list[float]:
    nn, F = torch.nn, torch.nn.functional
    block_size, width, heads, depth = 8, 32, 4, 2

    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.qkv = nn.Linear(width, 3 * width)
            self.proj = nn.Linear(width, width)
            self.drop = nn.Dropout(0.1)

        def forward(self, x: Any) -> Any:
            batch, length, _ = x.size()
            parts = self.qkv(x).split(width, dim=2)
            q, k, v = (
                part.view(batch, length, heads, width // heads).transpose(1, 2) for part in parts
            )
            p = 0.1 if self.training else 0.0
            y = F.scaled_dot_product_attention(q, k, v, dropout_p=p, is_causal=True)
            return self.drop(self.proj(y.transpose(1, 2).contiguous().view(batch, length, width)))

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.ln1, self.ln2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.attention = Attention()
            self.mlp = nn.Sequential(
                nn.Linear(width, 4 * width),
                nn.GELU(approximate="tanh"),
                nn.Linear(4 * width, width),
                nn.Dropout(0.1),
            )

        def forward(self, x: Any) -> Any:
            x = x + self.attention(self.ln1(x))
            return x + self.mlp(self.ln2(x))

    class GPT(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tokens = nn.Embedding(len(SIGNS), width)
            self.positions = nn.Embedding(block_size, width)
            self.blocks = nn.ModuleList(Block() for _ in range(depth))
            self.norm = nn.LayerNorm(width)
            self.head = nn.Linear(width, len(SIGNS), bias=False)
            self.head.weight = self.tokens.weight
            self.apply(self.initialise)
            for name, parameter in self.named_parameters():
                if name.endswith("proj.weight"):
                    nn.init.normal_(parameter, mean=0.0, std=0.02 / math.sqrt(2 * depth))

        def initialise(self, module: Any) -> None:
            if isinstance(module, (nn.Linear, nn.Embedding)):
                nn.init.normal_(module.weight, mean=0.0, std=0.02)
            if isinstance(module, nn.Linear) and module.bias is not None:
                nn.init.zeros_(module.bias)

        def forward(self, indices: Any, targets: Any) -> Any:
            x = self.tokens(indices) + self.positions(torch.arange(indices.size(1)))
            for block in self.blocks:
                x = block(x)
            logits = self.head(self.norm(x))
            return F.cross_entropy(logits.view(-1, logits.size(-1)), targets.reshape(-1))

    torch.manual_seed(4)
    data = sums(torch, 512)
    model = GPT()
    decayed = [p for p in model.parameters() if p.dim() >= 2]
    others = [p for p in model.parameters() if p.dim() < 2]
    optimizer = torch.optim.AdamW(
        [
            {"params": decayed, "weight_decay": 0.1},
            {"params": others, "weight_decay": 0.0},
        ],
        lr=3e-3,
        betas=(0.9, 0.95),
    )
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=steps)
    losses = []
    model.train()
    for _ in range(steps):
        rows = data[torch.randint(0, len(data), (32,))]
        loss = model(rows[:, :-1], rows[:, 1:])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())
    return losses
