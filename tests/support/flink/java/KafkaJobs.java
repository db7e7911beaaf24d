import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import org.apache.flink.api.common.JobID;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.serialization.SimpleStringSchema;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.connector.sink2.Sink;
import org.apache.flink.api.connector.source.Source;
import org.apache.flink.connector.base.DeliveryGuarantee;
import org.apache.flink.connector.base.source.hybrid.HybridSource;
import org.apache.flink.connector.kafka.dynamic.metadata.SingleClusterTopicMetadataService;
import org.apache.flink.connector.kafka.dynamic.source.DynamicKafkaSource;
import org.apache.flink.connector.kafka.sink.KafkaRecordSerializationSchema;
import org.apache.flink.connector.kafka.sink.KafkaSink;
import org.apache.flink.connector.kafka.sink.KafkaSinkBuilder;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.KafkaSourceBuilder;
import org.apache.flink.connector.kafka.source.enumerator.KafkaSourceEnumerator;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.connector.kafka.source.reader.deserializer.KafkaRecordDeserializationSchema;
import org.apache.flink.core.execution.SavepointFormatType;
import org.apache.flink.runtime.jobgraph.JobGraph;
import org.apache.flink.runtime.jobgraph.SavepointRestoreSettings;
import org.apache.flink.runtime.minicluster.MiniCluster;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.util.Collector;
import org.apache.kafka.clients.consumer.ConsumerRecord;

/**
 * Runs jobs that count the keys of topics of Kafka, one after the other, in one local cluster.
 *
 * <p>Standard input has a job a line, answered by a line of standard output. A job reads "topics"
 * of "servers" by the "source" that is kafka, dynamic (of a cluster that is called cluster-a) or
 * hybrid (the first topic to its end, then the others), from "start" (earliest or latest) where no
 * state says more, counts the records of each key in the state "state" of the operator "uid", and
 * writes key=count to "sink", a topic or null, with the "guarantee". It goes on from "savepoint",
 * where that is not null, has "parallelism", "max_parallelism" and "options", runs until it has
 * read so many "records", and then takes "points", each canonical, native or checkpoint, in
 * "folder". The answer has "failure" (the text of the exception that the job ended with, or null),
 * "points" (the paths) and "records" (of each its topic, partition, offset and key, and how many of
 * the key the job has counted).
 */
public class KafkaJobs {

    /** What the tasks, which run in this JVM, have told since the job began. */
    private static final List<List<Object>> RECORDS =
            Collections.synchronizedList(new ArrayList<>());

    public static void main(String[] arguments) throws Exception {
        LocalCluster.answerLines(arguments, KafkaJobs::run);
    }

    private static Map<String, Object> run(MiniCluster cluster, JsonNode job) throws Exception {
        RECORDS.clear();
        JobGraph graph = build(job).getStreamGraph().getJobGraph();
        if (!job.get("savepoint").isNull()) {
            graph.setSavepointRestoreSettings(
                    SavepointRestoreSettings.forPath(job.get("savepoint").textValue(), false));
        }
        JobID id = cluster.submitJob(graph).get().getJobID();
        int records = job.get("records").intValue();
        String failure = LocalCluster.await(cluster, id, () -> records - RECORDS.size());
        List<String> points = new ArrayList<>();
        if (failure == null) {
            for (JsonNode kind : job.get("points")) {
                points.add(take(cluster, id, kind.textValue(), job.get("folder").textValue()));
            }
            cluster.cancelJob(id).get();
        }
        cluster.requestJobResult(id).get();
        Map<String, Object> answer = new LinkedHashMap<>();
        answer.put("failure", failure);
        answer.put("points", points);
        answer.put("records", RECORDS);
        return answer;
    }

    private static String take(MiniCluster cluster, JobID id, String kind, String folder)
            throws Exception {
        if (kind.equals("checkpoint")) {
            return cluster.triggerCheckpoint(id).get();
        }
        SavepointFormatType format = SavepointFormatType.valueOf(kind.toUpperCase());
        return cluster.triggerSavepoint(id, folder, false, format).get();
    }

