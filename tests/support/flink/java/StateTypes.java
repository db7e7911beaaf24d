import java.io.InputStream;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.flink.api.common.functions.AggregateFunction;
import org.apache.flink.api.common.functions.ReduceFunction;
import org.apache.flink.api.common.state.AggregatingStateDescriptor;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.state.MapStateDescriptor;
import org.apache.flink.api.common.state.ReducingStateDescriptor;
import org.apache.flink.api.common.state.StateDescriptor;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.common.typeutils.CompositeTypeSerializerSnapshot;
import org.apache.flink.api.common.typeutils.TypeSerializer;
import org.apache.flink.api.common.typeutils.base.ListSerializer;
import org.apache.flink.api.common.typeutils.base.MapSerializer;
import org.apache.flink.api.java.typeutils.ListTypeInfo;
import org.apache.flink.core.memory.DataInputViewStreamWrapper;
import org.apache.flink.runtime.checkpoint.OperatorState;
import org.apache.flink.runtime.checkpoint.OperatorSubtaskState;
import org.apache.flink.runtime.state.KeyGroupsStateHandle;
import org.apache.flink.runtime.state.KeyedBackendSerializationProxy;
import org.apache.flink.runtime.state.KeyedStateHandle;
import org.apache.flink.runtime.state.VoidNamespaceSerializer;
import org.apache.flink.runtime.state.metainfo.StateMetaInfoSnapshot;
import org.apache.flink.runtime.state.metainfo.StateMetaInfoSnapshot.BackendStateType;
import org.apache.flink.runtime.state.metainfo.StateMetaInfoSnapshot.CommonOptionsKeys;
import org.apache.flink.runtime.state.metainfo.StateMetaInfoSnapshot.CommonSerializerKeys;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.table.runtime.typeutils.InternalSerializers;
import org.apache.flink.table.types.logical.utils.LogicalTypeParser;

/** What an operator registers: as a job would by types, or as a savepoint's header has it. */
public class StateTypes implements Serializable {

    /** The type of the keys, null of an operator without. */
    public final TypeInformation<Object> key;

    public final List<State> states = new ArrayList<>();
    public final List<Timers> timers = new ArrayList<>();
    public final List<NonKeyedState> nonKeyedStates = new ArrayList<>();

    private StateTypes(TypeInformation<Object> key) {
        this.key = key;
    }

    /** A state with the serializer of its namespace. */
    public static class State implements Serializable {

        public final StateDescriptor<?, ?> descriptor;
        public final TypeInformation<Object> value;
        public final TypeSerializer<Object> namespace;

        State(
                StateDescriptor<?, ?> descriptor,
                TypeInformation<Object> value,
                TypeSerializer<?> namespace) {
            this.descriptor = descriptor;
            this.value = value;
            this.namespace = cast(namespace);
        }

        public boolean hasNamespaces() {
            return !namespace.equals(VoidNamespaceSerializer.INSTANCE);
        }
    }

    /** A timer service, and which of its two kinds of timers were in the savepoint. */
    public static class Timers implements Serializable {

        public final String name;
        public final TypeSerializer<Object> namespace;

        Timers(String name, TypeSerializer<?> namespace) {
            this.name = name;
            this.namespace = cast(namespace);
        }
    }

    /** A state of an operator, not of a key, of the mode SPLIT_DISTRIBUTE, UNION or BROADCAST. */
    public static class NonKeyedState implements Serializable {

        public final String mode;
        public final StateDescriptor<?, ?> descriptor;

        NonKeyedState(String mode, StateDescriptor<?, ?> descriptor) {
            this.mode = mode;
            this.descriptor = descriptor;
        }
    }

