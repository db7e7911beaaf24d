import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.flink.api.common.state.AggregatingStateDescriptor;
import org.apache.flink.api.common.state.AppendingState;
import org.apache.flink.api.common.state.ListState;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.state.MapState;
import org.apache.flink.api.common.state.MapStateDescriptor;
import org.apache.flink.api.common.state.ReducingStateDescriptor;
import org.apache.flink.api.common.state.State;
import org.apache.flink.api.common.state.StateDescriptor;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeutils.TypeSerializer;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.core.memory.DataOutputSerializer;
import org.apache.flink.runtime.state.KeyGroupRangeAssignment;
import org.apache.flink.runtime.state.KeyedStateBackend;
import org.apache.flink.runtime.state.OperatorStateBackend;
import org.apache.flink.runtime.state.VoidNamespace;
import org.apache.flink.runtime.state.ttl.TtlValue;
import org.apache.flink.streaming.api.operators.AbstractStreamOperator;
import org.apache.flink.streaming.api.operators.InternalTimer;
import org.apache.flink.streaming.api.operators.InternalTimerService;
import org.apache.flink.streaming.api.operators.OneInputStreamOperator;
import org.apache.flink.streaming.api.operators.Triggerable;
import org.apache.flink.streaming.api.watermark.Watermark;
import org.apache.flink.streaming.runtime.streamrecord.StreamRecord;

/**
 * Writes down what was restored into its state.
 *
 * <p>When it opens, before any timer can fire: the elements of its operator state ("operator"),
 * every key that its backend has ("backend"), and the timers. For each key that is sent to it: what
 * the runtime context's state says of it ("keyed"). When time ends: the timers that fire ("fired").
 */
