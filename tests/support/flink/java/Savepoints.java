import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.flink.api.common.JobID;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.AggregateFunction;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.api.common.state.BroadcastState;
import org.apache.flink.api.common.state.ListState;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.state.MapState;
import org.apache.flink.api.common.state.MapStateDescriptor;
import org.apache.flink.api.common.state.StateTtlConfig;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple4;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.core.execution.SavepointFormatType;
import org.apache.flink.runtime.checkpoint.OperatorState;
import org.apache.flink.runtime.minicluster.MiniCluster;
import org.apache.flink.runtime.state.FunctionInitializationContext;
import org.apache.flink.runtime.state.FunctionSnapshotContext;
import org.apache.flink.runtime.state.KeyGroupRangeAssignment;
import org.apache.flink.runtime.state.KeyedStateHandle;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.streaming.api.checkpoint.CheckpointedFunction;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.datastream.KeyedStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.streaming.api.functions.source.legacy.SourceFunction;
import org.apache.flink.streaming.api.windowing.assigners.TumblingEventTimeWindows;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.apache.flink.types.Row;
import org.apache.flink.types.RowKind;
import org.apache.flink.util.Collector;

/**
 * Runs jobs with state in one local cluster, and takes savepoints and checkpoints of them.
 *
 * <p>Standard input is one JSON object: "folder", "window" (its length in milliseconds),
 * "events" (lists of a string, a long and a time) and "jobs". A job has a "name", "parallelism",
 * "max_parallelism" (or null), "options", "query" (or null: then it is one of DataStreams),
 * "restore" (the job and the point it starts from, or null) and "points" ("canonical", "native" or
 * "checkpoint"). A job that starts anew puts in every event; one that is restored only looks at
 * the state of the events' keys.
 *
 * <p>Standard output is one JSON object with an object for each job: "refused" (why Flink did not
 * run it, or null), "reports" (what each key's state is, and where, as the job itself says) and
 * "points", with the "path" of each and "operators", what Flink reads in its metadata.
 */
public class Savepoints {

    /** What the tasks, which run in this JVM, have done since the job began. */
    private static final AtomicInteger DONE = new AtomicInteger();

    private static final Map<String, Map<String, Object>> REPORTS = new ConcurrentHashMap<>();

    /** A string, a long, a time, and whether it only looks. */
    private static final TypeInformation<Tuple4<String, Long, Long, Boolean>> EVENT =
            Types.TUPLE(Types.STRING, Types.LONG, Types.LONG, Types.BOOLEAN);

    public static void main(String[] arguments) throws Exception {
        LocalCluster.answerLines(arguments, Savepoints::runAll);
    }

    private static Map<String, Object> runAll(MiniCluster cluster, JsonNode task)
            throws Exception {
        Map<String, Object> jobs = new LinkedHashMap<>();
        Map<List<String>, String> paths = new LinkedHashMap<>();
        for (JsonNode job : task.get("jobs")) {
            jobs.put(job.get("name").textValue(), run(cluster, task, job, paths));
        }
        return jobs;
    }

    private static Map<String, Object> run(
            MiniCluster cluster, JsonNode task, JsonNode job, Map<List<String>, String> paths)
            throws Exception {
        DONE.set(0);
        REPORTS.clear();
        String folder = task.get("folder").textValue();
        Configuration settings = LocalCluster.settings(job.get("options"));
        settings.setString("execution.checkpointing.dir", folder);
        settings.setString("execution.checkpointing.interval", "1 h"); // so only when told to
        settings.setString(
                "execution.checkpointing.externalized-checkpoint-retention",
                "RETAIN_ON_CANCELLATION");
        JsonNode restore = job.get("restore");
        if (!restore.isNull()) {
            List<String> from = List.of(restore.get(0).textValue(), restore.get(1).textValue());
            settings.setString("execution.state-recovery.path", paths.get(from));
        }
        StreamExecutionEnvironment env =
                StreamExecutionEnvironment.getExecutionEnvironment(settings);
        env.setParallelism(job.get("parallelism").intValue());
        if (!job.get("max_parallelism").isNull()) {
            env.setMaxParallelism(job.get("max_parallelism").intValue());
        }
        int steps = build(env, task, job.get("query").textValue(), restore.isNull());
        JobID id =
                cluster.submitJob(env.getStreamGraph().getJobGraph()).get().getJobID();
        Map<String, Object> said = new LinkedHashMap<>();
        said.put("refused", LocalCluster.await(cluster, id, () -> steps - DONE.get()));
        Map<String, Object> points = new LinkedHashMap<>();
        said.put("points", points);
        if (said.get("refused") == null) {
            said.put("reports", new ArrayList<>(REPORTS.values()));
            for (JsonNode point : job.get("points")) {
                String kind = point.textValue();
                String path = takePoint(cluster, id, kind, folder);
                paths.put(List.of(job.get("name").textValue(), kind), path);
                points.put(kind, Map.of("path", path, "operators", operators(path)));
            }
            cluster.cancelJob(id).get();
        }
        cluster.requestJobResult(id).get();
        return said;
    }

