import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;
import org.apache.flink.api.common.JobID;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.state.AppendingState;
import org.apache.flink.api.common.state.BroadcastState;
import org.apache.flink.api.common.state.ListState;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.state.MapState;
import org.apache.flink.api.common.state.MapStateDescriptor;
import org.apache.flink.api.common.state.State;
import org.apache.flink.api.common.state.StateDescriptor;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.common.typeutils.TypeSerializer;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.core.execution.SavepointFormatType;
import org.apache.flink.core.memory.DataOutputSerializer;
import org.apache.flink.runtime.minicluster.MiniCluster;
import org.apache.flink.runtime.state.KeyedStateBackend;
import org.apache.flink.runtime.state.VoidNamespace;
import org.apache.flink.runtime.state.VoidNamespaceSerializer;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.operators.AbstractStreamOperator;
import org.apache.flink.streaming.api.operators.InternalTimer;
import org.apache.flink.streaming.api.operators.OneInputStreamOperator;
import org.apache.flink.streaming.api.operators.Triggerable;
import org.apache.flink.streaming.api.windowing.windows.TimeWindow;
import org.apache.flink.streaming.runtime.streamrecord.StreamRecord;
import org.apache.flink.util.ExceptionUtils;

/**
 * Jobs that put known values into their state, or restore it by types that are others by now.
 *
 * <p>A line has "options", "parallelism", "keys" (how many each operator is sent), "fills" (whether
 * it puts values there, else it reads them), "savepoint", unless the job starts without, "folder",
 * for the savepoint that it takes, unless it takes none, and "operators" with their "uid", "key" and "states": each has a
 * "name", "kind", "value" and, of a map, "user_key"; "ttl" in milliseconds; "namespace" for windows.
 * A kind of operator state is its mode, and one of timers is "TIMERS". Types are those of
 * `Verdicts`.
 *
 * <p>The answer has "refused", why Flink does not run the job, or null; the "path" of its
 * savepoint; and "rows": what is in each state of each key, as it was put there or is now, or why
 * Flink "refused" to register a state.
 */
public class EvolvedJobs {

    private static final List<Map<String, Object>> ROWS =
            Collections.synchronizedList(new ArrayList<>());
    private static final AtomicInteger OPENED = new AtomicInteger();
    private static final AtomicInteger DONE = new AtomicInteger();
    private static final TypeInformation<Tuple2<Integer, byte[]>> SENT =
            Types.TUPLE(Types.INT, Types.PRIMITIVE_ARRAY(Types.BYTE));

    public static void main(String[] arguments) throws Exception {
        LocalCluster.answerLines(arguments, EvolvedJobs::run);
    }

    private static byte[] key(String type, int number) throws Exception {
        DataOutputSerializer out = new DataOutputSerializer(32);
        serializer(type).serialize(EvolvedValues.make(type, number), out);
        return out.getCopyOfBuffer();
    }

    private static Map<String, Object> run(MiniCluster cluster, JsonNode task) throws Exception {
        ROWS.clear();
        OPENED.set(0);
        DONE.set(0);
        KeyFeed.clear();
        StreamExecutionEnvironment env = build(task);
        JobID id = cluster.submitJob(env.getStreamGraph().getJobGraph()).get().getJobID();
        int operators = task.get("operators").size();
        int opened = operators * task.get("parallelism").intValue();
        int keys = operators * task.get("keys").intValue();
        Map<String, Object> answer = new LinkedHashMap<>();
        String refused = LocalCluster.await(cluster, id, () -> opened - OPENED.get());
        if (refused == null) {
            refused = LocalCluster.await(cluster, id, () -> keys - DONE.get());
        }
        answer.put("refused", refused);
        if (refused == null) {
            if (task.has("folder")) {
                String folder = task.get("folder").textValue();
                SavepointFormatType canonical = SavepointFormatType.CANONICAL;
                answer.put("path", cluster.triggerSavepoint(id, folder, false, canonical).get());
            }
            cluster.cancelJob(id).get();
        }
        cluster.requestJobResult(id).get();
        answer.put("rows", new ArrayList<>(ROWS));
        return answer;
    }

