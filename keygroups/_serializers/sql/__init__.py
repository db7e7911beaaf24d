"""Serializers of Flink SQL's runtime, and of PyFlink's."""
