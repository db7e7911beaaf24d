"""Flink's TypeSerializers, a class each, which read and write values and snapshots."""

# The import of a module puts its classes in the registry.
from keygroups._serializers import (
    arrays as arrays,
)
from keygroups._serializers import (
    big_numbers as big_numbers,
)
from keygroups._serializers import (
    cep as cep,
)
from keygroups._serializers import (
    collections as collections,
)
from keygroups._serializers import (
    compounds as compounds,
)
from keygroups._serializers import (
    kafka_producer as kafka_producer,
)
from keygroups._serializers import (
    scalars as scalars,
)
from keygroups._serializers import (
    streaming as streaming,
)
from keygroups._serializers import (
    value_types as value_types,
)
from keygroups._serializers.jvm import (
    avro as avro,
)
from keygroups._serializers.jvm import (
    beam as beam,
)
from keygroups._serializers.jvm import (
    encoded as encoded,
)
from keygroups._serializers.jvm import (
    kryo as kryo,
)
from keygroups._serializers.jvm import (
    pojos as pojos,
)
from keygroups._serializers.jvm import (
    scala as scala,
)
from keygroups._serializers.jvm import (
    time as time,
)
from keygroups._serializers.sql import (
    python_rows as python_rows,
)
from keygroups._serializers.sql import (
    python_scalars as python_scalars,
)
from keygroups._serializers.sql import (
    rows as rows,
)
from keygroups._serializers.sql import (
    table_runtime as table_runtime,
)