    private static StreamExecutionEnvironment build(JsonNode task) throws Exception {
        Configuration settings = LocalCluster.settings(task.get("options"));
        if (task.has("savepoint")) {
            String path = FlinkApi.option("execution.state-recovery.path");
            settings.setString(path, task.get("savepoint").textValue());
            settings.setString("execution.state-recovery.ignore-unclaimed-state", "true");
        }
        StreamExecutionEnvironment env =
                StreamExecutionEnvironment.getExecutionEnvironment(settings);
        env.setParallelism(task.get("parallelism").intValue());
        env.setMaxParallelism(128);
        DataStream<Tuple2<Integer, byte[]>> sent =
                env.fromSource(new KeyFeed(), WatermarkStrategy.noWatermarks(), "keys", SENT)
                        .setParallelism(1)
                        .uid("keys");
        int number = 0;
        for (JsonNode operator : task.get("operators")) {
            int own = number++;
            String key = operator.get("key").textValue();
            TypeInformation<Object> type = type(key);
            sent.filter(one -> one.f0 == own)
                    .setParallelism(1)
                    .keyBy(new Restores.BytesToKey(type), type)
                    .transform("evolved", Types.LONG, new Evolved(operator, task))
                    .uid(operator.get("uid").textValue());
            for (int i = 0; i < task.get("keys").intValue(); i++) {
                KeyFeed.offer(own, key(key, i));
            }
        }
        return env;
    }

    @SuppressWarnings("unchecked")
    private static TypeSerializer<Object> serializer(String type) throws Exception {
        ClassLoader loader = EvolvedJobs.class.getClassLoader();
        return (TypeSerializer<Object>) new Verdicts(loader).serializer(type);
    }

    private static TypeInformation<Object> type(String type) throws Exception {
        return new StateTypes.SerializerInfo<>(serializer(type));
    }

    private static String causes(Throwable error) {
        return ExceptionUtils.stringifyException(error);
    }