    /** Reads the types of a task's operator: "key", "states" and "operator_states". */
    public static StateTypes ofTask(JsonNode operator) {
        StateTypes types =
                new StateTypes(operator.has("key") ? cast(type(operator.get("key"))) : null);
        for (JsonNode one : operator.path("operator_states")) {
            String mode = one.get("kind").textValue();
            types.nonKeyedStates.add(
                    new NonKeyedState(
                            mode,
                            descriptor(
                                    mode.equals("BROADCAST") ? "MAP" : "LIST",
                                    one.get("name").textValue(),
                                    one.has("user_key") ? cast(type(one.get("user_key"))) : null,
                                    cast(type(one.get("value"))))));
        }
        for (JsonNode one : operator.get("states")) {
            TypeInformation<Object> value = cast(type(one.get("value")));
            StateDescriptor<?, ?> descriptor =
                    descriptor(
                            one.get("kind").textValue(),
                            one.get("name").textValue(),
                            one.has("user_key") ? cast(type(one.get("user_key"))) : null,
                            value);
            if (one.has("ttl")) {
                descriptor.enableTimeToLive(FlinkApi.ttl(one.get("ttl").longValue()));
            }
            types.states.add(new State(descriptor, value, VoidNamespaceSerializer.INSTANCE));
        }
        for (JsonNode service : operator.path("timers")) {
            types.timers.add(new Timers(service.textValue(), VoidNamespaceSerializer.INSTANCE));
        }
        return types;
    }

    /** Reads the headers of an operator's canonical keyed state; null where there is none. */
    public static StateTypes ofHeaders(OperatorState operator) throws Exception {
        StateTypes types = null;
        Map<String, StateMetaInfoSnapshot> found = new LinkedHashMap<>();
        for (OperatorSubtaskState subtask : operator.getStates()) {
            for (KeyedStateHandle handle : subtask.getManagedKeyedState()) {
                KeyedBackendSerializationProxy<?> header =
                        new KeyedBackendSerializationProxy<>(StateTypes.class.getClassLoader());
                try (InputStream in = ((KeyGroupsStateHandle) handle).openInputStream()) {
                    header.read(new DataInputViewStreamWrapper(in));
                }
                for (StateMetaInfoSnapshot state : header.getStateMetaInfoSnapshots()) {
                    found.putIfAbsent(state.getName(), state);
                }
                if (types == null) {
                    TypeSerializer<?> key = header.getKeySerializerSnapshot().restoreSerializer();
                    types = new StateTypes(cast(new SerializerInfo<>(key)));
                }
            }
        }
        for (StateMetaInfoSnapshot state : found.values()) {
            types.add(state);
        }
        return types;
    }

    private void add(StateMetaInfoSnapshot state) {
        String name = state.getName();
        if (state.getBackendStateType() == BackendStateType.PRIORITY_QUEUE) {
            // Timers of a service are two queues: _timer_state/event_NAME, .../processing_NAME.
            String service = name.substring(name.indexOf('_', "_timer_state/".length()) + 1);
            if (timers.stream().noneMatch(one -> one.name.equals(service))) {
                CompositeTypeSerializerSnapshot<?, ?> timer =
                        (CompositeTypeSerializerSnapshot<?, ?>)
                                state.getTypeSerializerSnapshot(
                                        CommonSerializerKeys.VALUE_SERIALIZER);
                timers.add(
                        new Timers(
                                service,
                                timer.getNestedSerializerSnapshots()[1].restoreSerializer()));
            }
            return;
        }
        TypeSerializer<?> value =
                state.getTypeSerializerSnapshot(CommonSerializerKeys.VALUE_SERIALIZER)
                        .restoreSerializer();
        String kind = state.getOption(CommonOptionsKeys.KEYED_STATE_TYPE);
        TypeSerializer<?> userKey = null;
        if (kind.equals("MAP")) {
            userKey = ((MapSerializer<?, ?>) value).getKeySerializer();
            value = ((MapSerializer<?, ?>) value).getValueSerializer();
        } else if (kind.equals("LIST")) {
            value = ((ListSerializer<?>) value).getElementSerializer();
        }
        TypeInformation<Object> type = cast(new SerializerInfo<>(value));
        states.add(
                new State(
                        descriptor(
                                kind,
                                name,
                                userKey == null ? null : cast(new SerializerInfo<>(userKey)),
                                type),
                        type,
                        state.getTypeSerializerSnapshot(CommonSerializerKeys.NAMESPACE_SERIALIZER)
                                .restoreSerializer()));
    }

