"""Lowers modules of PyTorch to linalg on tensors: the exported graph rewritten, then torch-mlir."""
