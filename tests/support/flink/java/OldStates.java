import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;
import org.apache.flink.api.common.JobID;
import org.apache.flink.api.common.JobStatus;
import org.apache.flink.api.common.state.ListState;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.state.MapState;
import org.apache.flink.api.common.state.MapStateDescriptor;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.common.typeutils.base.StringSerializer;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.ReadableConfig;
import org.apache.flink.contrib.streaming.state.ConfigurableRocksDBOptionsFactory;
import org.apache.flink.contrib.streaming.state.RocksDBOptionsFactory;
import org.apache.flink.runtime.minicluster.MiniCluster;
import org.apache.flink.runtime.minicluster.MiniClusterConfiguration;
import org.apache.flink.runtime.state.FunctionInitializationContext;
import org.apache.flink.runtime.state.FunctionSnapshotContext;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.streaming.api.checkpoint.CheckpointedFunction;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.streaming.api.functions.sink.TwoPhaseCommitSinkFunction;
import org.apache.flink.streaming.api.functions.source.SourceFunction;
import org.apache.flink.util.Collector;
import org.rocksdb.ColumnFamilyOptions;
import org.rocksdb.CompressionType;
import org.rocksdb.DBOptions;

/**
 * Runs a job of Flink 1.13 to 1.18 with keyed and operator state in a local cluster, and lets it
 * take checkpoints until it has taken one of all of it.
 *
 * <p>Standard input is a JSON object: "folder", "options", "keys", "numbers" (how many each key
 * gets, from 1 on), "parallelism" and "max_parallelism". The checkpoints stay in the folder.
 */
public class OldStates {

    private static final AtomicInteger DONE = new AtomicInteger();

    private static final TypeInformation<Tuple2<String, Long>> EVENT =
            Types.TUPLE(Types.STRING, Types.LONG);

    public static void main(String[] arguments) throws Exception {
        JsonNode task = new ObjectMapper().readTree(System.in);
        Configuration settings = new Configuration();
        settings.setString("restart-strategy", "none");
        settings.setString("rest.bind-port", "0");
        settings.setString("taskmanager.memory.network.min", "64m");
        settings.setString("taskmanager.memory.network.max", "64m");
        settings.setString("taskmanager.memory.managed.size", "128m");
        settings.setString("state.checkpoints.dir", task.get("folder").textValue());
        settings.setString("execution.checkpointing.interval", "1 s");
        settings.setString(
                "execution.checkpointing.externalized-checkpoint-retention",
                "RETAIN_ON_CANCELLATION");
        task.get("options")
                .fields()
                .forEachRemaining(
                        one -> settings.setString(one.getKey(), one.getValue().asText()));
        MiniClusterConfiguration local =
                new MiniClusterConfiguration.Builder()
                        .setConfiguration(settings)
                        .setNumTaskManagers(1)
                        .setNumSlotsPerTaskManager(4)
                        .build();
        try (MiniCluster cluster = new MiniCluster(local)) {
            cluster.start();
            run(cluster, task, settings);
        }
        System.exit(0);
    }

    private static void run(MiniCluster cluster, JsonNode task, Configuration settings)
            throws Exception {
        StreamExecutionEnvironment env =
                StreamExecutionEnvironment.getExecutionEnvironment(settings);
        env.setParallelism(task.get("parallelism").intValue());
        env.setMaxParallelism(task.get("max_parallelism").intValue());
        ArrayList<String> keys = new ArrayList<>();
        task.get("keys").forEach(key -> keys.add(key.textValue()));
        long numbers = task.get("numbers").longValue();
        env.addSource(new Numbers(keys, numbers), "numbers", EVENT)
                .setParallelism(1)
                .uid("numbers")
                .keyBy(event -> event.f0, Types.STRING)
                .process(new Remember(), Types.STRING)
                .uid("states")
                .addSink(new Transactions())
                .uid("sink");
        JobID id =
                cluster.submitJob(env.getStreamGraph().getJobGraph()).get().getJobID();
        Path folder = Paths.get(java.net.URI.create(task.get("folder").textValue()));
        long before = -1;
        for (int left = 600; left > 0; left--) {
            JobStatus status = cluster.getJobStatus(id).get();
            if (status == JobStatus.FAILED) {
                throw new IllegalStateException(
                        cluster.getExecutionGraph(id)
                                .get()
                                .getFailureInfo()
                                .getExceptionAsString());
            }
            long newest = newestCheckpoint(folder);
            if (DONE.get() >= numbers * keys.size()) {
                before = before < 0 ? newest : before;
                if (newest > before + 1) { // it was begun after all had been done
                    break;
                }
            }
            Thread.sleep(100);
        }
        cluster.cancelJob(id).get();
        cluster.requestJobResult(id).get();
    }

