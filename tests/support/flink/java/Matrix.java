import java.io.Serializable;
import java.lang.reflect.Method;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.time.LocalDate;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.flink.api.common.JobID;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.FlatMapFunction;
import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.api.common.state.BroadcastState;
import org.apache.flink.api.common.state.ListState;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.state.MapStateDescriptor;
import org.apache.flink.api.common.state.OperatorStateStore;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.connector.source.lib.NumberSequenceSource;
import org.apache.flink.api.java.functions.KeySelector;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.runtime.minicluster.MiniCluster;
import org.apache.flink.runtime.state.FunctionInitializationContext;
import org.apache.flink.runtime.state.FunctionSnapshotContext;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.streaming.api.checkpoint.CheckpointedFunction;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.datastream.KeyedStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.util.Collector;
import org.apache.flink.util.ExceptionUtils;

/**
 * Runs a job with state of each place in which Kryo can be, and takes one point of it.
 *
 * <p>Each line of standard input is a JSON object: "folder", "options", "keys", "numbers" (how many
 * each key gets, from 1 on), "parallelism", "max_parallelism", "flood" (how many records more are
 * sent to an operator that is slow), "kind" ("canonical", "native" or "checkpoint") and, if there is
 * to be an operator of them, "has_days". Each line of output has the "path" of the point, or why it was "refused". This compiles with Flink 1.13 and
 * all later ones.
 */
public class Matrix {

    static final AtomicInteger DONE = new AtomicInteger();
    static final long TIME = 4_000_000_000_000L;

    static final TypeInformation<Tuple2<String, Long>> EVENT =
            Types.TUPLE(Types.STRING, Types.LONG);
    static final TypeInformation<Line> LINE = Types.GENERIC(Line.class);

    private static final String FLOOD = "flood";
    private static final AtomicInteger SLOW = new AtomicInteger();

    /** The functions of the job, by the API of state that they use. */
    interface Functions {

        KeyedProcessFunction<String, Tuple2<String, Long>, Void> plain();

        KeyedProcessFunction<String, Tuple2<String, Long>, Void> lines();

        <K> KeyedProcessFunction<K, Tuple2<String, Long>, Void> counted();

        <K> KeyedStream<Tuple2<String, Long>, K> stream(
                KeyedStream<Tuple2<String, Long>, K> keyed);
    }

    public static void main(String[] arguments) throws Exception {
        answer(arguments, new OfTheFirstApi());
    }

    static void answer(String[] arguments, Functions functions) throws Exception {
        LocalCluster.answerLines(
                arguments,
                (cluster, task) -> {
                    try {
                        return Map.of("path", run(cluster, task, functions));
                    } catch (Exception error) {
                        return Map.of("refused", ExceptionUtils.stringifyException(error));
                    }
                });
        System.exit(0); // ForSt leaves threads behind that do not end
    }

    private static String run(MiniCluster cluster, JsonNode task, Functions functions)
            throws Exception {
        DONE.set(0);
        SLOW.set(0);
        String folder = task.get("folder").textValue();
        Configuration settings = LocalCluster.settings(task.get("options"));
        settings.setString(FlinkApi.option("execution.checkpointing.dir"), folder);
        settings.setString("execution.checkpointing.interval",
                method("triggerCheckpoint") == null ? "1 s" : "1 h");
        settings.setString(
                "execution.checkpointing.externalized-checkpoint-retention",
                "RETAIN_ON_CANCELLATION");
        StreamExecutionEnvironment env =
                StreamExecutionEnvironment.getExecutionEnvironment(settings);
        env.setParallelism(task.get("parallelism").intValue());
        env.setMaxParallelism(task.get("max_parallelism").intValue());
        int steps = build(env, task, functions);
        JobID id = cluster.submitJob(env.getStreamGraph().getJobGraph()).get().getJobID();
        int slow = task.get("flood").intValue() > 0 ? 1 : 0;
        String failure =
                LocalCluster.await(
                        cluster, id, () -> steps - DONE.get() + Math.max(0, slow - SLOW.get()));
        if (failure != null) {
            throw new IllegalStateException(failure);
        }
        try {
            return take(cluster, id, task.get("kind").textValue(), folder);
        } finally {
            failure = LocalCluster.await(cluster, id, () -> 0);
            if (failure == null) {
                cluster.cancelJob(id).get();
            }
            cluster.requestJobResult(id).get();
            if (failure != null) {
                throw new IllegalStateException(failure);
            }
        }
    }

    private static String take(MiniCluster cluster, JobID id, String kind, String folder)
            throws Exception {
        if (!kind.equals("checkpoint")) {
            Method savepoint = method("triggerSavepoint");
            Class<?>[] types = savepoint.getParameterTypes();
            return types.length == 3 // until 1.14, which has the canonical format alone
                    ? path(savepoint.invoke(cluster, id, folder, false))
                    : path(savepoint.invoke(cluster, id, folder, false, format(types[3], kind)));
        }
        Method checkpoint = method("triggerCheckpoint");
        return checkpoint == null
                ? awaitCheckpoint(Paths.get(URI.create(folder)))
                : path(checkpoint.invoke(cluster, id));
    }

