import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.flink.api.common.JobID;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.AggregateFunction;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.StateTtlConfig;
import org.apache.flink.api.common.state.v2.AggregatingState;
import org.apache.flink.api.common.state.v2.AggregatingStateDescriptor;
import org.apache.flink.api.common.state.v2.ListState;
import org.apache.flink.api.common.state.v2.ListStateDescriptor;
import org.apache.flink.api.common.state.v2.MapState;
import org.apache.flink.api.common.state.v2.MapStateDescriptor;
import org.apache.flink.api.common.state.v2.ReducingState;
import org.apache.flink.api.common.state.v2.ReducingStateDescriptor;
import org.apache.flink.api.common.state.v2.StateDescriptor;
import org.apache.flink.api.common.state.v2.ValueState;
import org.apache.flink.api.common.state.v2.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.core.execution.SavepointFormatType;
import org.apache.flink.runtime.minicluster.MiniCluster;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.datastream.KeyedStream;
import org.apache.flink.streaming.api.datastream.WindowedStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.streaming.api.functions.source.legacy.SourceFunction;
import org.apache.flink.streaming.api.windowing.assigners.TumblingEventTimeWindows;
import org.apache.flink.streaming.api.windowing.windows.TimeWindow;
import org.apache.flink.util.Collector;

/**
 * Runs a job whose state is of the state API of Flink 2 in one local cluster, and takes points.
 *
 * <p>Each line of standard input is a JSON object: "folder", "options", "is_async", "keys",
 * "numbers" (how many each key gets, from 1 on), "parallelism", "max_parallelism" and "points"
 * ("canonical", "native" or "checkpoint"). Each line of output has the paths of the points.
 */
public class AsyncStates {

    private static final AtomicInteger DONE = new AtomicInteger();

    private static final TypeInformation<Tuple2<String, Long>> EVENT =
            Types.TUPLE(Types.STRING, Types.LONG);

    public static void main(String[] arguments) throws Exception {
        LocalCluster.answerLines(arguments, AsyncStates::run);
        System.exit(0); // ForSt leaves threads behind that do not end
    }

    private static Map<String, String> run(MiniCluster cluster, JsonNode task) throws Exception {
        DONE.set(0);
        String folder = task.get("folder").textValue();
        Configuration settings = LocalCluster.settings(task.get("options"));
        settings.setString("execution.checkpointing.dir", folder);
        settings.setString("execution.checkpointing.interval", "1 h"); // so only when told to
        settings.setString(
                "execution.checkpointing.externalized-checkpoint-retention",
                "RETAIN_ON_CANCELLATION");
        StreamExecutionEnvironment env =
                StreamExecutionEnvironment.getExecutionEnvironment(settings);
        env.setParallelism(task.get("parallelism").intValue());
        env.setMaxParallelism(task.get("max_parallelism").intValue());
        int steps = build(env, task);
        JobID id = cluster.submitJob(env.getStreamGraph().getJobGraph()).get().getJobID();
        String failure = LocalCluster.await(cluster, id, () -> steps - DONE.get());
        if (failure != null) {
            throw new IllegalStateException(failure);
        }
        Map<String, String> paths = new HashMap<>();
        for (JsonNode point : task.get("points")) {
            String kind = point.textValue();
            try {
                paths.put(kind, take(cluster, id, kind, folder));
            } catch (ExecutionException notTaken) {
                failure = LocalCluster.await(cluster, id, () -> 0);
                paths.put(kind, String.valueOf(failure == null ? notTaken : failure));
                break;
            }
        }
        cluster.cancelJob(id).get();
        cluster.requestJobResult(id).get();
        return paths;
    }

    private static String take(MiniCluster cluster, JobID id, String kind, String folder)
            throws Exception {
        if (kind.equals("checkpoint")) {
            return cluster.triggerCheckpoint(id).get();
        }
        SavepointFormatType format = SavepointFormatType.valueOf(kind.toUpperCase());
        return cluster.triggerSavepoint(id, folder, false, format).get();
    }

    private static int build(StreamExecutionEnvironment env, JsonNode task) {
        ArrayList<String> keys = new ArrayList<>();
        task.get("keys").forEach(key -> keys.add(key.textValue()));
        long numbers = task.get("numbers").longValue();
        boolean isAsync = task.get("is_async").booleanValue();
        DataStream<Tuple2<String, Long>> events =
                env.addSource(new Numbers(keys, numbers), "numbers", EVENT)
                        .setParallelism(1)
                        .uid("numbers");
        KeyedStream<Tuple2<String, Long>, String> keyed = keyedBy(events, isAsync);
        keyed.process(new Remember(), Types.VOID).uid("states").sinkTo(new DiscardingSink<>());
        DataStream<Tuple2<String, Long>> timed =
                events.assignTimestampsAndWatermarks(
                                WatermarkStrategy.<Tuple2<String, Long>>noWatermarks()
                                        .withTimestampAssigner((event, unused) -> event.f1))
                        .uid("timestamps");
        windowed(timed, isAsync)
                .aggregate(new Sum(), Types.LONG, Types.LONG)
                .uid("sums")
                .sinkTo(new DiscardingSink<>());
        return (int) (2 * numbers * keys.size());
    }

