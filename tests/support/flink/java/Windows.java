import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.flink.api.common.functions.FlatMapFunction;
import org.apache.flink.api.common.functions.ReduceFunction;
import org.apache.flink.api.common.state.AggregatingStateDescriptor;
import org.apache.flink.api.common.state.ReducingStateDescriptor;
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
import org.apache.flink.streaming.api.windowing.assigners.ProcessingTimeSessionWindows;
import org.apache.flink.streaming.api.windowing.assigners.SlidingEventTimeWindows;
import org.apache.flink.streaming.api.windowing.assigners.SlidingProcessingTimeWindows;
import org.apache.flink.streaming.api.windowing.assigners.TumblingEventTimeWindows;
import org.apache.flink.streaming.api.windowing.assigners.TumblingProcessingTimeWindows;
import org.apache.flink.streaming.api.windowing.assigners.WindowAssigner;
import org.apache.flink.streaming.api.windowing.evictors.CountEvictor;
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
        boolean isAggregated = contents.descriptor instanceof AggregatingStateDescriptor;
        // Elements of a list, and reduced values, are what the stream has: none is added, but to
        // windows that end with one, which are of what is sent.
        KeyedStream keyed =
                isAggregated || window.has("count")
                        ? keys.keyBy(new Restores.BytesToKey(types.key), types.key)
                        : keys.flatMap(
                                        (FlatMapFunction<Tuple2<Integer, byte[]>, Object>)
                                                (one, out) -> {})
                                .returns(type)
                                .keyBy(any -> any, types.key);
        WindowedStream windowed = windowed(keyed, window);
        if (window.has("lateness")) {
            windowed = windowed.allowedLateness(FlinkApi.time(window.get("lateness").longValue()));
        }
        if (window.path("evictor").asBoolean()) {
            windowed = windowed.evictor(CountEvictor.of(Long.MAX_VALUE));
        }
        if (isAggregated) {
            return windowed.aggregate(
                    new StateTypes.Accumulator(), new Closed(label, false), type, type, Types.LONG);
        }
        if (contents.descriptor instanceof ReducingStateDescriptor) {
            ReduceFunction<Object> first = (one, other) -> one;
            return windowed.reduce(first, new Closed(label, false), Types.LONG);
        }
        return windowed.process(new Closed(label, true), Types.LONG);
    }

    @SuppressWarnings({"rawtypes", "unchecked"})
    private static WindowedStream windowed(KeyedStream keyed, JsonNode window) {
        if (!window.has("count")) {
            return keyed.window(assigner(window));
        }
        long count = window.get("count").longValue();
        return window.has("slide")
                ? keyed.countWindow(count, window.get("slide").longValue())
                : keyed.countWindow(count);
    }

    /** Adds what says that time has ended behind the windows. */
    @SuppressWarnings("unchecked")
    static SingleOutputStreamOperator<Long> end(SingleOutputStreamOperator<?> windows) {
        return ((SingleOutputStreamOperator<Long>) windows)
                .transform("end", Types.LONG, new End());
    }

    @SuppressWarnings("rawtypes")
    private static WindowAssigner assigner(JsonNode window) {
        var size = FlinkApi.time(window.get("size").longValue());
        var offset = FlinkApi.time(window.path("offset").longValue());
        var slide = FlinkApi.time(window.path("slide").longValue());
        boolean isEventTime = !window.path("time").asText("event").equals("processing");
        switch (window.get("kind").textValue()) {
            case "tumbling":
                return isEventTime
                        ? TumblingEventTimeWindows.of(size, offset)
                        : TumblingProcessingTimeWindows.of(size, offset);
            case "sliding":
                return isEventTime
                        ? SlidingEventTimeWindows.of(size, slide, offset)
                        : SlidingProcessingTimeWindows.of(size, slide, offset);
            case "session":
                return isEventTime
                        ? EventTimeSessionWindows.withGap(size)
                        : ProcessingTimeSessionWindows.withGap(size);
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
            row.put("subtask", FlinkApi.subtask(getRuntimeContext()));
            row.put("key", StateJson.of(key));
            row.put("namespace", StateJson.of(context.window()));
            row.put("value", StateJson.of(isList ? contents : contents.get(0)));
            row.put("watermark", context.currentWatermark());
            Restores.write(row);
            Restores.CLOSED.incrementAndGet();
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