    private static Method method(String name) {
        return Stream.of(MiniCluster.class.getMethods())
                .filter(one -> one.getName().equals(name))
                .min(Comparator.comparing(Method::getParameterCount))
                .orElse(null);
    }

    @SuppressWarnings("unchecked")
    private static String path(Object triggered) throws Exception {
        return ((CompletableFuture<String>) triggered).get();
    }

    private static Object format(Class<?> type, String kind) {
        return Stream.of(type.getEnumConstants())
                .filter(one -> one.toString().equalsIgnoreCase(kind))
                .findFirst()
                .get();
    }

    /** Waits for the second checkpoint from now on, which is one of all that is there now. */
    private static String awaitCheckpoint(Path folder) throws Exception {
        long first = -1;
        while (true) {
            try (Stream<Path> paths = Files.walk(folder)) {
                List<Path> found =
                        paths.filter(path -> path.endsWith("_metadata"))
                                .map(Path::getParent)
                                .collect(Collectors.toList());
                for (Path path : found) {
                    long number = Long.parseLong(path.getFileName().toString().substring(4));
                    first = first < 0 ? number : first;
                    if (number > first + 1) {
                        return path.toUri().toString();
                    }
                }
            }
            Thread.sleep(10);
        }
    }

    private static int build(StreamExecutionEnvironment env, JsonNode task, Functions functions) {
        ArrayList<String> keys = new ArrayList<>();
        task.get("keys").forEach(key -> keys.add(key.textValue()));
        int numbers = task.get("numbers").intValue();
        int flood = task.get("flood").intValue();
        DataStream<Tuple2<String, Long>> events =
                env.fromSource(
                                new NumberSequenceSource(0, Long.MAX_VALUE - 1),
                                WatermarkStrategy.noWatermarks(),
                                "numbers")
                        .setParallelism(1)
                        .uid("numbers")
                        .flatMap(new Events(keys, numbers, flood))
                        .returns(EVENT)
                        .setParallelism(1)
                        .uid("events");
        if (flood > 0) {
            events.rebalance()
                    .map(new Slow())
                    .setParallelism(1)
                    .uid("slow");
        }
        DataStream<Tuple2<String, Long>> its =
                events.filter(event -> !event.f0.equals(FLOOD)).setParallelism(1);
        functions
                .stream(its.keyBy(event -> event.f0, Types.STRING))
                .process(functions.plain(), Types.VOID)
                .uid("plain");
        functions
                .stream(its.keyBy(event -> event.f0, Types.STRING))
                .process(functions.lines(), Types.VOID)
                .uid("lines");
        KeySelector<Tuple2<String, Long>, UUID> named =
                event -> UUID.nameUUIDFromBytes(event.f0.getBytes(StandardCharsets.UTF_8));
        functions
                .stream(its.keyBy(named, Types.GENERIC(UUID.class)))
                .process(functions.<UUID>counted(), Types.VOID)
                .uid("by-uuid");
        KeySelector<Tuple2<String, Long>, Line> line =
                event -> new Line(event.f0, event.f0.length());
        functions
                .stream(its.keyBy(line, LINE))
                .process(functions.<Line>counted(), Types.VOID)
                .uid("by-line");
        if (!task.path("has_days").asBoolean()) {
            return 4 * numbers * keys.size();
        }
        KeySelector<Tuple2<String, Long>, Day> day =
                event -> new Day(event.f0, LocalDate.EPOCH.plusDays(event.f0.length()));
        functions
                .stream(its.keyBy(day, TypeInformation.of(Day.class)))
                .process(functions.<Day>counted(), Types.VOID)
                .uid("by-day");
        return 5 * numbers * keys.size();
    }

    /** A class of the job. */
    public static class Line implements Serializable {

        public String sku;
        public long amount;

        public Line() {}

        Line(String sku, long amount) {
            this.sku = sku;
            this.amount = amount;
        }

        @Override
        public boolean equals(Object other) {
            return other instanceof Line
                    && sku.equals(((Line) other).sku)
                    && amount == ((Line) other).amount;
        }

        @Override
        public int hashCode() {
            return 31 * sku.hashCode() + (int) amount;
        }

        @Override
        public String toString() {
            return sku + "=" + amount;
        }
    }

    /** A POJO, in which Kryo writes the date. */
    public static class Day {

        public String name;
        public LocalDate date;

        public Day() {}

        Day(String name, LocalDate date) {
            this.name = name;
            this.date = date;
        }

        @Override
        public boolean equals(Object other) {
            return other instanceof Day
                    && name.equals(((Day) other).name)
                    && date.equals(((Day) other).date);
        }

