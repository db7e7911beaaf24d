import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.lang.reflect.Proxy;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import org.apache.flink.api.common.ExecutionConfig;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.functions.RuntimeContext;
import org.apache.flink.api.common.functions.SerializerFactory;
import org.apache.flink.api.common.state.MapStateDescriptor;
import org.apache.flink.api.common.state.State;
import org.apache.flink.api.common.state.StateDescriptor;
import org.apache.flink.api.common.state.StateTtlConfig;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.common.typeutils.TypeSerializer;
import org.apache.flink.api.dag.Transformation;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.core.fs.CloseableRegistry;
import org.apache.flink.runtime.state.DefaultKeyedStateStore;
import org.apache.flink.runtime.state.KeyGroupRange;
import org.apache.flink.runtime.state.LocalRecoveryConfig;
import org.apache.flink.runtime.state.UncompressedStreamCompressionDecorator;
import org.apache.flink.runtime.state.heap.HeapKeyedStateBackend;
import org.apache.flink.runtime.state.heap.HeapKeyedStateBackendBuilder;
import org.apache.flink.runtime.state.heap.HeapPriorityQueueSetFactory;
import org.apache.flink.runtime.state.metrics.LatencyTrackingStateConfig;
import org.apache.flink.runtime.state.metrics.SizeTrackingStateConfig;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.streaming.api.TimeDomain;
import org.apache.flink.streaming.api.TimerService;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.streaming.api.operators.AbstractUdfStreamOperator;
import org.apache.flink.streaming.api.operators.SimpleOperatorFactory;
import org.apache.flink.streaming.api.operators.StreamOperator;
import org.apache.flink.streaming.api.transformations.OneInputTransformation;
import org.apache.flink.table.api.Table;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.apache.flink.table.data.GenericRowData;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.data.StringData;
import org.apache.flink.table.runtime.context.ExecutionContext;
import org.apache.flink.table.runtime.functions.KeyedProcessFunctionWithCleanupState;
import org.apache.flink.table.runtime.operators.aggregate.GroupAggFunction;
import org.apache.flink.table.runtime.operators.bundle.AbstractMapBundleOperator;
import org.apache.flink.table.runtime.operators.bundle.MapBundleFunction;
import org.apache.flink.table.runtime.typeutils.InternalTypeInfo;
import org.apache.flink.table.types.logical.BigIntType;
import org.apache.flink.types.Row;
import org.apache.flink.types.RowKind;
import org.apache.flink.util.Collector;
import org.apache.flink.util.OutputTag;

/**
 * Answers what Flink SQL's GROUP BY emits for histories of changes, with a clock that is told.
 *
 * <p>Standard input has JSON, line by line. An object is a job: "sql" over a view "changes" of the
 * columns k and v, the "type" of v, the types of the "results", "mini_batch", and "min_retention"
 * with "max_retention" or "ttl" with "update_type" in milliseconds.
 * The planner makes the function of the query (GroupAggFunction or MiniBatchGroupAggFunction),
 * which runs here on Flink's own heap state, TTL included. An array is a history of one key
 * of that job, of [time, [[kind, value], ...]]; for each a line is printed: for each of its batches
 * an array of what was emitted, [kind, result, ...].
 *
 * <p>The clean-up timer, which GroupAggFunction had until 1.11, is that of a subclass of
 * KeyedProcessFunctionWithCleanupState, which moves and fires it as that GroupAggFunction did.
 */
public class GroupAggregates {

    private static final ObjectMapper JSON = new ObjectMapper();
    private static final long FOREVER = 1L << 50; // milliseconds

    private static long now;

