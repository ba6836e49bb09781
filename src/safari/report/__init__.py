"""Reports: curves as pictures, tables for the terminal."""
