import java.lang.reflect.Array;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.Type;
import java.math.BigDecimal;
import java.sql.Date;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.flink.api.java.tuple.Tuple;
import org.apache.flink.table.data.DecimalData;
import org.apache.flink.table.data.GenericArrayData;
import org.apache.flink.table.data.GenericMapData;
import org.apache.flink.table.data.GenericRowData;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.data.StringData;
import org.apache.flink.table.data.TimestampData;
import org.apache.flink.table.runtime.typeutils.RowDataSerializer;
import org.apache.flink.table.types.logical.DecimalType;
import org.apache.flink.table.types.logical.LogicalType;
import org.apache.flink.table.types.logical.RowType;
import org.apache.flink.table.types.logical.utils.LogicalTypeParser;
import org.apache.flink.types.Either;
import org.apache.flink.types.Row;

/** Values of the types of `Verdicts`, each made of a number. */
class EvolvedValues {

    private EvolvedValues() {}

    static Object make(String type, int number) throws Exception {
        ClassLoader loader = EvolvedValues.class.getClassLoader();
        if (type.startsWith("sql:")) {
            LogicalType parsed = LogicalTypeParser.parse(type.substring(4), loader);
            Object value = ofSql(parsed, number);
            return parsed instanceof RowType
                    ? new RowDataSerializer((RowType) parsed).toBinaryRow((RowData) value).copy()
                    : value;
        }
        if (type.equals("rowtime")) {
            return GenericRowData.of(TimestampData.fromEpochMillis(number));
        }
        if (type.contains("evolved.") && type.indexOf('(') < 0) {
            String name = type.substring(type.startsWith("@") ? 1 : 5).split("\\+")[0];
            return ofClass(loader.loadClass(name), number);
        }
        int open = type.indexOf('(');
        if (open < 0) {
            return ofScalar(type, number);
        }
        List<String> parts = Verdicts.inside(type.substring(open + 1, type.length() - 1));
        String first = parts.get(0);
        switch (type.substring(0, open)) {
            case "TUPLE":
                Tuple tuple = Tuple.newInstance(parts.size());
                for (int i = 0; i < parts.size(); i++) {
                    tuple.setField(make(parts.get(i), number), i);
                }
                return tuple;
            case "ROW":
            case "ROW_WITHOUT_KIND":
                Row row = new Row(parts.size());
                for (int i = 0; i < parts.size(); i++) {
                    row.setField(i, make(parts.get(i), number));
                }
                return row;
            case "LIST":
                return new ArrayList<>(List.of(make(first, number), make(first, number + 1)));
            case "MAP":
                Map<Object, Object> map = new HashMap<>();
                map.put(make(first, number), make(parts.get(1), number));
                return map;
            case "EITHER":
                return number % 2 == 0
                        ? Either.Left(make(first, number))
                        : Either.Right(make(parts.get(1), number));
            case "ARRAY":
                Object element = make(first, number);
                Object array = Array.newInstance(element.getClass(), 1);
                Array.set(array, 0, element);
                return array;
            case "NULLABLE":
            case "PADDED":
                return make(first, number);
            default:
                throw new IllegalArgumentException(type);
        }
    }

    private static Object ofScalar(String type, int number) {
        switch (type) {
            case "INT":
                return number;
            case "LONG":
                return (long) number;
            case "STRING":
                return "s" + number;
            case "DOUBLE":
                return (double) number;
            case "BIG_DEC":
                return new BigDecimal(number);
            case "INSTANT":
                return Instant.ofEpochMilli(number);
            case "LOCAL_DATE_TIME":
                return LocalDateTime.of(2020, 1, 1, 0, 0, number);
            case "LOCAL_DATE":
                return LocalDate.of(2020, 1, 1 + number);
            case "SQL_DATE":
                return new Date(86_400_000L * number);
            default:
                throw new IllegalArgumentException(type);
        }
    }

    private static Object ofClass(Class<?> made, int number) throws Exception {
        if (made.isEnum()) {
            return made.getEnumConstants()[number % made.getEnumConstants().length];
        }
        Constructor<?> constructor = made.getDeclaredConstructors()[0];
        constructor.setAccessible(true);
        boolean isEmpty = constructor.getParameterCount() == 0;
        Object value = isEmpty ? constructor.newInstance() : constructor.newInstance(number);
        for (Field field : made.getFields()) {
            if (!Modifier.isFinal(field.getModifiers())) {
                field.set(value, ofField(field.getGenericType(), number));
            }
        }
        return value;
    }

    private static Object ofField(Type type, int number) throws Exception {
        if (type instanceof ParameterizedType) {
            List<Object> list = new ArrayList<>();
            list.add(ofField(((ParameterizedType) type).getActualTypeArguments()[0], number));
            return list;
        }
        if (type == int.class || type == Integer.class) {
            return number;
        }
        if (type == long.class || type == Long.class) {
            return (long) number;
        }
        return type == String.class ? "s" + number : ofClass((Class<?>) type, number);
    }

    private static Object ofSql(LogicalType type, int number) {
        List<LogicalType> parts = type.getChildren();
        switch (type.getTypeRoot()) {
            case INTEGER:
            case DATE:
                return number;
            case BIGINT:
                return (long) number;
            case VARCHAR:
                return StringData.fromString("s" + number);
            case DECIMAL:
                DecimalType decimal = (DecimalType) type;
                return DecimalData.fromUnscaledLong(
                        number, decimal.getPrecision(), decimal.getScale());
            case TIMESTAMP_WITHOUT_TIME_ZONE:
            case TIMESTAMP_WITH_LOCAL_TIME_ZONE:
                return TimestampData.fromEpochMillis(number);
            case ARRAY:
                return new GenericArrayData(new Object[] {ofSql(parts.get(0), number)});
            case MAP:
            case MULTISET:
                Map<Object, Object> map = new LinkedHashMap<>();
                Object counted = parts.size() > 1 ? ofSql(parts.get(1), number) : number;
                map.put(ofSql(parts.get(0), number), counted);
                return new GenericMapData(map);
            case ROW:
                GenericRowData row = new GenericRowData(parts.size());
                for (int i = 0; i < parts.size(); i++) {
                    row.setField(i, ofSql(parts.get(i), number));
                }
                return row;
            default:
                throw new IllegalArgumentException(type.toString());
        }
    }
}
