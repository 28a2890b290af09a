import torch
from torch import nn

torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
images, labels = torch.randn(64, 3, 8, 8), torch.randint(4, (64,))
net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(288, 4)).to(device)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 4)

for step in range(8):
    inputs, targets = images.to(device), labels.to(device)
    optimizer.zero_grad()
    outputs = net(inputs)

    # cross-entropy, and a little of the logits
    loss = criterion(outputs, targets)
    loss = loss + 0.01 * outputs.square().mean()
    loss.backward()
    optimizer.step()
    scheduler.step()
    print(loss.item())