        @Override
        public int hashCode() {
            return 31 * name.hashCode() + date.hashCode();
        }

        @Override
        public String toString() {
            return name + " on " + date;
        }
    }

    /** Emits each number with each key, then the flood, then nothing more; has operator state. */
    public static class Events
            implements FlatMapFunction<Long, Tuple2<String, Long>>, CheckpointedFunction {

        private final ArrayList<String> keys;
        private final int numbers;
        private final int flood;
        private transient ListState<Long> offsets;
        private transient ListState<String> names;
        private transient ListState<Line> lines;
        private transient BroadcastState<String, Line> rules;

        Events(ArrayList<String> keys, int numbers, int flood) {
            this.keys = keys;
            this.numbers = numbers;
            this.flood = flood;
        }

        @Override
        public void initializeState(FunctionInitializationContext context) throws Exception {
            OperatorStateStore store = context.getOperatorStateStore();
            offsets = store.getListState(new ListStateDescriptor<>("offsets", Types.LONG));
            names = store.getUnionListState(new ListStateDescriptor<>("names", Types.STRING));
            lines = store.getListState(new ListStateDescriptor<>("lines", LINE));
            rules =
                    store.getBroadcastState(new MapStateDescriptor<>("rules", Types.STRING, LINE));
        }

        @Override
        public void snapshotState(FunctionSnapshotContext context) throws Exception {
            offsets.clear();
            names.clear();
            lines.clear();
            for (int i = 0; i < keys.size(); i++) {
                offsets.add(1_000L + i);
                names.add(keys.get(i));
                lines.add(new Line(keys.get(i), i));
                rules.put(keys.get(i), new Line("rule " + i, i));
            }
        }

        @Override
        public void flatMap(Long at, Collector<Tuple2<String, Long>> out) throws Exception {
            if (at < (long) numbers * keys.size()) {
                String key = keys.get((int) (at % keys.size()));
                out.collect(Tuple2.of(key, 1 + at / keys.size()));
            } else if (at < (long) numbers * keys.size() + flood) {
                out.collect(Tuple2.of(FLOOD, at));
            } else {
                Thread.sleep(5);
            }
        }
    }

    /** Takes so long for a record that there are others before it when a barrier comes. */
    public static class Slow implements MapFunction<Tuple2<String, Long>, Long> {

        @Override
        public Long map(Tuple2<String, Long> event) throws Exception {
            if (event.f0.equals(FLOOD)) {
                SLOW.incrementAndGet();
                Thread.sleep(100);
            }
            return event.f1;
        }
    }

    /** Uses the state API of Flink 1. */
    private static class OfTheFirstApi implements Functions {

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
            return keyed;
        }
    }

    /** Keeps state without Kryo, and timers. It has no `open`, whose argument is another in 2. */
    public static class Plain extends KeyedProcessFunction<String, Tuple2<String, Long>, Void> {

        @Override
        public void processElement(
                Tuple2<String, Long> event, Context context, Collector<Void> out)
                throws Exception {
            String text = event.f0 + "," + event.f1; // the separator of lists is in it
            getRuntimeContext()
                    .getState(new ValueStateDescriptor<>("value", Types.LONG))
                    .update(event.f1);
            getRuntimeContext()
                    .getListState(new ListStateDescriptor<>("list", Types.STRING))
                    .add(text);
            getRuntimeContext()
                    .getMapState(new MapStateDescriptor<>("map", Types.STRING, Types.LONG))
                    .put(text, event.f1);
            context.timerService().registerEventTimeTimer(TIME + event.f1);
            DONE.incrementAndGet();
        }
    }

    /** Keeps objects of the job's class as value, elements, and in a map. */
    public static class Lines extends KeyedProcessFunction<String, Tuple2<String, Long>, Void> {

        @Override
        public void processElement(
                Tuple2<String, Long> event, Context context, Collector<Void> out)
                throws Exception {
            Line line = new Line(event.f0, event.f1);
            getRuntimeContext()
                    .getState(new ValueStateDescriptor<>("line", LINE))
                    .update(line);
            getRuntimeContext().getListState(new ListStateDescriptor<>("lines", LINE)).add(line);
            getRuntimeContext()
                    .getMapState(new MapStateDescriptor<>("by-number", Types.LONG, LINE))
                    .put(event.f1, line);
            DONE.incrementAndGet();
        }
    }

    /** Keeps a number and a timer of keys of any class. */
    public static class Counted<K> extends KeyedProcessFunction<K, Tuple2<String, Long>, Void> {

        @Override
        public void processElement(
                Tuple2<String, Long> event, Context context, Collector<Void> out)
                throws Exception {
            getRuntimeContext()
                    .getState(new ValueStateDescriptor<>("count", Types.LONG))
                    .update(event.f1);
            context.timerService().registerEventTimeTimer(TIME + event.f1);
            DONE.incrementAndGet();
        }
    }
}
