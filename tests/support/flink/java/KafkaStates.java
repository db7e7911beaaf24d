import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.reflect.Constructor;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.flink.api.common.serialization.SimpleStringSchema;
import org.apache.flink.api.connector.sink2.Committer;
import org.apache.flink.connector.base.source.hybrid.HybridSourceEnumeratorState;
import org.apache.flink.connector.base.source.hybrid.HybridSourceEnumeratorStateSerializer;
import org.apache.flink.connector.base.source.hybrid.HybridSourceSplit;
import org.apache.flink.connector.base.source.hybrid.HybridSourceSplitSerializer;
import org.apache.flink.connector.kafka.dynamic.metadata.ClusterMetadata;
import org.apache.flink.connector.kafka.dynamic.metadata.KafkaStream;
import org.apache.flink.connector.kafka.dynamic.source.enumerator.DynamicKafkaSourceEnumState;
import org.apache.flink.connector.kafka.dynamic.source.enumerator.DynamicKafkaSourceEnumStateSerializer;
import org.apache.flink.connector.kafka.dynamic.source.split.DynamicKafkaSourceSplit;
import org.apache.flink.connector.kafka.dynamic.source.split.DynamicKafkaSourceSplitSerializer;
import org.apache.flink.connector.kafka.sink.KafkaCommittable;
import org.apache.flink.connector.kafka.sink.KafkaRecordSerializationSchema;
import org.apache.flink.connector.kafka.sink.KafkaSink;
import org.apache.flink.connector.kafka.sink.KafkaWriterState;
import org.apache.flink.connector.kafka.sink.internal.CheckpointTransaction;
import org.apache.flink.connector.kafka.sink.internal.TransactionOwnership;
import org.apache.flink.connector.kafka.source.enumerator.AssignmentStatus;
import org.apache.flink.connector.kafka.source.enumerator.KafkaSourceEnumState;
import org.apache.flink.connector.kafka.source.enumerator.KafkaSourceEnumStateSerializer;
import org.apache.flink.connector.kafka.source.enumerator.TopicPartitionAndAssignmentStatus;
import org.apache.flink.connector.kafka.source.split.KafkaPartitionSplit;
import org.apache.flink.connector.kafka.source.split.KafkaPartitionSplitSerializer;
import org.apache.flink.core.io.SimpleVersionedSerializer;
import org.apache.flink.metrics.groups.SinkCommitterMetricGroup;
import org.apache.flink.metrics.groups.UnregisteredMetricsGroup;
import org.apache.flink.runtime.metrics.groups.InternalSinkCommitterMetricGroup;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.streaming.api.connector.sink2.CommittableSummary;
import org.apache.flink.streaming.api.connector.sink2.CommittableWithLineage;
import org.apache.flink.streaming.runtime.operators.sink.committables.CheckpointCommittableManager;
import org.apache.flink.streaming.runtime.operators.sink.committables.CommittableCollector;
import org.apache.flink.streaming.runtime.operators.sink.committables.CommittableCollectorSerializer;
import org.apache.kafka.common.TopicPartition;

/**
 * Writes and reads the states of Kafka's sources and sinks with the serializers of the connector.
 *
 * <p>A line of standard input is answered by a line of standard output, both of JSON. With a
 * "kind" and a "seed" the answer is a random state: its "version", its "bytes" in hexadecimal
 * digits and its "fields". With "version" and "bytes" in their stead it is the "bytes" of what was
 * read of them, written again, and the "fields" of splits and of Kafka's enumerator; a set is
 * written in an order of its own.
 */
public class KafkaStates {

    private static final long NO_STOP = KafkaPartitionSplit.NO_STOPPING_OFFSET;
    private static final String LETTERS = "abcXYZ019._-";
    private static final SinkCommitterMetricGroup METRICS =
            InternalSinkCommitterMetricGroup.wrap(
                    UnregisteredMetricsGroup.createOperatorMetricGroup());
    private static final KafkaSink<String> SINK =
            KafkaSink.<String>builder()
                    .setBootstrapServers("localhost:1")
                    .setRecordSerializer(
                            KafkaRecordSerializationSchema.<String>builder()
                                    .setTopic("out")
                                    .setValueSerializationSchema(new SimpleStringSchema())
                                    .build())
                    .build();
    private static final KafkaPartitionSplitSerializer SPLITS = new KafkaPartitionSplitSerializer();
    private static final KafkaSourceEnumStateSerializer ENUMERATORS =
            new KafkaSourceEnumStateSerializer();

