"""Primitive operations of the stand-in package."""


def kernel_argument(index):
    return ("argument", index)


def load(buffer, offset, width=8):
    return ("load", buffer, offset, width)


def store(buffer, offset, value):
    return ("store", buffer, offset, value)


def barrier():
    return ("barrier",)
