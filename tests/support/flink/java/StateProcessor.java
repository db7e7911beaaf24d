import com.sun.management.OperatingSystemMXBean;
import java.io.File;
import java.io.IOException;
import java.io.Serializable;
import java.lang.management.ManagementFactory;
import java.math.BigDecimal;
import java.nio.file.Files;
import java.util.Arrays;
import java.util.Map;
import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.MapState;
import org.apache.flink.api.common.state.MapStateDescriptor;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.api.java.typeutils.TupleTypeInfo;
import org.apache.flink.configuration.CheckpointingOptions;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.core.execution.SavepointFormatType;
import org.apache.flink.core.fs.Path;
import org.apache.flink.runtime.state.StateBackend;
import org.apache.flink.runtime.state.hashmap.HashMapStateBackend;
import org.apache.flink.state.api.OperatorIdentifier;
import org.apache.flink.state.api.OperatorTransformation;
import org.apache.flink.state.api.SavepointReader;
import org.apache.flink.state.api.SavepointWriter;
import org.apache.flink.state.api.SavepointWriterOperatorFactory;
import org.apache.flink.state.api.StateBootstrapTransformation;
import org.apache.flink.state.api.functions.KeyedStateBootstrapFunction;
import org.apache.flink.state.api.functions.KeyedStateReaderFunction;
import org.apache.flink.state.api.output.SnapshotUtils;
import org.apache.flink.state.api.output.operators.KeyedStateBootstrapOperator;
import org.apache.flink.state.rocksdb.EmbeddedRocksDBStateBackend;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.streaming.api.operators.SimpleOperatorFactory;
import org.apache.flink.streaming.runtime.streamrecord.StreamRecord;
import org.apache.flink.table.data.DecimalData;
import org.apache.flink.table.data.GenericRowData;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.data.StringData;
import org.apache.flink.table.runtime.typeutils.InternalTypeInfo;
import org.apache.flink.table.types.logical.BigIntType;
import org.apache.flink.table.types.logical.DecimalType;
import org.apache.flink.table.types.logical.VarCharType;
import org.apache.flink.util.Collector;

/**
 * Flink's State Processor API at the work of `bench_state_processor.py`, in one task.
 *
 * <p>The arguments are "read" and paths, "get", a path and a key, "write", a path and a number of
 * entries, or "change" and two paths; before them the kind of the values and the state backend,
 * "hashmap" or "rocksdb". A savepoint has an operator "visits" with a state "s" by a string. What
 * is read is counted, its numbers and the characters of its texts summed, and that printed, of each
 * path that is read with the CPU seconds that it took, and of these what the JVM's compilers took.
 */
public class StateProcessor {

    private static final String UID = "visits";
    private static final int MAX_PARALLELISM = 128;
    private static final int NEW_MAX_PARALLELISM = 4096;
    private static final int USER_KEYS = 10;

    /** What the one task, which runs in this JVM, has read. */
    private static long count;

    private static long numbers;
    private static long texts;

    /** A value of eight fields. */
    public static class Visit {
        public long id;
        public String name;
        public String city;
        public double score;
        public int count;
        public boolean active;
        public long created;
        public String note;
    }

    /** A kind of values: their type, the one of a number, and what a value adds to the sums. */
    private interface Kind extends Serializable {
        TypeInformation<Object> type();

        Object value(long number);

        void add(Object value);

        /** Returns how many entries a key has. */
        default int entries() {
            return 1;
        }
    }

    private static class Longs implements Kind {
        @Override
        @SuppressWarnings("unchecked")
        public TypeInformation<Object> type() {
            return (TypeInformation<Object>) (TypeInformation<?>) Types.LONG;
        }

        @Override
        public Object value(long number) {
            return number;
        }

        @Override
        public void add(Object value) {
            numbers += (Long) value;
        }
    }

    private static class UserKeys extends Longs {
        @Override
        public int entries() {
            return USER_KEYS;
        }
    }

    private static class Pojos implements Kind {
        @Override
        @SuppressWarnings("unchecked")
        public TypeInformation<Object> type() {
            return (TypeInformation<Object>) (TypeInformation<?>) Types.POJO(Visit.class);
        }

        @Override
        public Object value(long number) {
            Visit visit = new Visit();
            visit.id = number;
            visit.name = padded("name-", number);
            visit.city = number % 2 == 0 ? "Hamburg" : "Berlin";
            visit.score = number / 2.0;
            visit.count = (int) (number % 1000);
            visit.active = number % 2 == 0;
            visit.created = 1_700_000_000_000L + number;
            visit.note = number % 10 == 0 ? null : "a note of a visit";
            return visit;
        }

        @Override
        public void add(Object value) {
            Visit visit = (Visit) value;
            // The doubles are halves: what they add up to is exact.
            numbers += visit.id + (long) (2 * visit.score) + visit.count + visit.created;
            numbers += visit.active ? 1 : 0;
            texts += visit.name.length() + visit.city.length();
            texts += visit.note == null ? 0 : visit.note.length();
        }
    }

