"""Shapes of requests and answers. They check shapes alone: what a value means is checked by the domain."""
