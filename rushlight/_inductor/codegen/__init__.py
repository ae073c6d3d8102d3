"""`torch._inductor.codegen`: what generated programs name of the code generator."""
