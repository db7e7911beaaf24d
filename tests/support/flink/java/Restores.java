import java.io.IOException;
import java.io.UncheckedIOException;
import java.io.Writer;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Collectors;
import org.apache.flink.api.common.JobID;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.common.typeutils.TypeSerializer;
import org.apache.flink.api.java.functions.KeySelector;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.api.java.typeutils.ResultTypeQueryable;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.core.execution.SavepointFormatType;
import org.apache.flink.core.memory.DataInputDeserializer;
import org.apache.flink.runtime.checkpoint.OperatorState;
import org.apache.flink.runtime.executiongraph.AccessExecutionJobVertex;
import org.apache.flink.runtime.minicluster.MiniCluster;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.datastream.SingleOutputStreamOperator;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.util.ExceptionUtils;
import org.apache.flink.util.StringUtils;

/**
 * Restores jobs from savepoints, one after the other in one local cluster, and tells their state.
 *
 * <p>Standard input has a task a line, each answered by a line of standard output. A task has
 * "savepoint", "options" of the job, "parallelism", "max_parallelism" (or null: then the
 * job sets none), "maps" (how many maps without uid are chained to each operator), "rows" (the file
 * for what is found, a line of JSON each), "ends" (whether time ends when the job has taken its own
 * savepoint) and "operators". If it has "watermarks", they come one after the other, the first when
 * so many windows and timers are over as "at_once" says, those of the clock; when so many are over
 * as "closed" says, the job takes another savepoint. An
 * operator has its "uid" or "id" in the savepoint, and "states", of operators "operator_states"
 * too, and of keyed ones "key", if it is to be made of types, without those of the savepoint's
 * headers; or "window", and then "keys" to be sent to it, as bytes in hexadecimal digits; or, if it
 * is a source of partitions, their "ends" and how many "records" it has to read. A
 * "max_parallelism" of its own limits its parallelism.
 *
 * <p>The answer has "refused" (why Flink did not run it, or null), "path" (of the job's own
 * savepoint) or "unsaved" (why there is none), "later" (the path of the other one), and "max_parallelisms" of the vertices by their
 * names; or all it has is "error", where the task makes no job.
 */
public class Restores {

    /** What the tasks, which run in this JVM, have done since the job began. */
    static final AtomicInteger OPENED = new AtomicInteger();

    static final AtomicInteger READ = new AtomicInteger();
    static final AtomicInteger ENDED = new AtomicInteger();
    static final AtomicInteger CLOSED = new AtomicInteger();

    private static final TypeInformation<Tuple2<Integer, byte[]>> SENT =
            Types.TUPLE(Types.INT, Types.PRIMITIVE_ARRAY(Types.BYTE));
    private static final TypeInformation<Tuple2<String, Long>> RECORD =
            Types.TUPLE(Types.STRING, Types.LONG);

    /** The keys of each operator, and of those with namespaces the namespaces of each state. */
    private static final Map<Tuple2<Integer, ByteBuffer>, Map<String, Set<Object>>> FOUND =
            new ConcurrentHashMap<>();

    private static Writer rows;

    private final MiniCluster cluster;
    private final JsonNode task;
    private int openings;
    private int endings;
    private int reads;

    private Restores(MiniCluster cluster, JsonNode task) {
        this.cluster = cluster;
        this.task = task;
    }

    public static void main(String[] arguments) throws Exception {
        LocalCluster.answerLines(
                arguments,
                (cluster, task) -> {
                    try {
                        return new Restores(cluster, task).run();
                    } catch (Exception error) {
                        return Map.of("error", ExceptionUtils.stringifyException(error));
                    }
                });
    }

