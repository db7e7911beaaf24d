"""How `keygroups.arrays` works: Arrow arrays in, hash codes in NumPy out, block by block."""
