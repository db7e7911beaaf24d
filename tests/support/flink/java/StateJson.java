import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.flink.api.java.tuple.Tuple;
import org.apache.flink.runtime.state.VoidNamespace;
import org.apache.flink.runtime.state.ttl.TtlValue;
import org.apache.flink.streaming.api.utils.ByteArrayWrapper;
import org.apache.flink.streaming.api.windowing.windows.GlobalWindow;
import org.apache.flink.streaming.api.windowing.windows.TimeWindow;
import org.apache.flink.table.data.RawValueData;
import org.apache.flink.table.data.StringData;
import org.apache.flink.table.data.binary.BinaryRowData;
import org.apache.flink.table.data.binary.BinarySegmentUtils;
import org.apache.flink.types.Row;
import org.apache.flink.util.StringUtils;

/** Writes the values of state as the truth of the recorded savepoints has them. */
public class StateJson {

    private StateJson() {}

    /** Returns what a value is in JSON: every type but null, a boolean and a string is named. */
    public static Object of(Object value) throws Exception {
        if (value == null || value instanceof Boolean || value instanceof String) {
            return value;
        }
        if (value instanceof StringData) {
            return value.toString();
        }
        if (value instanceof Double) {
            return Map.of("double", Double.toHexString((Double) value));
        }
        if (value instanceof Float) {
            return Map.of("float", Float.toHexString((Float) value));
        }
        if (value instanceof Character) {
            return Map.of("char", (int) (Character) value);
        }
        if (value instanceof Number && value.getClass().getPackageName().equals("java.lang")) {
            String name = value instanceof Integer ? "int" : value.getClass().getSimpleName();
            return Map.of(name.toLowerCase(), value);
        }
        if (value instanceof byte[]) {
            return Map.of("bytes", StringUtils.byteToHexString((byte[]) value));
        }
        if (value instanceof ByteArrayWrapper) { // PyFlink's user keys
            ByteArrayWrapper bytes = (ByteArrayWrapper) value;
            return of(Arrays.copyOfRange(bytes.getData(), bytes.getOffset(), bytes.getLimit()));
        }
        if (value instanceof VoidNamespace) {
            return Map.of("void", true);
        }
        if (value instanceof GlobalWindow) {
            return Map.of("global", true);
        }
        if (value instanceof TimeWindow) {
            TimeWindow window = (TimeWindow) value;
            return Map.of("window", List.of(window.getStart(), window.getEnd()));
        }
        if (value instanceof TtlValue) {
            TtlValue<?> kept = (TtlValue<?>) value;
            Map<String, Object> json = new LinkedHashMap<>();
            json.put("ttl", kept.getLastAccessTimestamp());
            json.put("value", of(kept.getUserValue()));
            return json;
        }
        if (value instanceof RawValueData) {
            return Map.of("raw_value", true);
        }
        if (value instanceof BinaryRowData) {
            BinaryRowData row = (BinaryRowData) value;
            byte[] bytes =
                    BinarySegmentUtils.copyToBytes(
                            row.getSegments(), row.getOffset(), row.getSizeInBytes());
            return Map.of("binary_row", StringUtils.byteToHexString(bytes));
        }
        return compound(value);
    }

    private static Object compound(Object value) throws Exception {
        List<Object> parts = new ArrayList<>();
        if (value instanceof Tuple) {
            for (int i = 0; i < ((Tuple) value).getArity(); i++) {
                parts.add(of(((Tuple) value).getField(i)));
            }
            return Map.of("tuple", parts);
        }
        if (value instanceof Row) {
            for (int i = 0; i < ((Row) value).getArity(); i++) {
                parts.add(of(((Row) value).getField(i)));
            }
            return Map.of("row", parts, "row_kind", ((Row) value).getKind().toByteValue());
        }
        if (value instanceof List) {
            for (Object element : (List<?>) value) {
                parts.add(of(element));
            }
            return Map.of("list", parts);
        }
        if (value instanceof Map) {
            for (Map.Entry<?, ?> entry : ((Map<?, ?>) value).entrySet()) {
                List<Object> pair = new ArrayList<>();
                pair.add(of(entry.getKey()));
                pair.add(of(entry.getValue()));
                parts.add(pair);
            }
            return Map.of("map", parts);
        }
        boolean isEvolved = value.getClass().getPackageName().equals("evolved");
        if (value instanceof G.Pj || (isEvolved && !(value instanceof Enum))) {
            Map<String, Object> fields = new LinkedHashMap<>();
            for (Field field : value.getClass().getFields()) {
                fields.put(field.getName(), of(field.get(value)));
            }
            return Map.of("pojo", value.getClass().getName(), "fields", fields);
        }
        return Map.of("class", value.getClass().getName(), "text", value.toString());
    }
}
