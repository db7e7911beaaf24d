import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.sql.Date;
import java.sql.Time;
import java.sql.Timestamp;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.ZoneOffset;
import java.util.HashMap;
import java.util.Map;
import java.util.UUID;
import org.apache.flink.api.java.tuple.Tuple;
import org.apache.flink.runtime.state.KeyGroupRangeAssignment;
import org.apache.flink.streaming.api.functions.python.KeyByKeySelector;
import org.apache.flink.table.data.DecimalData;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.data.TimestampData;
import org.apache.flink.table.data.binary.BinaryRowData;
import org.apache.flink.table.data.conversion.RowRowConverter;
import org.apache.flink.table.data.writer.BinaryRowWriter;
import org.apache.flink.table.data.writer.BinaryWriter;
import org.apache.flink.table.runtime.typeutils.InternalSerializers;
import org.apache.flink.table.types.logical.LogicalType;
import org.apache.flink.table.types.logical.LogicalTypeFamily;
import org.apache.flink.table.types.logical.LogicalTypeRoot;
import org.apache.flink.table.types.logical.RowType;
import org.apache.flink.table.types.logical.utils.LogicalTypeChecks;
import org.apache.flink.table.types.logical.utils.LogicalTypeParser;
import org.apache.flink.table.types.utils.TypeConversions;
import org.apache.flink.types.Row;
import org.apache.flink.types.RowKind;
import org.apache.spark.sql.api.java.UDF3;

/**
 * Flink's key group of a key, in Spark: of what the key is, a value, and the max parallelism.
 *
 * <p>A field of a struct says what it is in its name, before an underscore. Where nothing is said,
 * the value has the class of the key already. (No classes within: only this one is loaded.)
 */
public class SoakKeys implements UDF3<String, Object, Integer, Integer> {

    private static final ThreadLocal<Map<String, Map.Entry<RowType, RowRowConverter>>> SQL_ROWS =
            ThreadLocal.withInitial(HashMap::new);

    @Override
    public Integer call(String what, Object value, Integer maxParallelism) throws Exception {
        return KeyGroupRangeAssignment.assignToKeyGroup(key(what, value), maxParallelism);
    }

    private static Object key(String what, Object value) throws Exception {
        if (what.startsWith("PYFLINK ")) {
            Object key = key(what.substring("PYFLINK ".length()), value);
            return new KeyByKeySelector().getKey(Row.of(key, "element"));
        }
        if (value == null) {
            return null;
        }
        if (what.startsWith("SQL_ROW ")) {
            return sqlRow(what.substring(8), row((org.apache.spark.sql.Row) value));
        }
        switch (what) {
            case "CHAR":
                return (char) (int) value;
            case "UTF_16":
                ByteBuffer units = ByteBuffer.wrap((byte[]) value).order(ByteOrder.LITTLE_ENDIAN);
                return units.asCharBuffer().toString();
            case "BIG_INT":
                return new BigInteger((byte[]) value);
            case "BIG_DEC":
                return new java.math.BigDecimal((String) value);
            case "UUID":
                return UUID.fromString((String) value);
            case "LOCAL_TIME":
                return LocalTime.ofNanoOfDay((long) value * 1_000);
            case "SQL_DATE":
                return Date.valueOf((LocalDate) value);
            case "SQL_TIME":
                return new Time((long) value);
            case "SQL_TIMESTAMP":
                return Timestamp.valueOf(LocalDateTime.ofInstant((Instant) value, ZoneOffset.UTC));
            case "TUPLE":
                org.apache.spark.sql.Row fields = (org.apache.spark.sql.Row) value;
                Tuple tuple = Tuple.newInstance(fields.size());
                for (int i = 0; i < fields.size(); i++) {
                    tuple.setField(field(fields, i), i);
                }
                return tuple;
            case "ROW":
                return row((org.apache.spark.sql.Row) value);
            case "ROW -U":
                Row updated = row((org.apache.spark.sql.Row) value);
                updated.setKind(RowKind.UPDATE_BEFORE);
                return updated;
            default:
                return value;
        }
    }

    private static Row row(org.apache.spark.sql.Row fields) throws Exception {
        Row row = new Row(fields.size());
        for (int i = 0; i < fields.size(); i++) {
            row.setField(i, field(fields, i));
        }
        return row;
    }

    private static Object field(org.apache.spark.sql.Row fields, int index) throws Exception {
        return key(fields.schema().fieldNames()[index].split("_")[0], fields.get(index));
    }

    /** The key of Flink SQL, written field by field as the code that its planner generates does. */
    private static BinaryRowData sqlRow(String text, Row row) {
        Map.Entry<RowType, RowRowConverter> known =
                SQL_ROWS.get().computeIfAbsent(text, SoakKeys::sqlType);
        RowData fields = known.getValue().toInternal(row);
        BinaryRowData key = new BinaryRowData(fields.getArity());
        BinaryRowWriter writer = new BinaryRowWriter(key);
        for (int i = 0; i < fields.getArity(); i++) {
            LogicalType type = known.getKey().getTypeAt(i);
            Object field = RowData.createFieldGetter(type, i).getFieldOrNull(fields);
            if (field == null && !hasRoomForNull(type)) {
                writer.setNullAt(i);
            } else {
                BinaryWriter.write(writer, i, field, type, InternalSerializers.create(type));
            }
        }
        writer.complete();
        return key;
    }

    private static Map.Entry<RowType, RowRowConverter> sqlType(String text) {
        ClassLoader loader = SoakKeys.class.getClassLoader();
        RowType type = (RowType) LogicalTypeParser.parse(text, loader);
        RowRowConverter converter =
                RowRowConverter.create(TypeConversions.fromLogicalToDataType(type));
        converter.open(loader);
        return Map.entry(type, converter);
    }

    private static boolean hasRoomForNull(LogicalType type) {
        if (type.is(LogicalTypeRoot.DECIMAL)) {
            return !DecimalData.isCompact(LogicalTypeChecks.getPrecision(type));
        }
        return type.is(LogicalTypeFamily.TIMESTAMP)
                && !TimestampData.isCompact(LogicalTypeChecks.getPrecision(type));
    }
}
