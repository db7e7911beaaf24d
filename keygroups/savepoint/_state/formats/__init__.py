"""The bytes of keyed state in each format of Flink, as tasks read them."""
