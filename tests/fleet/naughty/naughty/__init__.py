"""A fleet in which some clients misbehave."""
