import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.flink.api.connector.source.Boundedness;
import org.apache.flink.api.connector.source.ReaderOutput;
import org.apache.flink.api.connector.source.Source;
import org.apache.flink.api.connector.source.SourceReader;
import org.apache.flink.api.connector.source.SourceReaderContext;
import org.apache.flink.api.connector.source.SourceSplit;
import org.apache.flink.api.connector.source.SplitEnumerator;
import org.apache.flink.api.connector.source.SplitEnumeratorContext;
import org.apache.flink.api.connector.source.SplitsAssignment;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.core.io.InputStatus;
import org.apache.flink.core.io.SimpleVersionedSerializer;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;

/**
 * Reads partitions as Kafka's source does: what it keeps of them has the bytes of that one.
 *
 * <p>The layouts and the rules are those of flink-connector-kafka: KafkaPartitionSplitSerializer of
 * version 0, KafkaSourceEnumStateSerializer of version 2; a partition that the enumerator does not
 * know is read from its start if the first discovery was finished, else from where the job is told
 * to start, which is here the end, or the start for `fromStart`. Partitions hold their offsets: each
 * record is a partition and its place in it. The ends of partitions come by their names, such as
 * clicks-0.
 */
public class PartitionSource
        implements Source<Tuple2<String, Long>, PartitionSource.Split, PartitionSource.Known> {

    private static final long LATEST = -1;
    private static final long EARLIEST = -2;
    private static final long NO_STOP = Long.MIN_VALUE;

    private final TreeMap<String, Long> ends;
    private final long start;

    PartitionSource(JsonNode ends) {
        this(new TreeMap<>(), LATEST);
        ends.fields().forEachRemaining(one -> this.ends.put(one.getKey(), one.getValue().asLong()));
    }

    private PartitionSource(TreeMap<String, Long> ends, long start) {
        this.ends = ends;
        this.start = start;
    }

    /** Makes the source of a job that is told to start at the first offsets. */
    static PartitionSource fromStart(Map<String, Long> ends) {
        return new PartitionSource(new TreeMap<>(ends), EARLIEST);
    }

    @Override
    public Boundedness getBoundedness() {
        return Boundedness.CONTINUOUS_UNBOUNDED;
    }

    @Override
    public SourceReader<Tuple2<String, Long>, Split> createReader(SourceReaderContext context) {
        return new Reader();
    }

    @Override
    public SplitEnumerator<Split, Known> createEnumerator(SplitEnumeratorContext<Split> context) {
        return new Enumerator(context, new Known());
    }

    @Override
    public SplitEnumerator<Split, Known> restoreEnumerator(
            SplitEnumeratorContext<Split> context, Known known) {
        return new Enumerator(context, known);
    }

    @Override
    public SimpleVersionedSerializer<Split> getSplitSerializer() {
        return new SplitSerializer();
    }

    @Override
    public SimpleVersionedSerializer<Known> getEnumeratorCheckpointSerializer() {
        return new KnownSerializer();
    }

    /** A partition, and where to go on in it. */
    public static class Split implements SourceSplit {

        private final String topic;
        private final int partition;
        private final long stop;
        private long offset;

        Split(String topic, int partition, long offset, long stop) {
            this.topic = topic;
            this.partition = partition;
            this.offset = offset;
            this.stop = stop;
        }

        @Override
        public String splitId() {
            return topic + "-" + partition;
        }
    }

    /** The partitions that are known: whether each was assigned to a reader. */
    public static class Known {

        private final Map<String, Boolean> isAssigned = new LinkedHashMap<>();
        private boolean isDiscovered;
    }

    private static class SplitSerializer implements SimpleVersionedSerializer<Split> {

        @Override
        public int getVersion() {
            return 0;
        }

        @Override
        public byte[] serialize(Split split) throws IOException {
            ByteArrayOutputStream bytes = new ByteArrayOutputStream();
            DataOutputStream out = new DataOutputStream(bytes);
            out.writeUTF(split.topic);
            out.writeInt(split.partition);
            out.writeLong(split.offset);
            out.writeLong(split.stop);
            return bytes.toByteArray();
        }

        @Override
        public Split deserialize(int version, byte[] bytes) throws IOException {
            check(version == getVersion(), "version " + version);
            DataInputStream in = new DataInputStream(new ByteArrayInputStream(bytes));
            Split split = new Split(in.readUTF(), in.readInt(), in.readLong(), in.readLong());
            check(in.available() == 0, "bytes are left");
            return split;
        }
    }

    private static class KnownSerializer implements SimpleVersionedSerializer<Known> {

        @Override
        public int getVersion() {
            return 2;
        }

        @Override
        public byte[] serialize(Known known) throws IOException {
            ByteArrayOutputStream bytes = new ByteArrayOutputStream();
            DataOutputStream out = new DataOutputStream(bytes);
            out.writeInt(known.isAssigned.size());
            for (Map.Entry<String, Boolean> one : known.isAssigned.entrySet()) {
                out.writeUTF(topic(one.getKey()));
                out.writeInt(number(one.getKey()));
                out.writeInt(one.getValue() ? 0 : 1);
            }
            out.writeBoolean(known.isDiscovered);
            return bytes.toByteArray();
        }

        @Override
        public Known deserialize(int version, byte[] bytes) throws IOException {
            check(version == getVersion(), "version " + version);
            DataInputStream in = new DataInputStream(new ByteArrayInputStream(bytes));
            Known known = new Known();
            for (int left = in.readInt(); left > 0; left--) {
                String partition = in.readUTF() + "-" + in.readInt();
                int status = in.readInt();
                check(status == 0 || status == 1, "status " + status);
                known.isAssigned.put(partition, status == 0);
            }
            known.isDiscovered = in.readBoolean();
            check(in.available() == 0, "bytes are left");
            return known;
        }
    }

    private static void check(boolean isRight, String what) throws IOException {
        if (!isRight) {
            throw new IOException(what);
        }
    }

    private static String topic(String partition) {
        return partition.substring(0, partition.lastIndexOf('-'));
    }

    private static int number(String partition) {
        return Integer.parseInt(partition.substring(partition.lastIndexOf('-') + 1));
    }

    private class Enumerator implements SplitEnumerator<Split, Known> {

        private final SplitEnumeratorContext<Split> context;
        private final Known known;
        private final Map<String, Split> pending = new TreeMap<>();

        Enumerator(SplitEnumeratorContext<Split> context, Known known) {
            this.context = context;
            this.known = known;
        }

        @Override
        public void start() {
            long first = known.isDiscovered ? EARLIEST : start;
            for (String partition : ends.keySet()) {
                if (!known.isAssigned.getOrDefault(partition, false)) {
                    // One that was not assigned before was there as the job first started.
                    long offset = known.isAssigned.containsKey(partition) ? start : first;
                    Split split = new Split(topic(partition), number(partition), offset, NO_STOP);
                    pending.put(partition, split);
                    known.isAssigned.put(partition, false);
                }
            }
            known.isDiscovered = true;
        }

        @Override
        public void addReader(int subtask) {
            List<Split> its = new ArrayList<>();
            for (Split split : pending.values()) {
                if (owner(split) == subtask) {
                    its.add(split);
                }
            }
            if (its.isEmpty()) {
                return;
            }
            its.forEach(split -> pending.remove(split.splitId()));
            its.forEach(split -> known.isAssigned.put(split.splitId(), true));
            context.assignSplits(new SplitsAssignment<>(Map.of(subtask, its)));
        }

        private int owner(Split split) {
            int start = (split.topic.hashCode() * 31 & 0x7fffffff) % context.currentParallelism();
            return (start + split.partition) % context.currentParallelism();
        }

        @Override
        public void addSplitsBack(List<Split> splits, int subtask) {
            splits.forEach(split -> pending.put(split.splitId(), split));
        }

        @Override
        public void handleSplitRequest(int subtask, String host) {}

        @Override
        public Known snapshotState(long checkpoint) {
            return known;
        }

        @Override
        public void close() {}
    }

    private class Reader implements SourceReader<Tuple2<String, Long>, Split> {

        private final Deque<Split> splits = new ArrayDeque<>();

        @Override
        public void start() {}

        @Override
        public InputStatus pollNext(ReaderOutput<Tuple2<String, Long>> output) {
            for (Split split : splits) {
                long end = end(split);
                if (split.stop != NO_STOP) {
                    end = Math.min(end, split.stop);
                }
                if (split.offset < end) {
                    output.collect(Tuple2.of(split.splitId(), split.offset++));
                    return InputStatus.MORE_AVAILABLE;
                }
            }
            return InputStatus.NOTHING_AVAILABLE;
        }

        @Override
        public List<Split> snapshotState(long checkpoint) {
            return new ArrayList<>(splits);
        }

        @Override
        public CompletableFuture<Void> isAvailable() {
            return CompletableFuture.runAsync(
                    () -> {}, CompletableFuture.delayedExecutor(5, TimeUnit.MILLISECONDS));
        }

        @Override
        public void addSplits(List<Split> more) {
            for (Split split : more) {
                if (split.offset == EARLIEST) {
                    split.offset = 0;
                } else if (split.offset == LATEST) {
                    split.offset = end(split);
                }
                splits.add(split);
            }
        }

        private long end(Split split) {
            return ends.getOrDefault(split.splitId(), 0L);
        }

        @Override
        public void notifyNoMoreSplits() {}

        @Override
        public void close() {}
    }
}
