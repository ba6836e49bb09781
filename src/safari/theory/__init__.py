"""Theory: one file a theorem, corrected where the paper is wrong, and what they need estimated."""