    /** Makes the job, and returns how many steps its tasks will have done. */
    private static int build(
            StreamExecutionEnvironment env, JsonNode task, String query, boolean isNew) {
        ArrayList<Tuple4<String, Long, Long, Boolean>> events = new ArrayList<>();
        for (JsonNode one : task.get("events")) {
            events.add(
                    Tuple4.of(
                            one.get(0).textValue(),
                            one.get(1).longValue(),
                            one.get(2).longValue(),
                            !isNew));
        }
        int start = isNew ? 0 : events.size();
        DataStream<Tuple4<String, Long, Long, Boolean>> stream =
                env.addSource(new Events(events), "events", EVENT)
                        .setParallelism(1)
                        .uid("events");
        DataStream<Tuple4<String, Long, Long, Boolean>> updates =
                stream.filter(event -> !event.f3).setParallelism(1).uid("updates");
        if (query != null) {
            StreamTableEnvironment tables = StreamTableEnvironment.create(env);
            tables.createTemporaryView("events", updates);
            tables.toChangelogStream(tables.sqlQuery(query))
                    .map(new Changes())
                    .sinkTo(new DiscardingSink<>());
            return events.size() - start;
        }
        process(stream.keyBy(event -> event.f0, Types.STRING), "by-string");
        process(stream.keyBy(event -> event.f1, Types.LONG), "by-long");
        updates.assignTimestampsAndWatermarks(
                        WatermarkStrategy.<Tuple4<String, Long, Long, Boolean>>noWatermarks()
                                .withTimestampAssigner((event, unused) -> event.f2))
                .uid("timestamps")
                .keyBy(event -> event.f0, Types.STRING)
                .window(
                        TumblingEventTimeWindows.of(
                                Duration.ofMillis(task.get("window").longValue())))
                .aggregate(new SumOfTimes(), Types.LONG, Types.LONG)
                .uid("by-window")
                .sinkTo(new DiscardingSink<>());
        return 3 * events.size() - start;
    }

    private static <K> void process(
            KeyedStream<Tuple4<String, Long, Long, Boolean>, K> keyed, String uid) {
        keyed.process(new Remember<K>(uid), Types.VOID)
                .uid(uid)
                .name("Remember " + uid)
                .sinkTo(new DiscardingSink<>());
    }

    private static String takePoint(MiniCluster cluster, JobID id, String kind, String folder)
            throws Exception {
        if (kind.equals("checkpoint")) {
            return cluster.triggerCheckpoint(id).get();
        }
        SavepointFormatType format = SavepointFormatType.valueOf(kind.toUpperCase());
        return cluster.triggerSavepoint(id, folder, false, format).get();
    }

    private static List<Object> operators(String path) throws Exception {
        List<Object> operators = new ArrayList<>();
        for (OperatorState state : LocalCluster.metadata(path).getOperatorStates()) {
            Map<Integer, List<Integer>> ranges = new TreeMap<>();
            state.getSubtaskStates()
                    .forEach(
                            (subtask, one) -> {
                                for (KeyedStateHandle handle : one.getManagedKeyedState()) {
                                    ranges.put(
                                            subtask,
                                            List.of(
                                                    handle.getKeyGroupRange().getStartKeyGroup(),
                                                    handle.getKeyGroupRange().getEndKeyGroup()));
                                }
                            });
            Map<String, Object> said = new LinkedHashMap<>();
            said.put("id", state.getOperatorID().toHexString());
            said.put("uid", state.getOperatorUid().orElse(null));
            said.put("name", state.getOperatorName().orElse(null));
            said.put("parallelism", state.getParallelism());
            said.put("max_parallelism", state.getMaxParallelism());
            said.put("subtasks", new TreeMap<>(state.getSubtaskStates()).keySet());
            said.put("ranges", ranges);
            operators.add(said);
        }
        return operators;
    }

