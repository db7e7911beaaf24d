import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.flink.api.common.functions.FlatMapFunction;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.datastream.KeyedStream;
import org.apache.flink.streaming.api.datastream.SingleOutputStreamOperator;
import org.apache.flink.streaming.api.datastream.WindowedStream;
import org.apache.flink.streaming.api.functions.windowing.ProcessWindowFunction;
import org.apache.flink.streaming.api.operators.AbstractStreamOperator;
import org.apache.flink.streaming.api.operators.OneInputStreamOperator;
import org.apache.flink.streaming.api.watermark.Watermark;
import org.apache.flink.streaming.api.windowing.assigners.EventTimeSessionWindows;
import org.apache.flink.streaming.api.windowing.assigners.SlidingEventTimeWindows;
import org.apache.flink.streaming.api.windowing.assigners.TumblingEventTimeWindows;
import org.apache.flink.streaming.api.windowing.assigners.WindowAssigner;
import org.apache.flink.streaming.api.windowing.windows.Window;
import org.apache.flink.streaming.runtime.streamrecord.StreamRecord;
import org.apache.flink.util.Collector;

/** Makes the window operators of the recorded savepoints' jobs, and writes down what closes. */
public class Windows {

    private Windows() {}

    /** Adds a window operator to a job, of the contents that a savepoint's header names. */
    @SuppressWarnings({"rawtypes", "unchecked"})
    static SingleOutputStreamOperator<Long> add(
            DataStream<Tuple2<Integer, byte[]>> keys,
            String label,
            JsonNode window,
            StateTypes types) {
        StateTypes.State contents =
                types.states.stream()
                        .filter(one -> one.descriptor.getName().equals("window-contents"))
                        .findFirst()
                        .get();
        TypeInformation<Object> type = contents.value;
        if (contents.descriptor instanceof ListStateDescriptor) {
            // Its elements are what the stream has; none is added.
            KeyedStream<Object, Object> keyed =
                    keys.flatMap((FlatMapFunction<Tuple2<Integer, byte[]>, Object>) (one, out) -> {})
                            .returns(type)
                            .keyBy(any -> any, types.key);
            WindowedStream windowed = keyed.window(assigner(window));
            return windowed.process(new Closed(label, true), Types.LONG);
        }
        KeyedStream<Tuple2<Integer, byte[]>, Object> keyed =
                keys.keyBy(new Restores.BytesToKey(types.key), types.key);
        WindowedStream windowed =
                window.has("count")
                        ? keyed.countWindow(window.get("count").longValue())
                        : keyed.window(assigner(window));
        return windowed.aggregate(
                new StateTypes.Accumulator(), new Closed(label, false), type, type, Types.LONG);
    }

    /** Adds what says that time has ended behind the windows. */
    @SuppressWarnings("unchecked")
    static SingleOutputStreamOperator<Long> end(SingleOutputStreamOperator<?> windows) {
        return ((SingleOutputStreamOperator<Long>) windows)
                .transform("end", Types.LONG, new End());
    }

    @SuppressWarnings("rawtypes")
    private static WindowAssigner assigner(JsonNode window) {
        Duration size = Duration.ofMillis(window.get("size").longValue());
        switch (window.get("kind").textValue()) {
            case "tumbling":
                return TumblingEventTimeWindows.of(size);
            case "sliding":
                return SlidingEventTimeWindows.of(
                        size, Duration.ofMillis(window.get("slide").longValue()));
            case "session":
                return EventTimeSessionWindows.withGap(size);
            default:
                throw new IllegalArgumentException(window.toString());
        }
    }

    /** Writes down a window that closes, with what was in it. */
    static class Closed extends ProcessWindowFunction<Object, Long, Object, Window> {

        private final String label;
        private final boolean isList;

        Closed(String label, boolean isList) {
            this.label = label;
            this.isList = isList;
        }

        @Override
        public void process(
                Object key, Context context, Iterable<Object> elements, Collector<Long> out)
                throws Exception {
            List<Object> contents = new ArrayList<>();
            elements.forEach(contents::add);
            Map<String, Object> row = new LinkedHashMap<>();
            row.put("way", "closed");
            row.put("operator", label);
            row.put("subtask", getRuntimeContext().getTaskInfo().getIndexOfThisSubtask());
            row.put("key", StateJson.of(key));
            row.put("namespace", StateJson.of(context.window()));
            row.put("value", StateJson.of(isList ? contents : contents.get(0)));
            Restores.write(row);
        }
    }

    /** Says when time has ended behind the windows. */
    static class End extends AbstractStreamOperator<Long>
            implements OneInputStreamOperator<Long, Long> {

        @Override
        public void processElement(StreamRecord<Long> record) {}

        @Override
        public void processWatermark(Watermark mark) throws Exception {
            super.processWatermark(mark);
            Restores.ENDED.incrementAndGet();
        }
    }
}
