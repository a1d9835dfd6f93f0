"""The parts of the SDK behind its public names. They may change at any time."""