    private static StreamExecutionEnvironment build(JsonNode job) throws Exception {
        StreamExecutionEnvironment env =
                StreamExecutionEnvironment.getExecutionEnvironment(
                        LocalCluster.settings(job.get("options")));
        env.setParallelism(job.get("parallelism").intValue());
        env.setMaxParallelism(job.get("max_parallelism").intValue());
        DataStream<String> counts =
                env.fromSource(
                                source(job),
                                WatermarkStrategy.noWatermarks(),
                                "records",
                                new Fields().getProducedType())
                        .uid(job.get("source_uid").textValue())
                        .keyBy(record -> (String) record.get(3), Types.STRING)
                        .process(new Count(job.get("state").textValue()))
                        .returns(Types.STRING)
                        .uid(job.get("uid").textValue());
        counts.sinkTo(sink(job)).uid("out");
        return env;
    }

    private static Source<List<Object>, ?, ?> source(JsonNode job) {
        List<String> topics = new ArrayList<>();
        job.get("topics").forEach(topic -> topics.add(topic.textValue()));
        String start = job.get("start").textValue();
        OffsetsInitializer offsets =
                start.equals("latest") ? OffsetsInitializer.latest() : OffsetsInitializer.earliest();
        switch (job.get("source").textValue()) {
            case "dynamic":
                Properties servers = new Properties();
                servers.setProperty("bootstrap.servers", job.get("servers").textValue());
                servers.setProperty("group.id", "dynamic");
                return DynamicKafkaSource.<List<Object>>builder()
                        .setStreamIds(Set.copyOf(topics))
                        .setKafkaMetadataService(
                                new SingleClusterTopicMetadataService("cluster-a", servers))
                        .setStartingOffsets(offsets)
                        .setDeserializer(new Fields())
                        .setProperties(servers)
                        .build();
            case "hybrid":
                KafkaSource<List<Object>> first =
                        kafka(job, topics.subList(0, 1), offsets)
                                .setBounded(OffsetsInitializer.latest())
                                .build();
                return HybridSource.<List<Object>, KafkaSourceEnumerator>builder(first)
                        .addSource(kafka(job, topics.subList(1, topics.size()), offsets).build())
                        .build();
            default:
                return kafka(job, topics, offsets).build();
        }
    }

    private static KafkaSourceBuilder<List<Object>> kafka(
            JsonNode job, List<String> topics, OffsetsInitializer offsets) {
        return KafkaSource.<List<Object>>builder()
                .setBootstrapServers(job.get("servers").textValue())
                .setGroupId("group")
                .setTopics(new ArrayList<>(topics))
                .setStartingOffsets(offsets)
                .setDeserializer(new Fields());
    }

    private static Sink<String> sink(JsonNode job) {
        if (job.get("sink").isNull()) {
            return new DiscardingSink<>();
        }
        KafkaRecordSerializationSchema<String> schema =
                KafkaRecordSerializationSchema.<String>builder()
                        .setTopic(job.get("sink").textValue())
                        .setValueSerializationSchema(new SimpleStringSchema())
                        .build();
        KafkaSinkBuilder<String> sink =
                KafkaSink.<String>builder()
                        .setBootstrapServers(job.get("servers").textValue())
                        .setDeliveryGuarantee(
                                DeliveryGuarantee.valueOf(job.get("guarantee").textValue()))
                        .setTransactionalIdPrefix("tx")
                        .setProperty("transaction.timeout.ms", "600000")
                        .setRecordSerializer(schema);
        return sink.build();
    }

    /** Reads a record as its topic, partition, offset and key. */
    private static class Fields implements KafkaRecordDeserializationSchema<List<Object>> {

        @Override
        public void deserialize(
                ConsumerRecord<byte[], byte[]> record, Collector<List<Object>> out) {
            String key = new String(record.key(), StandardCharsets.UTF_8);
            out.collect(
                    new ArrayList<>(
                            List.of(record.topic(), record.partition(), record.offset(), key)));
        }

        @Override
        @SuppressWarnings({"unchecked", "rawtypes"})
        public TypeInformation<List<Object>> getProducedType() {
            return (TypeInformation) Types.GENERIC(ArrayList.class);
        }
    }

    /** Counts a key in its state, and tells of each record. */
    private static class Count extends KeyedProcessFunction<String, List<Object>, String> {

        private final String name;

        Count(String name) {
            this.name = name;
        }

        @Override
        public void processElement(List<Object> record, Context context, Collector<String> out)
                throws Exception {
            ValueState<Long> state =
                    getRuntimeContext().getState(new ValueStateDescriptor<>(name, Types.LONG));
            long count = state.value() == null ? 1 : state.value() + 1;
            state.update(count);
            List<Object> told = new ArrayList<>(record);
            told.add(count);
            out.collect(context.getCurrentKey() + "=" + count);
            RECORDS.add(told);
        }
    }
}
