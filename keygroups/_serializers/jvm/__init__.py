"""Serializers of the JVM's classes, Flink's aside: Java's, Scala's and the job's own."""