    private static class SqlRows implements Kind {
        @Override
        @SuppressWarnings("unchecked")
        public TypeInformation<Object> type() {
            return (TypeInformation<Object>)
                    (TypeInformation<?>)
                            InternalTypeInfo.ofFields(
                                    new BigIntType(),
                                    new VarCharType(VarCharType.MAX_LENGTH),
                                    new DecimalType(10, 2));
        }

        @Override
        public Object value(long number) {
            return GenericRowData.of(
                    number,
                    StringData.fromString(padded("a name of ", number)),
                    DecimalData.fromBigDecimal(BigDecimal.valueOf(number, 2), 10, 2));
        }

        @Override
        public void add(Object value) {
            RowData row = (RowData) value;
            numbers += row.getLong(0) + row.getDecimal(2, 10, 2).toUnscaledLong();
            texts += row.getString(1).toString().length();
        }
    }

    private static final Map<String, Kind> KINDS =
            Map.of(
                    "LONG", new Longs(),
                    "MAP", new UserKeys(),
                    "POJO", new Pojos(),
                    "SQL_ROW", new SqlRows());

    private static String padded(String start, long number) {
        String digits = Long.toString(number);
        return start + "000000000".substring(digits.length()) + digits;
    }

    private static ValueStateDescriptor<Object> values(Kind kind) {
        return new ValueStateDescriptor<>("s", kind.type());
    }

    private static MapStateDescriptor<String, Object> userKeys(Kind kind) {
        return new MapStateDescriptor<>("s", Types.STRING, kind.type());
    }

    /** Adds up what there is of each key, or of one alone. */
    private static class Sums extends KeyedStateReaderFunction<String, Long> {
        private final Kind kind;
        private final String wanted;
        private transient ValueState<Object> value;
        private transient MapState<String, Object> map;

        Sums(Kind kind, String wanted) {
            this.kind = kind;
            this.wanted = wanted;
        }

        @Override
        public void open(OpenContext context) throws Exception {
            if (kind.entries() == 1) {
                value = getRuntimeContext().getState(values(kind));
            } else {
                map = getRuntimeContext().getMapState(userKeys(kind));
            }
        }

        @Override
        public void readKey(String key, Context context, Collector<Long> out) throws Exception {
            if (wanted == null || wanted.equals(key)) {
                if (map == null) {
                    count += 1;
                    texts += key.length();
                    kind.add(value.value());
                } else {
                    for (Map.Entry<String, Object> entry : map.entries()) {
                        count += 1;
                        texts += key.length() + entry.getKey().length();
                        kind.add(entry.getValue());
                    }
                }
            }
            out.collect(1L);
        }
    }

    /** Reads each key as a row. */
    private static class Rows extends KeyedStateReaderFunction<String, Tuple2<String, Object>> {
        private final Kind kind;
        private transient ValueState<Object> value;

        Rows(Kind kind) {
            this.kind = kind;
        }

        @Override
        public void open(OpenContext context) throws Exception {
            value = getRuntimeContext().getState(values(kind));
        }

        @Override
        public void readKey(String key, Context context, Collector<Tuple2<String, Object>> out)
                throws Exception {
            out.collect(Tuple2.of(key, value.value()));
        }
    }

    /** Writes each row, of a map those of its user keys. */
    private static class Update
            extends KeyedStateBootstrapFunction<String, Tuple2<String, Object>> {
        private final Kind kind;
        private transient ValueState<Object> value;
        private transient MapState<String, Object> map;

        Update(Kind kind) {
            this.kind = kind;
        }

        @Override
        public void open(OpenContext context) throws Exception {
            if (kind.entries() == 1) {
                value = getRuntimeContext().getState(values(kind));
            } else {
                map = getRuntimeContext().getMapState(userKeys(kind));
            }
        }

        @Override
        public void processElement(Tuple2<String, Object> row, Context context) throws Exception {
            if (map == null) {
                value.update(row.f1);
                return;
            }
            for (int number = 0; number < kind.entries(); number++) {
                map.put("city-" + number, (Long) row.f1 * kind.entries() + number);
            }
        }
    }

    /** Takes its savepoint in the backend's own format, which the API's operator does not. */
    private static class NativeOperator
            extends KeyedStateBootstrapOperator<String, Tuple2<String, Object>> {
        private final long timestamp;
        private final Path path;

        NativeOperator(long timestamp, Path path, Update function) {
            super(0, timestamp, path, function);
            this.timestamp = timestamp;
            this.path = path;
        }

        @Override
        @SuppressWarnings({"unchecked", "rawtypes"})
        public void endInput() throws Exception {
            Configuration job = getContainingTask().getJobConfiguration();
            Object state =
                    SnapshotUtils.snapshot(
                            0,
                            this,
                            getRuntimeContext().getTaskInfo().getIndexOfThisSubtask(),
                            timestamp,
                            CheckpointingOptions.getCheckpointingMode(job),
                            CheckpointingOptions.isUnalignedCheckpointEnabled(job),
                            getContainingTask().getConfiguration().getConfiguration(),
                            path,
                            SavepointFormatType.NATIVE);
            output.collect(new StreamRecord(state));
        }
    }

