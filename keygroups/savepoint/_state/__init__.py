"""The state of operators: its headers, and its entries in each format."""
