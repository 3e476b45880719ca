"""`torch.cuda`: see convcore.cuda."""
