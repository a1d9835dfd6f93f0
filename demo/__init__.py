"""The demonstration behind `make demo`: tunes GCC's flags for a real program on this machine, and proves the gain."""
