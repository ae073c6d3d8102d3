"""`torch.nn.attention.flex_attention`: attention with functions of scores, which is not here yet."""

from rushlight.core.absent import absent_class, absent_function

BlockMask = absent_class("torch.nn.attention.flex_attention.BlockMask")
flex_attention = absent_function("torch.nn.attention.flex_attention.flex_attention")
create_block_mask = absent_function("torch.nn.attention.flex_attention.create_block_mask")
create_mask = absent_function("torch.nn.attention.flex_attention.create_mask")
_DEFAULT_SPARSE_BLOCK_SIZE = 128
