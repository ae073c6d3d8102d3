"""Steps of training a small ResNet: `rushlight explore examples/explorer/train_resnet.py`."""

import rushlight as torch
from rushlight import nn


class Block(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.first_norm = nn.BatchNorm2d(channels)
        self.second = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.second_norm = nn.BatchNorm2d(channels)

    def forward(self, x):
        y = torch.relu(self.first_norm(self.first(x)))
        y = self.second_norm(self.second(y))
        return torch.relu(x + y)


class SmallResNet(nn.Module):
    def __init__(self, channels=16, blocks=3, classes=10):
        super().__init__()
        self.stem = nn.Conv2d(3, channels, 3, padding=1)
        self.blocks = nn.Sequential(*(Block(channels) for _ in range(blocks)))
        self.head = nn.Linear(channels, classes)

    def forward(self, x):
        features = self.blocks(torch.relu(self.stem(x)))
        return self.head(features.mean((2, 3)))


torch.manual_seed(0)
model = SmallResNet()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
compiled = torch.compile(model)
images, labels = torch.randn(8, 3, 32, 32), torch.randint(10, (8,))
for step in range(5):
    loss = nn.functional.cross_entropy(compiled(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step}: loss {loss.item():.4f}")
