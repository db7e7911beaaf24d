import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.util.stream.IntStream;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.table.data.ArrayData;
import org.apache.flink.table.data.DecimalData;
import org.apache.flink.table.data.GenericArrayData;
import org.apache.flink.table.data.GenericRowData;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.data.StringData;
import org.apache.flink.table.data.TimestampData;
import org.apache.flink.table.data.binary.BinaryRowData;
import org.apache.flink.table.data.writer.BinaryRowWriter;
import org.apache.flink.table.runtime.keyselector.RowDataKeySelector;
import org.apache.flink.table.runtime.typeutils.ArrayDataSerializer;
import org.apache.flink.table.runtime.typeutils.InternalTypeInfo;
import org.apache.flink.table.runtime.typeutils.RowDataSerializer;
import org.apache.flink.table.types.logical.DecimalType;
import org.apache.flink.table.types.logical.LogicalType;
import org.apache.flink.table.types.logical.RowType;
import org.apache.flink.table.types.logical.TimestampType;
import org.apache.flink.table.types.logical.utils.LogicalTypeParser;

/**
 * Prints BinaryRowData.hashCode of rows, one a line.
 *
 * <p>The argument is the type as Flink DDL writes it, {@code ROW<f0 BIGINT, f1 STRING>}; standard
 * input has one row a line, a JSON array. Each row is written field by field with a
 * BinaryRowWriter, and once more by the key selector that the planner generates for a SQL job; the
 * two must be equal.
 */
public class SqlRowHashes {

    public static void main(String[] arguments) throws Exception {
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.US_ASCII);
        System.setOut(System.err); // whatever Flink logs
        ClassLoader loader = SqlRowHashes.class.getClassLoader();
        RowType type = (RowType) LogicalTypeParser.parse(arguments[0], loader);
        int arity = type.getFieldCount();
        RowDataKeySelector selector = selector(loader, type);
        GenericRowData row = new GenericRowData(arity);
        BinaryRowData written = new BinaryRowData(arity);
        BinaryRowWriter writer = new BinaryRowWriter(written);
        ObjectMapper json = new ObjectMapper();
        BufferedReader in =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JsonNode fields = json.readTree(line);
            writer.reset();
            for (int i = 0; i < arity; i++) {
                LogicalType fieldType = type.getTypeAt(i);
                Object value = value(fieldType, fields.get(i));
                row.setField(i, value);
                write(writer, i, fieldType, value);
            }
            writer.complete();
            RowData key = selector.getKey(row);
            if (!written.equals(key)) {
                throw new IllegalStateException("the planner writes another row for " + line);
            }
            out.println(written.hashCode());
        }
        out.flush();
    }

    /** The key selector of a job whose key is all the fields. */
    private static RowDataKeySelector selector(ClassLoader loader, RowType type) throws Exception {
        int[] fields = IntStream.range(0, type.getFieldCount()).toArray();
        InternalTypeInfo<RowData> info = InternalTypeInfo.of(type);
        for (Method method :
                plannerLoader(loader)
                        .loadClass("org.apache.flink.table.planner.plan.utils.KeySelectorUtil")
                        .getMethods()) {
            if (method.getName().equals("getRowDataSelector")) {
                switch (method.getParameterCount()) {
                    case 2: // until 1.15
                        return (RowDataKeySelector) method.invoke(null, fields, info);
                    case 3:
                        return (RowDataKeySelector) method.invoke(null, loader, fields, info);
                    default:
                }
            }
        }
        throw new NoSuchMethodException("getRowDataSelector");
    }

    /** Since 1.15 the planner has a loader of its own. */
    private static ClassLoader plannerLoader(ClassLoader loader) throws Exception {
        Class<?> module;
        try {
            module = Class.forName("org.apache.flink.table.planner.loader.PlannerModule");
        } catch (ClassNotFoundException error) {
            return loader;
        }
        Method instance = module.getMethod("getInstance");
        Field planner = module.getDeclaredField("submoduleClassLoader");
        instance.setAccessible(true); // in Flink 1 the class is not public, and has no getter
        planner.setAccessible(true);
        return (ClassLoader) planner.get(instance.invoke(null));
    }

    private static Object value(LogicalType type, JsonNode json) {
        if (json.isNull()) {
            return null;
        }
        switch (type.getTypeRoot()) {
            case BOOLEAN:
                return json.booleanValue();
            case INTEGER:
                return json.intValue();
            case BIGINT:
                return json.longValue();
            case VARCHAR:
                return StringData.fromString(json.textValue());
            case DECIMAL:
                DecimalType decimal = (DecimalType) type;
                return DecimalData.fromBigDecimal(
                        new BigDecimal(json.textValue()),
                        decimal.getPrecision(),
                        decimal.getScale());
            case TIMESTAMP_WITHOUT_TIME_ZONE:
                return TimestampData.fromLocalDateTime(LocalDateTime.parse(json.textValue()));
            case TIME_WITHOUT_TIME_ZONE:
                return (int) (LocalTime.parse(json.textValue()).toNanoOfDay() / 1_000_000);
            case ROW:
                GenericRowData row = new GenericRowData(json.size());
                for (int i = 0; i < json.size(); i++) {
                    row.setField(i, value(type.getChildren().get(i), json.get(i)));
                }
                return row;
            case ARRAY:
                LogicalType element = type.getChildren().get(0);
                return new GenericArrayData(
                        IntStream.range(0, json.size())
                                .mapToObj(i -> value(element, json.get(i)))
                                .toArray());
            default:
                throw new IllegalArgumentException(type.toString());
        }
    }

    private static void write(BinaryRowWriter writer, int i, LogicalType type, Object value) {
        switch (type.getTypeRoot()) {
            // These two reserve room for a null as well, but not where they are compact.
            case DECIMAL:
                int precision = ((DecimalType) type).getPrecision();
                if (value != null || !DecimalData.isCompact(precision)) {
                    writer.writeDecimal(i, (DecimalData) value, precision);
                    return;
                }
                break;
            case TIMESTAMP_WITHOUT_TIME_ZONE:
                precision = ((TimestampType) type).getPrecision();
                if (value != null || !TimestampData.isCompact(precision)) {
                    writer.writeTimestamp(i, (TimestampData) value, precision);
                    return;
                }
                break;
            default:
        }
        if (value == null) {
            writer.setNullAt(i);
        } else if (value instanceof Boolean) {
            writer.writeBoolean(i, (Boolean) value);
        } else if (value instanceof Integer) {
            writer.writeInt(i, (Integer) value);
        } else if (value instanceof Long) {
            writer.writeLong(i, (Long) value);
        } else if (value instanceof RowData) {
            writer.writeRow(i, (RowData) value, new RowDataSerializer((RowType) type));
        } else if (value instanceof ArrayData) {
            LogicalType element = type.getChildren().get(0);
            writer.writeArray(i, (ArrayData) value, new ArrayDataSerializer(element));
        } else {
            writer.writeString(i, (StringData) value);
        }
    }
}