    private static TypeInformation<Tuple2<String, Object>> rowType(Kind kind) {
        return new TupleTypeInfo<>(Types.STRING, kind.type());
    }

    private static void write(
            StreamExecutionEnvironment env,
            DataStream<Tuple2<String, Object>> rows,
            Kind kind,
            StateBackend backend,
            int maxParallelism,
            String path)
            throws Exception {
        var keyed =
                OperatorTransformation.bootstrapWith(rows)
                        .setMaxParallelism(maxParallelism)
                        .keyBy(row -> row.f0, Types.STRING);
        StateBootstrapTransformation<Tuple2<String, Object>> state;
        if (backend instanceof EmbeddedRocksDBStateBackend) {
            SavepointWriterOperatorFactory operators =
                    (timestamp, folder) ->
                            SimpleOperatorFactory.of(
                                    new NativeOperator(timestamp, folder, new Update(kind)));
            state = keyed.transform(operators);
        } else {
            state = keyed.transform(new Update(kind));
        }
        SavepointWriter.newSavepoint(env, backend, maxParallelism)
                .withOperator(OperatorIdentifier.forUid(UID), state)
                .write(path);
    }

    private static StreamExecutionEnvironment environment() {
        StreamExecutionEnvironment env =
                StreamExecutionEnvironment.getExecutionEnvironment(new Configuration());
        env.setParallelism(1);
        env.getConfig().enableObjectReuse();
        return env;
    }

    private static void read(
            StreamExecutionEnvironment env,
            Kind kind,
            StateBackend backend,
            String path,
            String wanted)
            throws Exception {
        SavepointReader.read(env, path, backend)
                .readKeyedState(
                        OperatorIdentifier.forUid(UID),
                        new Sums(kind, wanted),
                        Types.STRING,
                        Types.LONG)
                .sinkTo(new DiscardingSink<>());
    }

    /** Returns the CPU time of this process, its compilers and collector included. */
    private static long cpuNanos() {
        return ((OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean())
                .getProcessCpuTime();
    }

    /** Returns the CPU time of this process's compilers, of those that have not ended. */
    private static long compilerNanos() {
        long nanos = 0;
        File[] threads = new File("/proc/self/task").listFiles();
        for (File thread : threads) {
            try {
                if (Files.readString(thread.toPath().resolve("comm")).matches("C[12] .*\\s*")) {
                    String times = Files.readString(thread.toPath().resolve("schedstat"));
                    nanos += Long.parseLong(times.substring(0, times.indexOf(' ')));
                }
            } catch (IOException ended) {
                continue;  // before its file was opened, or while it was read
            }
        }
        return nanos;
    }

    public static void main(String[] arguments) throws Exception {
        Kind kind = KINDS.get(arguments[0]);
        StateBackend backend =
                arguments[1].equals("rocksdb")
                        ? new EmbeddedRocksDBStateBackend()
                        : new HashMapStateBackend();
        String verb = arguments[2];
        if (verb.equals("read")) {
            // Spark's side too has one process: what it takes to start is in the first path alone.
            for (String path : Arrays.copyOfRange(arguments, 3, arguments.length)) {
                count = numbers = texts = 0;
                long before = cpuNanos();
                long compiling = compilerNanos();
                StreamExecutionEnvironment env = environment();
                read(env, kind, backend, path, null);
                env.execute();
                String sums = count + " " + numbers + " " + texts;
                String took = (cpuNanos() - before) / 1e9 + " ";
                System.out.println(sums + " " + took + (compilerNanos() - compiling) / 1e9);
            }
            return;
        }
        String path = arguments[3];
        StreamExecutionEnvironment env = environment();
        switch (verb) {
            case "get":
                read(env, kind, backend, path, arguments[4]);
                break;
            case "write":
                long last = Long.parseLong(arguments[4]) / kind.entries() - 1;
                MapFunction<Long, Tuple2<String, Object>> row =
                        number -> Tuple2.of(padded("user-", number), kind.value(number));
                write(
                        env,
                        env.fromSequence(0, last).map(row).returns(rowType(kind)),
                        kind,
                        backend,
                        MAX_PARALLELISM,
                        path);
                break;
            default:
                DataStream<Tuple2<String, Object>> rows =
                        SavepointReader.read(env, path, backend)
                                .readKeyedState(
                                        OperatorIdentifier.forUid(UID),
                                        new Rows(kind),
                                        Types.STRING,
                                        rowType(kind));
                write(env, rows, kind, backend, NEW_MAX_PARALLELISM, arguments[4]);
        }
        env.execute();
        System.out.println(count + " " + numbers + " " + texts);
    }
}