    static StateDescriptor<?, ?> descriptor(
            String kind,
            String name,
            TypeInformation<Object> userKey,
            TypeInformation<Object> value) {
        switch (kind) {
            case "VALUE":
                return new ValueStateDescriptor<>(name, value);
            case "LIST":
                return new ListStateDescriptor<>(name, value);
            case "MAP":
                return new MapStateDescriptor<>(name, userKey, value);
            case "REDUCING":
                ReduceFunction<Object> latest = (one, other) -> other;
                return new ReducingStateDescriptor<>(name, latest, value);
            case "AGGREGATING":
                return new AggregatingStateDescriptor<>(name, new Accumulator(), value);
            default:
                throw new IllegalArgumentException(kind);
        }
    }

    /** Reads a type: the name of one of `Types`, or an object with one entry. */
    private static TypeInformation<?> type(JsonNode json) {
        if (json.isTextual()) {
            String name = json.textValue();
            if (name.equals("BYTES")) {
                return Types.PRIMITIVE_ARRAY(Types.BYTE);
            }
            try {
                return (TypeInformation<?>) Types.class.getField(name).get(null);
            } catch (ReflectiveOperationException unknown) {
                throw new IllegalArgumentException(name, unknown);
            }
        }
        String of = json.fieldNames().next();
        JsonNode inner = json.get(of);
        if (of.equals("sql")) {
            ClassLoader loader = StateTypes.class.getClassLoader();
            return new SerializerInfo<>(
                    InternalSerializers.create(
                            LogicalTypeParser.parse(inner.textValue(), loader)));
        }
        List<TypeInformation<?>> parts = new ArrayList<>();
        inner.forEach(part -> parts.add(type(part)));
        TypeInformation<?>[] all = parts.toArray(new TypeInformation<?>[0]);
        switch (of) {
            case "TUPLE":
                return Types.TUPLE(all);
            case "ROW":
                return Types.ROW(all);
            case "LIST":
                return new ListTypeInfo<>(all[0]);
            case "MAP":
                return Types.MAP(all[0], all[1]);
            default:
                throw new IllegalArgumentException(of);
        }
    }

    @SuppressWarnings("unchecked")
    private static TypeInformation<Object> cast(TypeInformation<?> type) {
        return (TypeInformation<Object>) type;
    }

    @SuppressWarnings("unchecked")
    private static TypeSerializer<Object> cast(TypeSerializer<?> serializer) {
        return (TypeSerializer<Object>) serializer;
    }

    /** Shows the accumulator itself, and leaves it as it is. */
    public static class Accumulator implements AggregateFunction<Object, Object, Object> {

        @Override
        public Object createAccumulator() {
            throw new IllegalStateException("no accumulator was restored");
        }

        @Override
        public Object add(Object value, Object accumulator) {
            return accumulator;
        }

        @Override
        public Object getResult(Object accumulator) {
            return accumulator;
        }

        @Override
        public Object merge(Object one, Object other) {
            throw new IllegalStateException("nothing is to be merged");
        }
    }

    /** A type that has a certain serializer. */
    public static class SerializerInfo<T> extends FlinkApi.Serialized<T> {

        private final TypeSerializer<T> serializer;

        SerializerInfo(TypeSerializer<T> serializer) {
            this.serializer = serializer;
        }

        @Override
        TypeSerializer<T> serializer() {
            return serializer.duplicate();
        }

        @Override
        public boolean isBasicType() {
            return false;
        }

        @Override
        public boolean isTupleType() {
            return false;
        }

        @Override
        public int getArity() {
            return 1;
        }

        @Override
        public int getTotalFields() {
            return 1;
        }

        @Override
        @SuppressWarnings("unchecked")
        public Class<T> getTypeClass() {
            return (Class<T>) Object.class;
        }

        @Override
        public boolean isKeyType() {
            return true;
        }

        @Override
        public String toString() {
            return serializer.toString();
        }

        @Override
        public boolean equals(Object other) {
            return other instanceof SerializerInfo
                    && serializer.equals(((SerializerInfo<?>) other).serializer);
        }

        @Override
        public int hashCode() {
            return serializer.hashCode();
        }

        @Override
        public boolean canEqual(Object other) {
            return other instanceof SerializerInfo;
        }
    }
}