    private static final Map<String, SimpleVersionedSerializer<?>> SERIALIZERS =
            Map.of(
                    "split", SPLITS,
                    "enumerator", ENUMERATORS,
                    "dynamic_split", new DynamicKafkaSourceSplitSerializer(),
                    "dynamic_enumerator", new DynamicKafkaSourceEnumStateSerializer(),
                    "hybrid_split", new HybridSourceSplitSerializer(),
                    "hybrid_enumerator", new HybridSourceEnumeratorStateSerializer(),
                    "writer", SINK.getWriterStateSerializer(),
                    "committer",
                            new CommittableCollectorSerializer<>(
                                    SINK.getCommittableSerializer(), 0, 1, METRICS));

    /** A state and its fields. */
    private static class Made {

        final Object state;
        final Object fields;

        Made(Object state, Object fields) {
            this.state = state;
            this.fields = fields;
        }
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader in =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            System.out.println(
                    LocalCluster.JSON.writeValueAsString(answer(LocalCluster.JSON.readTree(line))));
        }
    }

    @SuppressWarnings("unchecked")
    private static Map<String, Object> answer(JsonNode line) throws Exception {
        String kind = line.get("kind").textValue();
        SimpleVersionedSerializer<Object> serializer =
                (SimpleVersionedSerializer<Object>) SERIALIZERS.get(kind);
        Map<String, Object> answer = new LinkedHashMap<>();
        Made made;
        if (line.has("seed")) {
            // The first numbers of seeds that are close to one another are, too.
            made = random(kind, new Random(line.get("seed").longValue() * 0x9E3779B97F4A7C15L));
        } else {
            byte[] bytes = HexFormat.of().parseHex(line.get("bytes").textValue());
            Object state = serializer.deserialize(line.get("version").intValue(), bytes);
            made = new Made(state, fields(state));
        }
        answer.put("version", serializer.getVersion());
        answer.put("bytes", HexFormat.of().formatHex(serializer.serialize(made.state)));
        answer.put("fields", made.fields);
        return answer;
    }

    private static Made random(String kind, Random random) throws Exception {
        switch (kind) {
            case "split":
                return withFields(split(random));
            case "enumerator":
                return withFields(enumerator(random));
            case "dynamic_split":
                return withFields(new DynamicKafkaSourceSplit(name(random), split(random)));
            case "dynamic_enumerator":
                return clusters(random);
            case "hybrid_split":
                KafkaPartitionSplit split = split(random);
                int index = random.nextInt(3);
                return new Made(
                        new HybridSourceSplit(index, SPLITS.serialize(split), 0, split.splitId()),
                        Arrays.asList(index, fields(split)));
            case "hybrid_enumerator":
                KafkaSourceEnumState state = enumerator(random);
                int current = random.nextInt(3);
                Constructor<HybridSourceEnumeratorState> constructor =
                        HybridSourceEnumeratorState.class.getDeclaredConstructor(
                                int.class, byte[].class, int.class);
                constructor.setAccessible(true);
                return new Made(
                        constructor.newInstance(
                                current, ENUMERATORS.serialize(state), ENUMERATORS.getVersion()),
                        Arrays.asList(current, fields(state)));
            case "writer":
                return writer(random);
            default:
                return committer(random);
        }
    }

    private static Made withFields(Object state) {
        return new Made(state, fields(state));
    }

    private static Object fields(Object state) {
        if (state instanceof DynamicKafkaSourceSplit) {
            DynamicKafkaSourceSplit split = (DynamicKafkaSourceSplit) state;
            return Arrays.asList(split.getKafkaClusterId(), fields(split.getKafkaPartitionSplit()));
        }
        if (state instanceof DynamicKafkaSourceEnumState) {
            Map<String, Object> clusters = new LinkedHashMap<>();
            ((DynamicKafkaSourceEnumState) state)
                    .getClusterEnumeratorStates()
                    .forEach((cluster, enumerator) -> clusters.put(cluster, fields(enumerator)));
            return clusters;
        }
        if (state instanceof KafkaPartitionSplit) {
            KafkaPartitionSplit split = (KafkaPartitionSplit) state;
            return Arrays.asList(
                    split.getTopic(),
                    split.getPartition(),
                    split.getStartingOffset(),
                    split.getStoppingOffset().orElse(null));
        }
        if (state instanceof KafkaSourceEnumState) {
            KafkaSourceEnumState enumerator = (KafkaSourceEnumState) state;
            List<Object> partitions = new ArrayList<>();
            for (TopicPartitionAndAssignmentStatus partition : enumerator.partitions()) {
                TopicPartition place = partition.topicPartition();
                boolean isAssigned = partition.assignmentStatus() == AssignmentStatus.ASSIGNED;
                partitions.add(Arrays.asList(place.topic(), place.partition(), isAssigned));
            }
            return Arrays.asList(partitions, enumerator.initialDiscoveryFinished());
        }
        return null;
    }

    private static String name(Random random) {
        int length = 1 + random.nextInt(random.nextInt(10) == 0 ? 240 : 8);
        StringBuilder name = new StringBuilder("t");
        for (int index = 1; index < length; index++) {
            name.append(LETTERS.charAt(random.nextInt(LETTERS.length())));
        }
        return name.toString();
    }

    private static long number(Random random) {
        return random.nextLong() >>> (1 + random.nextInt(62));
    }

    private static KafkaPartitionSplit split(Random random) {
        TopicPartition place = new TopicPartition(name(random), random.nextInt(1000));
        long start = random.nextInt(4) == 0 ? -1 - random.nextInt(3) : number(random);
        long stop = NO_STOP;
        if (random.nextInt(3) == 0) {
            stop = random.nextBoolean() ? -1 - 2 * random.nextInt(2) : Math.max(start, 0) + 5;
        }
        // The largest offsets have none that is five more.
        return new KafkaPartitionSplit(place, start, stop < NO_STOP + 5 ? NO_STOP : stop);
    }

    /** Returns a state whose partitions are written in the order of their topics and numbers. */
    private static KafkaSourceEnumState enumerator(Random random) {
        Map<String, Set<Integer>> places = new TreeMap<>();
        int size = random.nextInt(8);
        for (int index = 0; index < size; index++) {
            places.computeIfAbsent("topic-" + random.nextInt(4), topic -> new TreeSet<>())
                    .add(random.nextInt(200));
        }
        boolean isAssigned = random.nextInt(3) == 0; // all of them
        // Objects of this class are all different: a partition may be there twice.
        Set<TopicPartitionAndAssignmentStatus> partitions = new LinkedHashSet<>();
        places.forEach(
                (topic, numbers) -> {
                    for (int number : numbers) {
                        TopicPartition place = new TopicPartition(topic, number);
                        int chance = isAssigned ? 0 : random.nextInt(5);
                        if (chance < 4) {
                            partitions.add(with(place, AssignmentStatus.ASSIGNED));
                        }
                        if (chance > 2) {
                            partitions.add(with(place, AssignmentStatus.UNASSIGNED_INITIAL));
                        }
                    }
                });
        return new KafkaSourceEnumState(partitions, random.nextBoolean());
    }

    private static TopicPartitionAndAssignmentStatus with(
            TopicPartition place, AssignmentStatus status) {
        return new TopicPartitionAndAssignmentStatus(place, status);
    }

    private static Made clusters(Random random) {
        Map<String, KafkaSourceEnumState> states = new LinkedHashMap<>();
        Map<String, Object> fields = new LinkedHashMap<>();
        Set<KafkaStream> streams = new LinkedHashSet<>();
        for (int index = random.nextInt(4); index > 0; index--) {
            String cluster = name(random);
            Properties servers = new Properties();
            servers.setProperty("bootstrap.servers", name(random) + ":9092");
            Map<String, ClusterMetadata> metadata = new HashMap<>();
            metadata.put(cluster, new ClusterMetadata(Set.of(name(random), "other"), servers));
            streams.add(new KafkaStream(name(random), metadata));
            states.put(cluster, enumerator(random));
            fields.put(cluster, fields(states.get(cluster)));
        }
        return new Made(new DynamicKafkaSourceEnumState(streams, states), fields);
    }

    private static Made writer(Random random) {
        List<CheckpointTransaction> transactions = new ArrayList<>();
        List<Object> told = new ArrayList<>();
        for (int index = random.nextInt(5); index > 0; index--) {
            CheckpointTransaction one = new CheckpointTransaction(name(random), number(random));
            transactions.add(one);
            told.add(Arrays.asList(one.getTransactionalId(), one.getCheckpointId()));
        }
        TransactionOwnership ownership = TransactionOwnership.values()[random.nextInt(2)];
        String prefix = name(random);
        int subtask = random.nextInt(100);
        int subtasks = subtask + 1 + random.nextInt(100);
        return new Made(
                new KafkaWriterState(prefix, subtask, subtasks, ownership, transactions),
                Arrays.asList(prefix, subtask, subtasks, ownership.name(), told));
    }

    /** Returns committables that wait for their first commit, and some that were tried once. */
    private static Made committer(Random random) throws Exception {
        CommittableCollector<KafkaCommittable> collector = CommittableCollector.of(METRICS);
        List<Object> checkpoints = new ArrayList<>();
        long checkpoint = 0;
        for (int left = random.nextInt(4); left > 0; left--) {
            checkpoint += 1 + random.nextInt(1000);
            int subtasks = 1 + random.nextInt(3);
            List<Object> told = new ArrayList<>();
            Map<KafkaCommittable, List<Object>> requests = new HashMap<>();
            for (int subtask = 0; subtask < subtasks; subtask++) {
                int size = random.nextInt(4);
                collector.addMessage(
                        new CommittableSummary<>(subtask, subtasks, checkpoint, size, 0));
                List<Object> ofSubtask = new ArrayList<>();
                for (int index = 0; index < size; index++) {
                    KafkaCommittable committable =
                            new KafkaCommittable(
                                    number(random),
                                    (short) random.nextInt(1 << 15),
                                    name(random),
                                    null);
                    collector.addMessage(
                            new CommittableWithLineage<>(committable, checkpoint, subtask));
                    List<Object> request =
                            new ArrayList<>(
                                    Arrays.asList(
                                            committable.getTransactionalId(),
                                            committable.getProducerId(),
                                            committable.getEpoch(),
                                            0,
                                            "RECEIVED"));
                    requests.put(committable, request);
                    ofSubtask.add(request);
                }
                told.add(Arrays.asList(subtask, ofSubtask));
            }
            checkpoints.add(Arrays.asList(checkpoint, subtasks, told));
            if (random.nextBoolean()) {
                tryOnce(collector, checkpoint, requests, random);
            }
        }
        return new Made(collector, checkpoints);
    }

    private static void tryOnce(
            CommittableCollector<KafkaCommittable> collector,
            long checkpoint,
            Map<KafkaCommittable, List<Object>> requests,
            Random random)
            throws Exception {
        Committer<KafkaCommittable> committer =
                new Committer<KafkaCommittable>() {
                    @Override
                    public void commit(Collection<CommitRequest<KafkaCommittable>> tried) {
                        for (CommitRequest<KafkaCommittable> request : tried) {
                            List<Object> told = requests.get(request.getCommittable());
                            switch (random.nextInt(3)) {
                                case 0:
                                    request.retryLater();
                                    told.set(3, 1);
                                    told.set(4, "RETRY");
                                    break;
                                case 1:
                                    request.signalFailedWithKnownReason(new IOException());
                                    told.set(4, "FAILED");
                                    break;
                                default:
                                    told.set(4, "COMMITTED");
                            }
                        }
                    }

                    @Override
                    public void close() {}
                };
        for (CheckpointCommittableManager<KafkaCommittable> manager :
                collector.getCheckpointCommittablesUpTo(checkpoint)) {
            if (manager.getCheckpointId() == checkpoint) {
                try {
                    manager.commit(committer, 0);
                } catch (IOException error) {
                    continue; // Some are left to be tried again.
                }
            }
        }
    }
}
