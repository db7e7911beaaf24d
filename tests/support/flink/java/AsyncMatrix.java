import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.v2.ListState;
import org.apache.flink.api.common.state.v2.ListStateDescriptor;
import org.apache.flink.api.common.state.v2.MapState;
import org.apache.flink.api.common.state.v2.MapStateDescriptor;
import org.apache.flink.api.common.state.v2.ValueState;
import org.apache.flink.api.common.state.v2.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.streaming.api.datastream.KeyedStream;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.util.Collector;

/** Runs the job of `Matrix.java` with the same state by the state API of Flink 2. */
public class AsyncMatrix implements Matrix.Functions {

    public static void main(String[] arguments) throws Exception {
        Matrix.answer(arguments, new AsyncMatrix());
    }

    @Override
    public KeyedProcessFunction<String, Tuple2<String, Long>, Void> plain() {
        return new Plain();
    }

    @Override
    public KeyedProcessFunction<String, Tuple2<String, Long>, Void> lines() {
        return new Lines();
    }

    @Override
    public <K> KeyedProcessFunction<K, Tuple2<String, Long>, Void> counted() {
        return new Counted<>();
    }

    @Override
    public <K> KeyedStream<Tuple2<String, Long>, K> stream(
            KeyedStream<Tuple2<String, Long>, K> keyed) {
        return keyed.enableAsyncState();
    }

    /** As `Matrix.Plain`. */
    public static class Plain extends KeyedProcessFunction<String, Tuple2<String, Long>, Void> {

        private transient ValueState<Long> value;
        private transient ListState<String> list;
        private transient MapState<String, Long> map;

        @Override
        public void open(OpenContext context) throws Exception {
            value =
                    getRuntimeContext().getState(new ValueStateDescriptor<>("value", Types.LONG));
            list =
                    getRuntimeContext()
                            .getListState(new ListStateDescriptor<>("list", Types.STRING));
            map =
                    getRuntimeContext()
                            .getMapState(
                                    new MapStateDescriptor<>("map", Types.STRING, Types.LONG));
        }

        @Override
        public void processElement(
                Tuple2<String, Long> event, Context context, Collector<Void> out) {
            String text = event.f0 + "," + event.f1;
            value.update(event.f1);
            list.add(text);
            map.put(text, event.f1);
            context.timerService().registerEventTimeTimer(Matrix.TIME + event.f1);
            Matrix.DONE.incrementAndGet();
        }
    }

    /** As `Matrix.Lines`. */
    public static class Lines extends KeyedProcessFunction<String, Tuple2<String, Long>, Void> {

        private transient ValueState<Matrix.Line> line;
        private transient ListState<Matrix.Line> lines;
        private transient MapState<Long, Matrix.Line> byNumber;

        @Override
        public void open(OpenContext context) throws Exception {
            line =
                    getRuntimeContext().getState(new ValueStateDescriptor<>("line", Matrix.LINE));
            lines =
                    getRuntimeContext()
                            .getListState(new ListStateDescriptor<>("lines", Matrix.LINE));
            byNumber =
                    getRuntimeContext()
                            .getMapState(
                                    new MapStateDescriptor<>(
                                            "by-number", Types.LONG, Matrix.LINE));
        }

        @Override
        public void processElement(
                Tuple2<String, Long> event, Context context, Collector<Void> out) {
            Matrix.Line sent = new Matrix.Line(event.f0, event.f1);
            line.update(sent);
            lines.add(sent);
            byNumber.put(event.f1, sent);
            Matrix.DONE.incrementAndGet();
        }
    }

    /** As `Matrix.Counted`. */
    public static class Counted<K> extends KeyedProcessFunction<K, Tuple2<String, Long>, Void> {

        private transient ValueState<Long> count;

        @Override
        public void open(OpenContext context) throws Exception {
            count =
                    getRuntimeContext().getState(new ValueStateDescriptor<>("count", Types.LONG));
        }

        @Override
        public void processElement(
                Tuple2<String, Long> event, Context context, Collector<Void> out) {
            count.update(event.f1);
            context.timerService().registerEventTimeTimer(Matrix.TIME + event.f1);
            Matrix.DONE.incrementAndGet();
        }
    }
}