    public static void main(String[] arguments) throws Exception {
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        System.setOut(System.err); // whatever Flink logs
        BufferedReader in =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        Job job = null;
        long key = 0;
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JsonNode given = JSON.readTree(line);
            if (given.isObject()) {
                job = new Job(given);
            } else {
                out.println(JSON.writeValueAsString(job.run(key++, given)));
            }
        }
        out.flush();
    }

    /** The function of one query, and its state. */
    private static class Job implements Collector<RowData> {

        private final String type;
        private final List<String> results = new ArrayList<>();
        private final boolean takesValue; // or the planner drops the column
        private final HeapKeyedStateBackend<RowData> backend;
        private final List<State> states = new ArrayList<>();
        private final Timers timers = new Timers();
        private final CleanUp cleanUp;
        private GroupAggFunction perRow;
        private MapBundleFunction<RowData, List<RowData>, RowData, RowData> perBatch;
        private List<List<Object>> emitted;

        Job(JsonNode task) throws Exception {
            type = task.get("type").textValue();
            task.get("results").forEach(result -> results.add(result.textValue()));
            takesValue = task.get("sql").textValue().contains("v)");
            ClassLoader loader = GroupAggregates.class.getClassLoader();
            TypeSerializer<RowData> keys =
                    InternalTypeInfo.<RowData>ofFields(new BigIntType()).toSerializer();
            KeyGroupRange range = new KeyGroupRange(0, 127);
            backend =
                    new HeapKeyedStateBackendBuilder<>(
                                    null,
                                    keys,
                                    loader,
                                    128,
                                    range,
                                    new ExecutionConfig(),
                                    () -> now,
                                    LatencyTrackingStateConfig.disabled(),
                                    SizeTrackingStateConfig.disabled(),
                                    List.of(),
                                    UncompressedStreamCompressionDecorator.INSTANCE,
                                    LocalRecoveryConfig.BACKUP_AND_RECOVERY_DISABLED,
                                    new HeapPriorityQueueSetFactory(range, 128, 128),
                                    false,
                                    new CloseableRegistry())
                            .build();
            RuntimeContext context = context(loader, task);
            boolean retains = task.has("min_retention");
            Object function = planned(task, retains ? FOREVER : task.path("ttl").longValue());
            if (function instanceof GroupAggFunction) {
                perRow = (GroupAggFunction) function;
                perRow.setRuntimeContext(context);
                perRow.open((OpenContext) null);
            } else {
                perBatch = cast(function);
                perBatch.open(new BundleContext(context));
            }
            cleanUp =
                    new CleanUp(
                            task.path("min_retention").longValue(),
                            task.path("max_retention").longValue());
            List<State> ofTheFunction = List.copyOf(states);
            cleanUp.setRuntimeContext(context);
            cleanUp.open(ofTheFunction);
        }

        /** What the planner of this Flink makes of the query: its function. */
        private Object planned(JsonNode task, long ttl) throws Exception {
            StreamExecutionEnvironment env = StreamExecutionEnvironment.createLocalEnvironment(1);
            StreamTableEnvironment tables = StreamTableEnvironment.create(env);
            Configuration settings = new Configuration();
            settings.setString("table.exec.state.ttl", ttl + " ms");
            if (task.get("mini_batch").booleanValue()) {
                settings.setString("table.exec.mini-batch.enabled", "true");
                settings.setString("table.exec.mini-batch.allow-latency", "1 s");
                settings.setString("table.exec.mini-batch.size", "1000000");
                settings.setString("table.optimizer.agg-phase-strategy", "ONE_PHASE");
            }
            tables.getConfig().addConfiguration(settings);
            TypeInformation<Row> rows =
                    Types.ROW_NAMED(new String[] {"k", "v"}, Types.LONG, typeInfo(type));
            tables.createTemporaryView(
                    "changes",
                    tables.fromChangelogStream(env.fromData(List.of(Row.of(1L, null)), rows)));
            Table result = tables.sqlQuery(task.get("sql").textValue());
            Object function = find(tables.toChangelogStream(result).getTransformation());
            if (function == null) {
                throw new IllegalStateException(result.explain());
            }
            return function;
        }

        private static Object find(Transformation<?> transformation) throws Exception {
            if (transformation instanceof OneInputTransformation) {
                OneInputTransformation<?, ?> one = (OneInputTransformation<?, ?>) transformation;
                if (one.getOperatorFactory() instanceof SimpleOperatorFactory) {
                    StreamOperator<?> operator =
                            ((SimpleOperatorFactory<?>) one.getOperatorFactory()).getOperator();
                    if (operator instanceof AbstractUdfStreamOperator) {
                        Object function =
                                ((AbstractUdfStreamOperator<?, ?>) operator).getUserFunction();
                        if (function instanceof GroupAggFunction) {
                            return function;
                        }
                    }
                    if (operator instanceof AbstractMapBundleOperator) {
                        Field field = AbstractMapBundleOperator.class.getDeclaredField("function");
                        field.setAccessible(true);
                        return field.get(operator);
                    }
                }
            }
            for (Transformation<?> input : transformation.getInputs()) {
                Object found = find(input);
                if (found != null) {
                    return found;
                }
            }
            return null;
        }

        /** A context whose state is Flink's own, with the update type that the task names. */
        private RuntimeContext context(ClassLoader loader, JsonNode task) {
            SerializerFactory serializers =
                    new SerializerFactory() {
                        @Override
                        public <T> TypeSerializer<T> createSerializer(TypeInformation<T> info) {
                            return info.createSerializer(
                                    new ExecutionConfig().getSerializerConfig());
                        }
                    };
            DefaultKeyedStateStore store = new DefaultKeyedStateStore(backend, serializers);
            String updateType = task.path("update_type").asText("OnCreateAndWrite");
            return (RuntimeContext)
                    Proxy.newProxyInstance(
                            loader,
                            new Class<?>[] {RuntimeContext.class},
                            (proxy, method, given) -> {
                                if (method.getName().equals("getUserCodeClassLoader")) {
                                    return loader;
                                }
                                StateDescriptor<?, ?> state = (StateDescriptor<?, ?>) given[0];
                                if (state.getTtlConfig().isEnabled()) {
                                    state.enableTimeToLive(
                                            StateTtlConfig.newBuilder(
                                                            state.getTtlConfig().getTimeToLive())
                                                    .setUpdateType(
                                                            StateTtlConfig.UpdateType.valueOf(
                                                                    updateType))
                                                    .neverReturnExpired()
                                                    .build());
                                }
                                State made =
                                        method.getName().equals("getMapState")
                                                ? store.getMapState(
                                                        (MapStateDescriptor<?, ?>) state)
                                                : store.getState((ValueStateDescriptor<?>) state);
                                states.add(made);
                                return made;
                            });
        }

        List<List<List<Object>>> run(long number, JsonNode history) throws Exception {
            RowData key = GenericRowData.of(number);
            RowData binaryKey =
                    backend.getKeySerializer().copy(
                            InternalTypeInfo.ofFields(new BigIntType())
                                    .toRowSerializer()
                                    .toBinaryRow(key));
            backend.setCurrentKey(binaryKey);
            timers.times.clear();
            List<List<List<Object>>> batches = new ArrayList<>();
            for (JsonNode batch : history) {
                long time = batch.get(0).longValue();
                while (!timers.times.isEmpty() && timers.times.first() <= time) {
                    now = timers.times.pollFirst();
                    cleanUp.onTimer(now, cleanUp.timer(binaryKey), this);
                }
                now = time;
                emitted = new ArrayList<>();
                List<RowData> rows = new ArrayList<>();
                for (JsonNode change : batch.get(1)) {
                    GenericRowData row =
                            takesValue
                                    ? GenericRowData.of(number, value(change.get(1)))
                                    : GenericRowData.of(number);
                    row.setRowKind(kind(change.get(0).textValue()));
                    rows.add(row);
                    cleanUp.processElement(row, cleanUp.element(binaryKey), this);
                    if (perRow != null) {
                        perRow.processElement(row, new Element(perRow, binaryKey).context, this);
                    }
                }
                if (perBatch != null && !rows.isEmpty()) {
                    Map<RowData, List<RowData>> bundle = new LinkedHashMap<>();
                    List<RowData> buffered = null;
                    for (RowData row : rows) {
                        buffered = perBatch.addInput(buffered, row);
                    }
                    bundle.put(binaryKey, buffered);
                    perBatch.finishBundle(bundle, this);
                }
                batches.add(emitted);
            }
            return batches;
        }

        @Override
        public void collect(RowData row) {
            List<Object> change = new ArrayList<>();
            change.add(row.getRowKind().shortString());
            for (int i = 1; i <= results.size(); i++) {
                change.add(row.isNullAt(i) ? null : field(row, i));
            }
            emitted.add(change);
        }

        private Object field(RowData row, int i) {
            switch (results.get(i - 1)) {
                case "TINYINT":
                    return row.getByte(i);
                case "SMALLINT":
                    return row.getShort(i);
                case "INT":
                    return row.getInt(i);
                case "DOUBLE":
                    return Double.toString(row.getDouble(i));
                case "STRING":
                    return new String(row.getString(i).toBytes(), StandardCharsets.UTF_8);
                case "DATE":
                    return row.getInt(i);
                default:
                    return row.getLong(i);
            }
        }

        private Object value(JsonNode value) {
            if (value.isNull()) {
                return null;
            }
            switch (type) {
                case "TINYINT":
                    return (byte) value.intValue();
                case "SMALLINT":
                    return (short) value.intValue();
                case "INT":
                case "DATE":
                    return value.intValue();
                case "DOUBLE":
                    return Double.valueOf(value.textValue());
                case "STRING":
                    // In bytes, as behind the exchange of a job: two strings in Java's form are
                    // compared by UTF-16, and toString() would put them into that form.
                    return StringData.fromBytes(
                            value.textValue().getBytes(StandardCharsets.UTF_8));
                default:
                    return value.longValue();
            }
        }

        @Override
        public void close() {}

        private class BundleContext implements ExecutionContext {

            private final RuntimeContext context;

            BundleContext(RuntimeContext context) {
                this.context = context;
            }

            @Override
            public RowData currentKey() {
                return backend.getCurrentKey();
            }

            @Override
            public void setCurrentKey(RowData key) {
                backend.setCurrentKey(key);
            }

            @Override
            public RuntimeContext getRuntimeContext() {
                return context;
            }
        }

        /** The timers of one key. */
        private static class Timers implements TimerService {

            private final TreeSet<Long> times = new TreeSet<>();

            @Override
            public long currentProcessingTime() {
                return now;
            }

            @Override
            public long currentWatermark() {
                return Long.MIN_VALUE;
            }

            @Override
            public void registerProcessingTimeTimer(long time) {
                times.add(time);
            }

            @Override
            public void registerEventTimeTimer(long time) {
                throw new UnsupportedOperationException();
            }

            @Override
            public void deleteProcessingTimeTimer(long time) {
                times.remove(time);
            }

            @Override
            public void deleteEventTimeTimer(long time) {
                throw new UnsupportedOperationException();
            }
        }

        /** The context of an element for the planned function. */
        private class Element {

            private final KeyedProcessFunction<RowData, RowData, RowData>.Context context;

            Element(KeyedProcessFunction<RowData, RowData, RowData> function, RowData key) {
                context =
                        function.new Context() {
                            @Override
                            public Long timestamp() {
                                return null;
                            }

                            @Override
                            public TimerService timerService() {
                                return timers;
                            }

                            @Override
                            public <X> void output(
                                    OutputTag<X> tag, X value) {
                                throw new UnsupportedOperationException();
                            }

                            @Override
                            public RowData getCurrentKey() {
                                return key;
                            }
                        };
            }
        }

        /** Moves and fires the timer where GroupAggFunction did until Flink 1.11. */
        private class CleanUp
                extends KeyedProcessFunctionWithCleanupState<RowData, RowData, RowData> {

            private State[] toClear;

            CleanUp(long minRetentionTime, long maxRetentionTime) {
                super(minRetentionTime, maxRetentionTime);
            }

            void open(List<State> ofTheFunction) {
                toClear = ofTheFunction.toArray(new State[0]);
                initCleanupTimeState("GroupAggregateCleanupTime");
            }

            Context element(RowData key) {
                return new Element(this, key).context;
            }

            OnTimerContext timer(RowData key) {
                return new OnTimerContext() {
                    @Override
                    public TimeDomain timeDomain() {
                        return TimeDomain.PROCESSING_TIME;
                    }

                    @Override
                    public Long timestamp() {
                        return now;
                    }

                    @Override
                    public TimerService timerService() {
                        return timers;
                    }

                    @Override
                    public <X> void output(OutputTag<X> tag, X value) {
                        throw new UnsupportedOperationException();
                    }

                    @Override
                    public RowData getCurrentKey() {
                        return key;
                    }
                };
            }

            @Override
            public void processElement(RowData row, Context context, Collector<RowData> out)
                    throws Exception {
                registerProcessingCleanupTimer(
                        context, context.timerService().currentProcessingTime());
            }

            @Override
            public void onTimer(long time, OnTimerContext context, Collector<RowData> out) {
                if (stateCleaningEnabled) {
                    cleanupState(toClear);
                }
            }
        }
    }

    private static RowKind kind(String text) {
        for (RowKind kind : RowKind.values()) {
            if (kind.shortString().equals(text)) {
                return kind;
            }
        }
        throw new IllegalArgumentException(text);
    }

    private static TypeInformation<?> typeInfo(String type) {
        switch (type) {
            case "TINYINT":
                return Types.BYTE;
            case "SMALLINT":
                return Types.SHORT;
            case "INT":
                return Types.INT;
            case "DOUBLE":
                return Types.DOUBLE;
            case "STRING":
                return Types.STRING;
            case "DATE":
                return Types.LOCAL_DATE;
            default:
                return Types.LONG;
        }
    }

    @SuppressWarnings("unchecked")
    private static <T> T cast(Object thing) {
        return (T) thing;
    }
}
