"""The reduction of gradients while the backward pass runs, which DistributedDataParallel is made of.

`buckets` lays gradients side by side in flat buffers, `reducer` reduces a buffer as soon as its gradients are there,
`graph_walk` finds the parameters that a loss does not depend on, and `replicas` makes all ranks start from the same model.
"""
