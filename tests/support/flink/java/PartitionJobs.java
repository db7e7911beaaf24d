import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.flink.api.common.JobID;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.runtime.minicluster.MiniCluster;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.datastream.DataStreamUtils;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.util.Collector;

/**
 * Runs jobs that count keys where a source reads them, without a keyBy, in one local cluster.
 *
 * <p>Standard input has a job a line, answered by a line of standard output. A job has
 * "parallelism", "max_parallelism" and "partitions" (by their names, such as clicks-0, the keys in
 * each). Its source hands them out as Kafka's does; what it reads is taken to be keyed. The answer
 * has "failure" (the text of the exception that the job ended with, or null) and "counts" (of each
 * record the key, the subtask and how many of the key it has counted).
 */
public class PartitionJobs {

    /** What the tasks, which run in this JVM, have told since the job began. */
    private static final List<List<Object>> COUNTS =
            Collections.synchronizedList(new ArrayList<>());

    public static void main(String[] arguments) throws Exception {
        LocalCluster.answerLines(arguments, PartitionJobs::run);
    }

    private static Map<String, Object> run(MiniCluster cluster, JsonNode job) throws Exception {
        COUNTS.clear();
        Map<String, Object> answer = new LinkedHashMap<>();
        Map<String, List<String>> partitions = partitions(job.get("partitions"));
        StreamExecutionEnvironment env = build(job, partitions);
        JobID id = cluster.submitJob(env.getStreamGraph().getJobGraph()).get().getJobID();
        int records = partitions.values().stream().mapToInt(List::size).sum();
        String failure = LocalCluster.await(cluster, id, () -> records - COUNTS.size());
        if (failure == null) {
            cluster.cancelJob(id).get();
        }
        cluster.requestJobResult(id).get();
        answer.put("failure", failure);
        answer.put("counts", COUNTS);
        return answer;
    }

    private static Map<String, List<String>> partitions(JsonNode job) {
        Map<String, List<String>> partitions = new LinkedHashMap<>();
        job.fields()
                .forEachRemaining(
                        partition -> {
                            List<String> keys = new ArrayList<>();
                            partition.getValue().forEach(key -> keys.add(key.textValue()));
                            partitions.put(partition.getKey(), keys);
                        });
        return partitions;
    }

    private static StreamExecutionEnvironment build(
            JsonNode job, Map<String, List<String>> partitions) {
        StreamExecutionEnvironment env =
                StreamExecutionEnvironment.getExecutionEnvironment(
                        LocalCluster.settings(LocalCluster.JSON.createObjectNode()));
        env.setParallelism(job.get("parallelism").intValue());
        env.setMaxParallelism(job.get("max_parallelism").intValue());
        Map<String, Long> ends = new LinkedHashMap<>();
        partitions.forEach((name, keys) -> ends.put(name, (long) keys.size()));
        DataStream<String> keys =
                env.fromSource(
                                PartitionSource.fromStart(ends),
                                WatermarkStrategy.noWatermarks(),
                                "partitions",
                                Types.TUPLE(Types.STRING, Types.LONG))
                        .map(new Key(partitions))
                        .returns(Types.STRING);
        DataStreamUtils.reinterpretAsKeyedStream(keys, key -> key, Types.STRING)
                .process(new Count())
                .returns(Types.STRING);
        return env;
    }

    /** Reads the key at an offset of a partition. */
    private static class Key implements MapFunction<Tuple2<String, Long>, String> {

        private final Map<String, List<String>> partitions;

        Key(Map<String, List<String>> partitions) {
            this.partitions = partitions;
        }

        @Override
        public String map(Tuple2<String, Long> record) {
            return partitions.get(record.f0).get(record.f1.intValue());
        }
    }

    /** Counts a key in its state, and tells where. */
    private static class Count extends KeyedProcessFunction<String, String, String> {

        @Override
        public void processElement(String key, Context context, Collector<String> out)
                throws Exception {
            ValueState<Long> state =
                    getRuntimeContext().getState(new ValueStateDescriptor<>("count", Types.LONG));
            long count = state.value() == null ? 1 : state.value() + 1;
            state.update(count);
            COUNTS.add(List.of(key, FlinkApi.subtask(getRuntimeContext()), count));
        }
    }
}
