"""A deep convolutional GAN: a few steps of both nets, weights drawn as the paper has them."""

import random

import torch
import torch.nn as nn
import torch.optim as optim

manualSeed = 999
random.seed(manualSeed)
torch.manual_seed(manualSeed)
nz, ngf, ndf, nc = 16, 8, 8, 1


def weights_init(m):
    classname = m.__class__.__name__
    if classname.find("Conv") != -1:
        nn.init.normal_(m.weight.data, 0.0, 0.02)
    elif classname.find("BatchNorm") != -1:
        nn.init.normal_(m.weight.data, 1.0, 0.02)
        nn.init.constant_(m.bias.data, 0)


netG = nn.Sequential(
    nn.ConvTranspose2d(nz, ngf * 2, 4, 1, 0, bias=False),
    nn.BatchNorm2d(ngf * 2),
    nn.ReLU(True),
    nn.ConvTranspose2d(ngf * 2, ngf, 4, 2, 1, bias=False),
    nn.BatchNorm2d(ngf),
    nn.ReLU(True),
    nn.ConvTranspose2d(ngf, nc, 4, 2, 1, bias=False),
    nn.Tanh(),
).apply(weights_init)
netD = nn.Sequential(
    nn.Conv2d(nc, ndf, 4, 2, 1, bias=False),
    nn.LeakyReLU(0.2, inplace=True),
    nn.Conv2d(ndf, ndf * 2, 4, 2, 1, bias=False),
    nn.BatchNorm2d(ndf * 2),
    nn.LeakyReLU(0.2, inplace=True),
    nn.Conv2d(ndf * 2, 1, 4, 1, 0, bias=False),
    nn.Sigmoid(),
).apply(weights_init)
print(netG[0], netD[1])
criterion = nn.BCELoss()
fixed_noise = torch.randn(4, nz, 1, 1)
real_label, fake_label = 1.0, 0.0
optimizerD = optim.Adam(netD.parameters(), lr=0.002, betas=(0.5, 0.999))
optimizerG = optim.Adam(netG.parameters(), lr=0.0002, betas=(0.5, 0.999))
first = last = None
for i in range(5):
    netD.zero_grad()
    real = torch.rand(16, 1, 1, 1).mul(2).sub(1).expand(-1, nc, 16, 16)
    label = torch.full((16,), real_label, dtype=torch.float)
    errD_real = criterion(netD(real).view(-1), label)
    errD_real.backward()
    fake = netG(torch.randn(16, nz, 1, 1))
    label.fill_(fake_label)
    errD_fake = criterion(netD(fake.detach()).view(-1), label)
    errD_fake.backward()
    optimizerD.step()
    netG.zero_grad()
    output = netD(fake).view(-1)
    errG = criterion(output, label.fill_(real_label))
    errG.backward()
    optimizerG.step()
    last = (errD_real + errD_fake).item()
    first = first or last
    print(f"[{i}] Loss_D: {last:.4f} Loss_G: {errG.item():.4f} D(G(z)): {output.mean().item():.4f}")
with torch.no_grad():
    print(netG(fixed_noise).detach().cpu()[0, 0, :2, :4])
assert last < first