    private static long newestCheckpoint(Path folder) throws Exception {
        try (Stream<Path> paths = Files.walk(folder)) {
            return paths.filter(path -> path.endsWith("_metadata"))
                    .map(path -> path.getParent().getFileName().toString())
                    .mapToLong(name -> Long.parseLong(name.replace("chk-", "")))
                    .max()
                    .orElse(0);
        }
    }

    /** Emits each number with each key, then waits; has operator state of each kind. */
    public static class Numbers
            implements SourceFunction<Tuple2<String, Long>>, CheckpointedFunction {

        private final ArrayList<String> keys;
        private final long numbers;
        private volatile boolean isCancelled;
        private transient ListState<Long> offsets;
        private transient ListState<String> names;
        private transient org.apache.flink.api.common.state.BroadcastState<String, Long> rules;

        Numbers(ArrayList<String> keys, long numbers) {
            this.keys = keys;
            this.numbers = numbers;
        }

        @Override
        public void initializeState(FunctionInitializationContext context) throws Exception {
            offsets =
                    context.getOperatorStateStore()
                            .getListState(new ListStateDescriptor<>("offsets", Types.LONG));
            names =
                    context.getOperatorStateStore()
                            .getUnionListState(new ListStateDescriptor<>("names", Types.STRING));
            rules =
                    context.getOperatorStateStore()
                            .getBroadcastState(
                                    new MapStateDescriptor<>("rules", Types.STRING, Types.LONG));
        }

        @Override
        public void snapshotState(FunctionSnapshotContext context) throws Exception {
            offsets.clear();
            names.clear();
            for (int i = 0; i < keys.size(); i++) {
                offsets.add(1_000L + i);
                names.add(keys.get(i));
                rules.put(keys.get(i), (long) i);
            }
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

    /** Keeps state of the numbers of a key, and a timer. */
    public static class Remember
            extends KeyedProcessFunction<String, Tuple2<String, Long>, String> {

        private transient ValueState<Long> value;
        private transient ListState<String> list;
        private transient MapState<Long, String> map;

        @Override
        public void open(Configuration unused) {
            value = getRuntimeContext().getState(new ValueStateDescriptor<>("value", Types.LONG));
            list =
                    getRuntimeContext()
                            .getListState(new ListStateDescriptor<>("list", Types.STRING));
            map =
                    getRuntimeContext()
                            .getMapState(
                                    new MapStateDescriptor<>("map", Types.LONG, Types.STRING));
        }

        @Override
        public void processElement(
                Tuple2<String, Long> event, Context context, Collector<String> out)
                throws Exception {
            String text = event.f0 + "," + event.f1; // the separator of lists is in it
            value.update(event.f1);
            list.add(text);
            map.put(event.f1, text);
            context.timerService().registerEventTimeTimer(4_000_000_000_000L + event.f1);
            out.collect(text);
            DONE.incrementAndGet();
        }
    }

    /** A sink of two phases, whose transactions and context are texts. */
    public static class Transactions extends TwoPhaseCommitSinkFunction<String, String, String> {

        public Transactions() {
            super(StringSerializer.INSTANCE, StringSerializer.INSTANCE);
        }

        @Override
        protected Optional<String> initializeUserContext() {
            return Optional.of("context-" + getRuntimeContext().getIndexOfThisSubtask());
        }

        @Override
        protected void invoke(String transaction, String value, Context context) {}

        @Override
        protected String beginTransaction() {
            return "transaction-" + getRuntimeContext().getIndexOfThisSubtask();
        }

        @Override
        protected void preCommit(String transaction) {}

        @Override
        protected void commit(String transaction) {}

        @Override
        protected void abort(String transaction) {}
    }

    /** Makes RocksDB compress as the option "compression" says. */
    public static class Compressed implements ConfigurableRocksDBOptionsFactory {

        private String compression = "SNAPPY_COMPRESSION";

        @Override
        public RocksDBOptionsFactory configure(ReadableConfig settings) {
            compression = ((Configuration) settings).getString("compression", compression);
            return this;
        }

        @Override
        public DBOptions createDBOptions(DBOptions options, Collection<AutoCloseable> closed) {
            return options;
        }

        @Override
        public ColumnFamilyOptions createColumnOptions(
                ColumnFamilyOptions options, Collection<AutoCloseable> closed) {
            return options.setCompressionType(CompressionType.valueOf(compression));
        }
    }
}
