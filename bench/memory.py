"""Peak resident memory of whole programs, each in a process of its own."""

from bench.case import Group, Probe

group = Group("memory")

PEAK = """
def peak():
    try:
        lines = open("/proc/self/status").read().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 2**10
    except OSError:
        import resource
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
"""

_TEN_LINES = (
    PEAK
    + """
import {library} as torch
torch.manual_seed(0)
x = torch.randn(64, 8)
w = torch.randn(8, 1, requires_grad=True)
for _ in range(10):
    loss = ((x @ w) ** 2).mean()
    loss.backward()
    with torch.no_grad():
        w -= 0.1 * w.grad
    w.grad = None
print(peak())
"""
)

_MLP = (
    PEAK
    + """
import {library} as torch
from {library} import nn
net = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10))
optimizer = torch.optim.Adam(net.parameters())
x, y = torch.randn(256, 784), torch.randint(0, 10, (256,))
for _ in range(10):
    optimizer.zero_grad()
    nn.functional.cross_entropy(net(x), y).backward()
    optimizer.step()
print(peak())
"""
)

_ADD = (
    PEAK
    + """
import {library} as torch
x, y = torch.ones(1 << 24), torch.ones(1 << 24)
for _ in range(10):
    z = x + y
print(peak())
"""
)

_SCORES = (
    PEAK
    + """
import {library} as torch
source = "def scores(q, k):\\n    return torch.softmax(torch.mm(q, k) * 0.125, 1)\\n"
scores = torch.jit.CompilationUnit(source).scores
q, k = torch.randn(4096, 64), torch.randn(64, 4096)
for _ in range(4):
    scores(q, k)
print(peak())
"""
)

group.cases += [
    Probe("ten-line script", _TEN_LINES, "MB"),
    Probe("MLP training", _MLP, "MB"),
    Probe("z = x + y, 16M floats, 10 times", _ADD, "MB"),
    Probe("scripted softmax of 4096x4096 scores", _SCORES, "MB"),
]