    /** Emits the events, then waits; how many of them were more than a look is its state. */
    public static class Events
            implements SourceFunction<Tuple4<String, Long, Long, Boolean>>, CheckpointedFunction {

        private final ArrayList<Tuple4<String, Long, Long, Boolean>> events;
        private volatile boolean isCancelled;
        private transient ListState<Integer> offset;
        private transient ListState<String> names;
        private transient BroadcastState<String, Long> times;
        private transient int emitted;

        Events(ArrayList<Tuple4<String, Long, Long, Boolean>> events) {
            this.events = events;
        }

        @Override
        public void initializeState(FunctionInitializationContext context) throws Exception {
            offset =
                    context.getOperatorStateStore()
                            .getListState(new ListStateDescriptor<>("offset", Types.INT));
            names =
                    context.getOperatorStateStore()
                            .getUnionListState(new ListStateDescriptor<>("names", Types.STRING));
            times =
                    context.getOperatorStateStore()
                            .getBroadcastState(
                                    new MapStateDescriptor<>("times", Types.STRING, Types.LONG));
            for (int before : offset.get()) {
                emitted = before;
            }
        }

        @Override
        public void snapshotState(FunctionSnapshotContext context) throws Exception {
            offset.update(List.of(emitted));
            names.clear();
            for (Tuple4<String, Long, Long, Boolean> event : events) {
                names.add(event.f0);
                times.put(event.f0, event.f2);
            }
        }

        @Override
        public void run(SourceContext<Tuple4<String, Long, Long, Boolean>> context)
                throws Exception {
            for (Tuple4<String, Long, Long, Boolean> event : events) {
                synchronized (context.getCheckpointLock()) {
                    context.collect(event);
                    emitted += event.f3 ? 0 : 1;
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

    /** Keeps state of every event of its key, and reports what it then finds there. */
    public static class Remember<K>
            extends KeyedProcessFunction<K, Tuple4<String, Long, Long, Boolean>, Void> {

        private final String uid;
        private transient ValueState<Long> last;
        private transient ListState<Long> numbers;
        private transient MapState<String, Long> times;
        private transient ValueState<String> seen;
        private transient ListState<Long> visits;
        private transient Map<K, List<List<Long>>> clocks;

        Remember(String uid) {
            this.uid = uid;
        }

        @Override
        public void open(OpenContext context) {
            clocks = new LinkedHashMap<>();
            last = getRuntimeContext().getState(new ValueStateDescriptor<>("last", Types.LONG));
            numbers =
                    getRuntimeContext()
                            .getListState(new ListStateDescriptor<>("numbers", Types.LONG));
            times =
                    getRuntimeContext()
                            .getMapState(
                                    new MapStateDescriptor<>("times", Types.STRING, Types.LONG));
            StateTtlConfig week = StateTtlConfig.newBuilder(Duration.ofDays(7)).build();
            ValueStateDescriptor<String> kept = new ValueStateDescriptor<>("seen", Types.STRING);
            kept.enableTimeToLive(week);
            seen = getRuntimeContext().getState(kept);
            ListStateDescriptor<Long> listed = new ListStateDescriptor<>("visits", Types.LONG);
            listed.enableTimeToLive(week);
            visits = getRuntimeContext().getListState(listed);
        }

        @Override
        public void processElement(
                Tuple4<String, Long, Long, Boolean> event, Context context, Collector<Void> out)
                throws Exception {
            K key = context.getCurrentKey();
            if (!event.f3) {
                if (last.value() != null) {
                    context.timerService().deleteEventTimeTimer(last.value());
                }
                context.timerService().registerEventTimeTimer(event.f2);
                last.update(event.f2);
                numbers.add(event.f1);
                times.put(event.f0, event.f2);
                long before = System.currentTimeMillis();
                seen.update(event.f0);
                visits.add(event.f2);
                clocks.computeIfAbsent(key, unused -> new ArrayList<>())
                        .add(List.of(before, System.currentTimeMillis()));
            }
            Map<String, Long> entries = new TreeMap<>(); // RocksDB has an order of its own
            for (Map.Entry<String, Long> entry : times.entries()) {
                entries.put(entry.getKey(), entry.getValue());
            }
            int groups = getRuntimeContext().getTaskInfo().getMaxNumberOfParallelSubtasks();
            Map<String, Object> report = new LinkedHashMap<>();
            report.put("operator", uid);
            report.put("key", key);
            report.put("key_group", KeyGroupRangeAssignment.assignToKeyGroup(key, groups));
            report.put("subtask", getRuntimeContext().getTaskInfo().getIndexOfThisSubtask());
            report.put("last", last.value());
            report.put("numbers", listOf(numbers));
            report.put("times", entries);
            report.put("seen", seen.value());
            report.put("visits", listOf(visits));
            report.put("clock", clocks.get(key)); // before and after each, null once restored
            REPORTS.put(uid + " " + key, report);
            DONE.incrementAndGet();
        }

        private static List<Long> listOf(ListState<Long> state) throws Exception {
            List<Long> elements = new ArrayList<>();
            state.get().forEach(elements::add);
            return elements;
        }
    }

    /** Adds up the times of a window. */
    public static class SumOfTimes
            implements AggregateFunction<Tuple4<String, Long, Long, Boolean>, Long, Long> {

        @Override
        public Long createAccumulator() {
            return 0L;
        }

        @Override
        public Long add(Tuple4<String, Long, Long, Boolean> event, Long sum) {
            DONE.incrementAndGet();
            return sum + event.f2;
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

    /** Reports the last row of each first two columns of a query's result. */
    public static class Changes extends RichMapFunction<Row, Row> {

        @Override
        public Row map(Row row) {
            if (row.getKind() == RowKind.INSERT || row.getKind() == RowKind.UPDATE_AFTER) {
                List<Object> fields = new ArrayList<>();
                for (int i = 0; i < row.getArity(); i++) {
                    fields.add(row.getField(i));
                }
                Map<String, Object> report = new LinkedHashMap<>();
                report.put("row", fields);
                report.put("subtask", getRuntimeContext().getTaskInfo().getIndexOfThisSubtask());
                REPORTS.put(fields.get(1) + " " + fields.get(0), report);
                DONE.incrementAndGet();
            }
            return row;
        }
    }
}
