"""`torch.utils.flop_counter`: how many floating-point operations a program runs in products, convolutions and attention."""
