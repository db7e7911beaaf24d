"""The serializers of FlinkKafkaProducer, the older sink: a transaction, ids, the next of these.

FlinkKafkaProducer011 had the same bytes, which the later one reads too. Kafka's sink:
FlinkKafkaProducer.TransactionStateSerializer, ContextStateSerializer,
NextTransactionalIdHintSerializer.
"""

from __future__ import annotations

from collections.abc import Sequence

from keygroups._serializers.base import STREAMING, Read, Simple
from keygroups._serializers.records import INT, LONG, UTF, many, nullable, part, record
from keygroups._serializers.scalars import SHORT
from keygroups._values.streaming import KafkaTransaction, NextTransactionalIdHint

_PRODUCER = f"{STREAMING.removesuffix('api.')}connectors.kafka.FlinkKafkaProducer"
_TRANSACTION = "TransactionStateSerializer$TransactionStateSerializerSnapshot"
_CONTEXT = "ContextStateSerializer$ContextStateSerializerSnapshot"
_HINT = "NextTransactionalIdHintSerializer$NextTransactionalIdHintSerializerSnapshot"


class TransactionSerializer(Simple):
    """A transaction: whether it has an id, the id, its producer and its epoch."""

    name, snapshot = "KAFKA_TRANSACTION", f"{_PRODUCER}${_TRANSACTION}"

    def bind(self, reads: Sequence[Read]) -> None:
        self.read, self.write = record(KafkaTransaction, nullable(UTF), LONG, part(SHORT)).named(
            self.name
        )


class TransactionSerializer011(TransactionSerializer):
    snapshot = f"{_PRODUCER}011${_TRANSACTION}"


class TransactionContextSerializer(Simple):
    """The ids of all transactions of a subtask, a list in the order of its bytes."""

    name, snapshot = "KAFKA_TRANSACTION_CONTEXT", f"{_PRODUCER}${_CONTEXT}"

    def bind(self, reads: Sequence[Read]) -> None:
        self.read, self.write = many(UTF).named(self.name)


class TransactionContextSerializer011(TransactionContextSerializer):
    snapshot = f"{_PRODUCER}011${_CONTEXT}"


class TransactionHintSerializer(Simple):
    name, snapshot, size = "KAFKA_TRANSACTION_HINT", f"{_PRODUCER}${_HINT}", 12

    def bind(self, reads: Sequence[Read]) -> None:
        self.read, self.write = record(NextTransactionalIdHint, LONG, INT).named(self.name)


class TransactionHintSerializer011(TransactionHintSerializer):
    snapshot = f"{_PRODUCER}011${_HINT}"