public class RestoredState extends AbstractStreamOperator<Long>
        implements OneInputStreamOperator<Tuple2<Integer, byte[]>, Long>,
                Triggerable<Object, Object> {

    private final int number;
    private final String label;
    private final StateTypes types;
    private transient TypeSerializer<Object> keySerializer;
    private transient long watermark;

    RestoredState(int number, String label, StateTypes types) {
        this.number = number;
        this.label = label;
        this.types = types;
    }

    @Override
    public void open() throws Exception {
        super.open();
        for (StateTypes.NonKeyedState state : types.nonKeyedStates) {
            writeAll(state);
        }
        watermark = Long.MIN_VALUE;
        KeyedStateBackend<Object> backend = getKeyedStateBackend();
        if (backend != null) {
            keySerializer = backend.getKeySerializer();
        }
        for (StateTypes.State state : types.states) {
            writeAll(backend, state);
        }
        for (StateTypes.Timers timers : types.timers) {
            InternalTimerService<Object> service =
                    getInternalTimerService(timers.name, timers.namespace, this);
            service.forEachEventTimeTimer(
                    (namespace, time) -> writeTimer("backend", "event", timers, namespace, time));
            service.forEachProcessingTimeTimer(
                    (namespace, time) ->
                            writeTimer("backend", "processing", timers, namespace, time));
        }
        Restores.OPENED.incrementAndGet();
    }

    @SuppressWarnings("unchecked")
    private void writeAll(StateTypes.NonKeyedState state) throws Exception {
        OperatorStateBackend backend = getOperatorStateBackend();
        if (state.mode.equals("BROADCAST")) {
            for (Map.Entry<?, ?> entry :
                    backend.getBroadcastState((MapStateDescriptor<?, ?>) state.descriptor)
                            .entries()) {
                writeElement(state, entry.getKey(), entry.getValue());
            }
            return;
        }
        ListStateDescriptor<Object> list = (ListStateDescriptor<Object>) state.descriptor;
        ListState<Object> elements =
                state.mode.equals("UNION")
                        ? backend.getUnionListState(list)
                        : backend.getListState(list);
        for (Object element : elements.get()) {
            writeElement(state, null, element);
        }
    }

    private void writeElement(StateTypes.NonKeyedState state, Object userKey, Object value)
            throws Exception {
        Map<String, Object> row = new LinkedHashMap<>();
        row.put("way", "operator");
        row.put("operator", label);
        row.put("subtask", FlinkApi.subtask(getRuntimeContext()));
        row.put("state", state.descriptor.getName());
        row.put("kind", state.mode);
        row.put("user_key", StateJson.of(userKey));
        row.put("value", StateJson.of(value));
        Restores.write(row);
    }

    private void writeAll(KeyedStateBackend<Object> backend, StateTypes.State state)
            throws Exception {
        // What is asked for by key must be registered first.
        backend.getOrCreateKeyedState(state.namespace, state.descriptor);
        List<Tuple2<Object, Object>> found;
        try (Stream<Tuple2<Object, Object>> all =
                backend.getKeysAndNamespaces(state.descriptor.getName())) {
            found = all.collect(Collectors.toList());
        }
        for (Tuple2<Object, Object> one : found) {
            backend.setCurrentKey(one.f0);
            State kept = inNamespace(backend, one.f1, state.namespace, state.descriptor);
            write("backend", state.descriptor, one.f1, kept);
            Restores.found(number, bytes(one.f0));
            if (state.hasNamespaces()) {
                Restores.found(number, bytes(one.f0), state.descriptor.getName(), one.f1);
            }
        }
    }

    @SuppressWarnings("unchecked")
    private static State inNamespace(
            KeyedStateBackend<Object> backend,
            Object namespace,
            TypeSerializer<Object> serializer,
            StateDescriptor<?, ?> descriptor)
            throws Exception {
        return backend.getPartitionedState(
                namespace, serializer, (StateDescriptor<State, ?>) descriptor);
    }

    @Override
    public void processElement(StreamRecord<Tuple2<Integer, byte[]>> record) throws Exception {
        byte[] key = record.getValue().f1;
        KeyedStateBackend<Object> backend = getKeyedStateBackend();
        for (StateTypes.State state : types.states) {
            if (!state.hasNamespaces()) {
                write("keyed", state.descriptor, VoidNamespace.INSTANCE, of(state.descriptor));
                continue;
            }
            Set<Object> namespaces = Restores.namespaces(number, key, state.descriptor.getName());
            for (Object namespace : namespaces) {
                State kept = inNamespace(backend, namespace, state.namespace, state.descriptor);
                write("keyed", state.descriptor, namespace, kept);
            }
        }
        Restores.READ.incrementAndGet();
    }

    /** Returns the current key's state as any function would get it. */
    @SuppressWarnings("unchecked")
    private State of(StateDescriptor<?, ?> descriptor) {
        if (descriptor instanceof ValueStateDescriptor) {
            return getRuntimeContext().getState((ValueStateDescriptor<Object>) descriptor);
        }
        if (descriptor instanceof ListStateDescriptor) {
            return getRuntimeContext().getListState((ListStateDescriptor<Object>) descriptor);
        }
        if (descriptor instanceof MapStateDescriptor) {
            return getRuntimeContext()
                    .getMapState((MapStateDescriptor<Object, Object>) descriptor);
        }
        if (descriptor instanceof ReducingStateDescriptor) {
            return getRuntimeContext()
                    .getReducingState((ReducingStateDescriptor<Object>) descriptor);
        }
        return getRuntimeContext()
                .getAggregatingState(
                        (AggregatingStateDescriptor<Object, Object, Object>) descriptor);
    }

    private void write(String way, StateDescriptor<?, ?> descriptor, Object namespace, State state)
            throws Exception {
        String name = descriptor.getName();
        String kind = descriptor.getType().name();
        if (state instanceof MapState) {
            for (Map.Entry<?, ?> entry : ((MapState<?, ?>) state).entries()) {
                Map<String, Object> row = row(way, name, kind, namespace);
                row.put("user_key", StateJson.of(entry.getKey()));
                writeValue(row, entry.getValue());
            }
            return;
        }
        Object value =
                state instanceof ValueState
                        ? ((ValueState<?>) state).value()
                        : ((AppendingState<?, ?>) state).get();
        if (state instanceof ListState && value != null) {
            List<Object> elements = new ArrayList<>();
            ((Iterable<?>) value).forEach(elements::add);
            value = elements.isEmpty() ? null : elements;
        }
        if (value != null) {
            writeValue(row(way, name, kind, namespace), value);
        }
    }

    private static void writeValue(Map<String, Object> row, Object value) throws Exception {
        Object plain = value;
        if (value instanceof TtlValue) {
            row.put("ttl_timestamp", ((TtlValue<?>) value).getLastAccessTimestamp());
            plain = ((TtlValue<?>) value).getUserValue();
        }
        row.put("value", StateJson.of(plain));
        Restores.write(row);
    }

    private void writeTimer(
            String way, String domain, StateTypes.Timers timers, Object namespace, long time)
            throws Exception {
        String name = "_timer_state/" + domain + "_" + timers.name;
        Map<String, Object> row = row(way, name, "PRIORITY_QUEUE", namespace);
        row.put("timestamp", time);
        row.put("watermark", watermark);
        Restores.write(row);
    }

    private Map<String, Object> row(String way, String state, String kind, Object namespace)
            throws Exception {
        Map<String, Object> row = new LinkedHashMap<>();
        row.put("way", way);
        row.put("operator", label);
        row.put("subtask", FlinkApi.subtask(getRuntimeContext()));
        row.put("state", state);
        row.put("kind", kind);
        row.put(
                "key_group",
                KeyGroupRangeAssignment.assignToKeyGroup(
                        getCurrentKey(),
                        FlinkApi.maxParallelism(getRuntimeContext())));
        row.put("key", StateJson.of(getCurrentKey()));
        row.put("namespace", StateJson.of(namespace));
        return row;
    }

    private byte[] bytes(Object key) throws Exception {
        DataOutputSerializer out = new DataOutputSerializer(32);
        keySerializer.serialize(key, out);
        return out.getCopyOfBuffer();
    }

    @Override
    public void onEventTime(InternalTimer<Object, Object> timer) throws Exception {
        onTimer("event", timer);
    }

    @Override
    public void onProcessingTime(InternalTimer<Object, Object> timer) throws Exception {
        onTimer("processing", timer);
    }

    private void onTimer(String domain, InternalTimer<Object, Object> timer) throws Exception {
        // No operator here has timers of two services.
        writeTimer("fired", domain, types.timers.get(0), timer.getNamespace(), timer.getTimestamp());
        Restores.CLOSED.incrementAndGet();
    }

    @Override
    public void processWatermark(Watermark mark) throws Exception {
        watermark = mark.getTimestamp();
        super.processWatermark(mark);
        Restores.ENDED.incrementAndGet();
    }
}