    static synchronized void write(Map<String, Object> row) {
        try {
            rows.write(LocalCluster.JSON.writeValueAsString(row));
            rows.write('\n');
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    static Map<String, Set<Object>> found(int operator, byte[] key) {
        return FOUND.computeIfAbsent(
                Tuple2.of(operator, ByteBuffer.wrap(key)), one -> new ConcurrentHashMap<>(1));
    }

    static void found(int operator, byte[] key, String state, Object namespace) {
        found(operator, key)
                .computeIfAbsent(state, one -> ConcurrentHashMap.newKeySet())
                .add(namespace);
    }

    static Set<Object> namespaces(int operator, byte[] key, String state) {
        return found(operator, key).getOrDefault(state, Set.of());
    }

    private Map<String, Object> run() throws Exception {
        OPENED.set(0);
        READ.set(0);
        ENDED.set(0);
        CLOSED.set(0);
        FOUND.clear();
        KeyFeed.clear();
        Map<String, Object> answer = new LinkedHashMap<>();
        rows = Files.newBufferedWriter(Path.of(task.get("rows").textValue()));
        try {
            StreamExecutionEnvironment env = build();
            JobID id = cluster.submitJob(env.getStreamGraph().getJobGraph()).get().getJobID();
            String refused = work(id, answer);
            answer.put("refused", refused);
            if (refused == null) {
                cluster.cancelJob(id).get();
            }
            cluster.requestJobResult(id).get();
        } finally {
            rows.close();
        }
        return answer;
    }

    /** Has the job do what the task says; returns why Flink did not, or null. */
    private String work(JobID id, Map<String, Object> answer) throws Exception {
        String refused = await(id, OPENED, openings);
        if (refused != null) {
            return refused;
        }
        answer.put("max_parallelisms", maxParallelisms(id));
        FOUND.keySet().forEach(key -> KeyFeed.offer(key.f0, key.f1.array()));
        refused = await(id, READ, FOUND.size() + reads);
        if (refused == null) {
            String folder = task.get("options").get("execution.checkpointing.dir").textValue();
            SavepointFormatType canonical = SavepointFormatType.CANONICAL;
            try {
                answer.put("path", cluster.triggerSavepoint(id, folder, false, canonical).get());
            } catch (ExecutionException error) {
                answer.put("unsaved", ExceptionUtils.stringifyException(error));
            }
        }
        if (refused == null && task.get("ends").booleanValue()) {
            KeyFeed.endTime();
            refused = await(id, ENDED, endings);
        }
        refused = refused != null ? refused : await(id, CLOSED, task.get("at_once").intValue());
        int watermarks = 0;
        for (JsonNode watermark : task.path("watermarks")) {
            KeyFeed.offerWatermark(watermark.longValue());
            watermarks++;
            refused = refused != null ? refused : await(id, ENDED, watermarks * endings);
        }
        if (refused == null && watermarks > 0) {
            refused = await(id, CLOSED, task.get("closed").intValue());
            String folder = task.get("options").get("execution.checkpointing.dir").textValue();
            SavepointFormatType canonical = SavepointFormatType.CANONICAL;
            answer.put("later", cluster.triggerSavepoint(id, folder, false, canonical).get());
        }
        return refused;
    }

    private String await(JobID id, AtomicInteger counter, int enough) throws Exception {
        return LocalCluster.await(cluster, id, () -> enough - counter.get());
    }

    private Map<String, Integer> maxParallelisms(JobID id) throws Exception {
        Map<String, Integer> found = new LinkedHashMap<>();
        for (AccessExecutionJobVertex vertex :
                cluster.getExecutionGraph(id).get().getVerticesTopologically()) {
            found.put(vertex.getName(), vertex.getMaxParallelism());
        }
        return found;
    }

    private StreamExecutionEnvironment build() throws Exception {
        Configuration settings = LocalCluster.settings(task.get("options"));
        settings.setString("execution.checkpointing.tolerable-failed-checkpoints", "1");
        String path = task.get("savepoint").textValue();
        settings.setString(FlinkApi.option("execution.state-recovery.path"), path);
        Map<String, OperatorState> saved = operators(path);
        StreamExecutionEnvironment env =
                StreamExecutionEnvironment.getExecutionEnvironment(settings);
        env.setParallelism(task.get("parallelism").intValue());
        if (!task.get("max_parallelism").isNull()) {
            env.setMaxParallelism(task.get("max_parallelism").intValue());
        }
        DataStream<Tuple2<Integer, byte[]>> keys =
                env.fromSource(new KeyFeed(), WatermarkStrategy.noWatermarks(), "keys", SENT)
                        .setParallelism(1)
                        .uid("keys");
        int number = 0;
        for (JsonNode operator : task.get("operators")) {
            add(env, keys, number++, operator, saved);
        }
        return env;
    }

    private void add(
            StreamExecutionEnvironment env,
            DataStream<Tuple2<Integer, byte[]>> keys,
            int number,
            JsonNode operator,
            Map<String, OperatorState> saved)
            throws Exception {
        String label = operator.get(operator.has("uid") ? "uid" : "id").textValue();
        if (operator.has("ends")) {
            PartitionSource source = new PartitionSource(operator.get("ends"));
            env.fromSource(source, WatermarkStrategy.noWatermarks(), label, RECORD)
                    .uid(label)
                    .map(new WriteRecord(label))
                    .returns(Types.LONG);
            reads += operator.get("records").intValue();
            return;
        }
        DataStream<Tuple2<Integer, byte[]>> its =
                keys.filter(sent -> sent.f0 == number).setParallelism(1);
        StateTypes types =
                operator.has("states")
                        ? StateTypes.ofTask(operator)
                        : StateTypes.ofHeaders(saved.get(operator.get("id").textValue()));
        int parallelism =
                Math.min(
                        env.getParallelism(),
                        operator.path("max_parallelism").asInt(env.getParallelism()));
        SingleOutputStreamOperator<?> made;
        if (types == null) { // of operator state only, which is kept as it is
            made = its.rebalance().map(sent -> sent).returns(SENT);
        } else if (operator.has("window")) {
            made = Windows.add(its, label, operator.get("window"), types);
            for (JsonNode key : operator.get("keys")) {
                KeyFeed.offer(number, StringUtils.hexStringToByte(key.textValue()));
            }
        } else {
            DataStream<Tuple2<Integer, byte[]>> input =
                    types.key == null
                            ? its.rebalance()
                            : its.keyBy(new BytesToKey(types.key), types.key);
            made = input.transform(label, Types.LONG, new RestoredState(number, label, types));
            openings += parallelism;
        }
        endings += types == null ? 0 : parallelism;
        made.setParallelism(parallelism);
        if (operator.has("max_parallelism")) {
            made.setMaxParallelism(operator.get("max_parallelism").intValue());
        }
        if (operator.has("uid")) {
            made.uid(label);
        } else {
            made.uid("at " + label).setUidHash(label); // its own savepoint has the hash of the uid
        }
        if (operator.has("window")) {
            made = Windows.end(made);
        }
        for (int i = 0; i < task.get("maps").intValue(); i++) {
            made = made.map(one -> 0L).returns(Types.LONG);
        }
    }

    /** Reads the operators of a savepoint by their ids. */
    private static Map<String, OperatorState> operators(String path) throws Exception {
        return LocalCluster.metadata(path).getOperatorStates().stream()
                .collect(Collectors.toMap(one -> one.getOperatorID().toHexString(), one -> one));
    }

    /** Writes down what a source has read. */
    static class WriteRecord implements MapFunction<Tuple2<String, Long>, Long> {

        private final String label;

        WriteRecord(String label) {
            this.label = label;
        }

        @Override
        public Long map(Tuple2<String, Long> record) {
            Map<String, Object> row = new LinkedHashMap<>();
            row.put("way", "read");
            row.put("operator", label);
            row.put("split", record.f0);
            row.put("offset", record.f1);
            write(row);
            READ.incrementAndGet();
            return record.f1;
        }
    }

    /** Reads a key from its bytes. */
    static class BytesToKey
            implements KeySelector<Tuple2<Integer, byte[]>, Object>, ResultTypeQueryable<Object> {

        private final TypeInformation<Object> type;
        private transient TypeSerializer<Object> serializer;

        BytesToKey(TypeInformation<Object> type) {
            this.type = type;
        }

        @Override
        public Object getKey(Tuple2<Integer, byte[]> sent) throws Exception {
            if (serializer == null) {
                serializer = FlinkApi.serializer(type);
            }
            return serializer.deserialize(new DataInputDeserializer(sent.f1));
        }

        @Override
        public TypeInformation<Object> getProducedType() {
            return type;
        }
    }
}