    private static KeyedStream<Tuple2<String, Long>, String> keyedBy(
            DataStream<Tuple2<String, Long>> events, boolean isAsync) {
        KeyedStream<Tuple2<String, Long>, String> keyed =
                events.keyBy(event -> event.f0, Types.STRING);
        return isAsync ? keyed.enableAsyncState() : keyed;
    }

    private static WindowedStream<Tuple2<String, Long>, String, TimeWindow> windowed(
            DataStream<Tuple2<String, Long>> events, boolean isAsync) {
        WindowedStream<Tuple2<String, Long>, String, TimeWindow> windows =
                keyedBy(events, isAsync)
                        .window(TumblingEventTimeWindows.of(Duration.ofMillis(2)));
        return isAsync ? windows.enableAsyncState() : windows;
    }

    /** Emits each number with each key, then waits. */
    public static class Numbers implements SourceFunction<Tuple2<String, Long>> {

        private final ArrayList<String> keys;
        private final long numbers;
        private volatile boolean isCancelled;

        Numbers(ArrayList<String> keys, long numbers) {
            this.keys = keys;
            this.numbers = numbers;
        }

        @Override
        public void run(SourceContext<Tuple2<String, Long>> context) throws Exception {
            for (long number = 1; number <= numbers; number++) {
                for (String key : keys) {
                    synchronized (context.getCheckpointLock()) {
                        context.collect(Tuple2.of(key, number));
                    }
                }
            }
            while (!isCancelled) {
                Thread.sleep(10);
            }
        }

        @Override
        public void cancel() {
            isCancelled = true;
        }
    }

    /** Keeps state of each kind of the numbers of a key, and a timer. */
    public static class Remember extends KeyedProcessFunction<String, Tuple2<String, Long>, Void> {

        private transient ValueState<Long> value;
        private transient ValueState<String> keptValue;
        private transient ListState<String> list;
        private transient ListState<Long> keptList;
        private transient MapState<String, Long> map;
        private transient MapState<Long, String> keptMap;
        private transient ReducingState<Long> sum;
        private transient AggregatingState<Long, Long> total;

        private static <S extends StateDescriptor<?>> S kept(S descriptor) {
            descriptor.enableTimeToLive(
                    StateTtlConfig.newBuilder(Duration.ofDays(30_000)).build());
            return descriptor;
        }

        @Override
        public void open(OpenContext context) throws Exception {
            var states = getRuntimeContext();
            value = states.getState(new ValueStateDescriptor<>("value", Types.LONG));
            keptValue = states.getState(kept(new ValueStateDescriptor<>("kept-value", Types.STRING)));
            list = states.getListState(new ListStateDescriptor<>("list", Types.STRING));
            keptList = states.getListState(kept(new ListStateDescriptor<>("kept-list", Types.LONG)));
            map = states.getMapState(new MapStateDescriptor<>("map", Types.STRING, Types.LONG));
            keptMap =
                    states.getMapState(
                            kept(new MapStateDescriptor<>("kept-map", Types.LONG, Types.STRING)));
            sum =
                    states.getReducingState(
                            new ReducingStateDescriptor<>("sum", Long::sum, Types.LONG));
            total =
                    states.getAggregatingState(
                            new AggregatingStateDescriptor<>("total", new Total(), Types.LONG));
        }

        @Override
        public void processElement(
                Tuple2<String, Long> event, Context context, Collector<Void> out) {
            long number = event.f1;
            String text = event.f0 + "," + number; // the separator of lists is in it
            value.update(number);
            keptValue.update(text);
            list.add(text);
            keptList.add(number);
            map.put(text, number);
            keptMap.put(number, text);
            sum.add(number);
            total.add(number);
            context.timerService().registerEventTimeTimer(4_000_000_000_000L + number);
            DONE.incrementAndGet();
        }
    }

    /** Adds up ten times the numbers. */
    public static class Total implements AggregateFunction<Long, Long, Long> {

        @Override
        public Long createAccumulator() {
            return 0L;
        }

        @Override
        public Long add(Long number, Long sum) {
            return sum + 10 * number;
        }

        @Override
        public Long getResult(Long sum) {
            return sum;
        }

        @Override
        public Long merge(Long one, Long other) {
            return one + other;
        }
    }

    /** Adds up the numbers of a window. */
    public static class Sum implements AggregateFunction<Tuple2<String, Long>, Long, Long> {

        @Override
        public Long createAccumulator() {
            return 0L;
        }

        @Override
        public Long add(Tuple2<String, Long> event, Long sum) {
            DONE.incrementAndGet();
            return sum + event.f1;
        }

        @Override
        public Long getResult(Long sum) {
            return sum;
        }

        @Override
        public Long merge(Long one, Long other) {
            return one + other;
        }
    }
}