    /** An operator of such a job. */
    static class Evolved extends AbstractStreamOperator<Long>
            implements OneInputStreamOperator<Tuple2<Integer, byte[]>, Long>,
                    Triggerable<Object, Object> {

        private final String specification;
        private final boolean fills;
        private transient JsonNode operator;
        private transient Map<String, StateDescriptor<?, ?>> registered;

        Evolved(JsonNode operator, JsonNode task) {
            specification = operator.toString();
            fills = task.get("fills").booleanValue();
        }

        @Override
        public void open() throws Exception {
            super.open();
            operator = LocalCluster.JSON.readTree(specification);
            registered = new LinkedHashMap<>();
            for (JsonNode state : operator.get("states")) {
                String name = state.get("name").textValue();
                try {
                    StateDescriptor<?, ?> descriptor = register(name, state);
                    if (descriptor != null) {
                        registered.put(name, descriptor);
                    }
                } catch (Exception error) {
                    row(name, "refused", causes(error));
                }
            }
            OPENED.incrementAndGet();
        }

        private void row(String state, String what, Object value) {
            Map<String, Object> row = new LinkedHashMap<>();
            row.put("operator", operator.get("uid").textValue());
            row.put("state", state);
            row.put(what, value);
            ROWS.add(row);
        }

        /** Registers a state; returns null for one that is not keyed, which is filled at once. */
        private StateDescriptor<?, ?> register(String name, JsonNode state) throws Exception {
            String kind = state.get("kind").textValue();
            if (kind.equals("TIMERS")) {
                getInternalTimerService(name, namespaces(state), this);
                return null;
            }
            boolean isListed = List.of("SPLIT_DISTRIBUTE", "UNION", "BROADCAST").contains(kind);
            StateDescriptor<?, ?> descriptor =
                    StateTypes.descriptor(
                            !isListed ? kind : kind.equals("BROADCAST") ? "MAP" : "LIST",
                            name,
                            state.has("user_key") ? type(state.get("user_key").textValue()) : null,
                            type(state.get("value").textValue()));
            if (isListed) {
                list(kind, descriptor, state);
                return null;
            }
            if (state.has("ttl")) {
                descriptor.enableTimeToLive(FlinkApi.ttl(state.get("ttl").longValue()));
            }
            KeyedStateBackend<Object> backend = getKeyedStateBackend();
            backend.getOrCreateKeyedState(namespaces(state), descriptor);
            try (Stream<Object> keys = backend.getKeys(name, namespace(state))) {
                row(name, "keys", keys.count());
            }
            return descriptor;
        }

        @SuppressWarnings("unchecked")
        private void list(String mode, StateDescriptor<?, ?> descriptor, JsonNode state)
                throws Exception {
            String value = state.get("value").textValue();
            if (mode.equals("BROADCAST")) {
                BroadcastState<Object, Object> map =
                        getOperatorStateBackend()
                                .getBroadcastState((MapStateDescriptor<Object, Object>) descriptor);
                for (int i = 0; fills && i < 3; i++) {
                    String userKey = state.get("user_key").textValue();
                    map.put(EvolvedValues.make(userKey, i), EvolvedValues.make(value, i));
                }
                map.entries();
                return;
            }
            ListStateDescriptor<Object> list = (ListStateDescriptor<Object>) descriptor;
            ListState<Object> elements =
                    mode.equals("UNION")
                            ? getOperatorStateBackend().getUnionListState(list)
                            : getOperatorStateBackend().getListState(list);
            for (int i = 0; fills && i < 3; i++) {
                elements.add(EvolvedValues.make(value, i));
            }
            elements.get();
        }

        @SuppressWarnings({"unchecked", "rawtypes"})
        private static TypeSerializer<Object> namespaces(JsonNode state) {
            TypeSerializer windows = new TimeWindow.Serializer();
            TypeSerializer none = VoidNamespaceSerializer.INSTANCE;
            return state.has("namespace") ? windows : none;
        }

        private static Object namespace(JsonNode state) {
            return state.has("namespace") ? new TimeWindow(0, 1000) : VoidNamespace.INSTANCE;
        }

        @Override
        @SuppressWarnings("unchecked")
        public void processElement(StreamRecord<Tuple2<Integer, byte[]>> record) throws Exception {
            int number = 0;
            String type = operator.get("key").textValue();
            while (fills && !Arrays.equals(record.getValue().f1, key(type, number))) {
                number++;
            }
            for (JsonNode state : operator.get("states")) {
                String name = state.get("name").textValue();
                StateDescriptor<?, ?> descriptor = registered.get(name);
                if (descriptor != null) {
                    State kept =
                            getKeyedStateBackend()
                                    .getPartitionedState(
                                            namespace(state),
                                            namespaces(state),
                                            (StateDescriptor<State, ?>) descriptor);
                    if (fills) {
                        fill(kept, state, number);
                    }
                    try {
                        read(name, kept);
                    } catch (Exception error) {
                        row(name, "unreadable", causes(error));
                    }
                }
            }
            DONE.incrementAndGet();
        }

        @SuppressWarnings("unchecked")
        private static void fill(State kept, JsonNode state, int number) throws Exception {
            String value = state.get("value").textValue();
            if (kept instanceof ValueState) {
                ((ValueState<Object>) kept).update(EvolvedValues.make(value, number));
            } else if (kept instanceof MapState) {
                String userKey = state.get("user_key").textValue();
                for (int i = 0; i < 2; i++) {
                    ((MapState<Object, Object>) kept)
                            .put(
                                    EvolvedValues.make(userKey, i),
                                    EvolvedValues.make(value, number + i));
                }
            } else if (!state.get("kind").textValue().equals("AGGREGATING")) {
                for (int i = 0; i < (kept instanceof ListState ? 2 : 1); i++) {
                    ((AppendingState<Object, Object>) kept)
                            .add(EvolvedValues.make(value, number + i));
                }
            }
        }

        private void read(String name, State kept) throws Exception {
            Object value;
            if (kept instanceof ValueState) {
                value = ((ValueState<?>) kept).value();
            } else if (kept instanceof MapState) {
                Map<Object, Object> copy = new LinkedHashMap<>();
                for (Map.Entry<?, ?> entry : ((MapState<?, ?>) kept).entries()) {
                    copy.put(entry.getKey(), entry.getValue());
                }
                value = copy;
            } else {
                value = ((AppendingState<?, ?>) kept).get();
            }
            if (value instanceof Iterable && kept instanceof ListState) {
                List<Object> copy = new ArrayList<>();
                ((Iterable<?>) value).forEach(copy::add);
                value = copy;
            }
            Map<String, Object> row = new LinkedHashMap<>();
            row.put("key", StateJson.of(getCurrentKey()));
            row.put("value", StateJson.of(value));
            row(name, "is", row);
        }

        @Override
        public void onEventTime(InternalTimer<Object, Object> timer) {}

        @Override
        public void onProcessingTime(InternalTimer<Object, Object> timer) {}
    }
}
