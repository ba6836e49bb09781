"""Handwritten digits on ten clients, one digit each, some of which never take part."""
