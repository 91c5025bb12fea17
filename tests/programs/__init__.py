"""Small programs that run with weft and with PyTorch alike.

Each has `train(torch, steps)`: it takes the library, trains a model on data it makes itself, and
gives the loss of every step.
"""
