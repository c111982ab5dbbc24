"""Stand-in for the flydsl package: names only, nothing compiles."""

__version__ = "0.3.2"
