import java.nio.ByteBuffer;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import org.apache.flink.api.common.eventtime.Watermark;
import org.apache.flink.api.connector.source.Boundedness;
import org.apache.flink.api.connector.source.ReaderOutput;
import org.apache.flink.api.connector.source.Source;
import org.apache.flink.api.connector.source.SourceReader;
import org.apache.flink.api.connector.source.SourceReaderContext;
import org.apache.flink.api.connector.source.SourceSplit;
import org.apache.flink.api.connector.source.SplitEnumerator;
import org.apache.flink.api.connector.source.SplitEnumeratorContext;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.core.io.InputStatus;
import org.apache.flink.core.io.SimpleVersionedSerializer;

/**
 * Emits what is offered to it in this JVM: keys as bytes, each with the number of its operator.
 *
 * <p>It never ends, and has no splits and no state. Its interfaces are the same in Flink 1 and 2,
 * unlike those of a SourceFunction.
 */
public class KeyFeed implements Source<Tuple2<Integer, byte[]>, KeyFeed.None, KeyFeed.None> {

    private static final ConcurrentLinkedQueue<Tuple2<Integer, byte[]>> OFFERED =
            new ConcurrentLinkedQueue<>();
    private static final int WATERMARK = -1;

    public static void clear() {
        OFFERED.clear();
    }

    public static void offer(int operator, byte[] key) {
        OFFERED.add(Tuple2.of(operator, key));
    }

    /** Lets the last watermark follow what was offered. */
    public static void endTime() {
        offerWatermark(Long.MAX_VALUE);
    }

    /** Lets a watermark follow what was offered. */
    public static void offerWatermark(long timestamp) {
        OFFERED.add(Tuple2.of(WATERMARK, ByteBuffer.allocate(8).putLong(0, timestamp).array()));
    }

    /** Tells how much of what was offered was not taken. */
    public static int size() {
        return OFFERED.size();
    }

    @Override
    public Boundedness getBoundedness() {
        return Boundedness.CONTINUOUS_UNBOUNDED;
    }

    @Override
    public SourceReader<Tuple2<Integer, byte[]>, None> createReader(SourceReaderContext context) {
        return new Reader();
    }

    @Override
    public SplitEnumerator<None, None> createEnumerator(SplitEnumeratorContext<None> context) {
        return new Enumerator();
    }

    @Override
    public SplitEnumerator<None, None> restoreEnumerator(
            SplitEnumeratorContext<None> context, None checkpoint) {
        return new Enumerator();
    }

    @Override
    public SimpleVersionedSerializer<None> getSplitSerializer() {
        return new NoneSerializer();
    }

    @Override
    public SimpleVersionedSerializer<None> getEnumeratorCheckpointSerializer() {
        return new NoneSerializer();
    }

    /** Stands for splits and checkpoints, of which there are none. */
    public static class None implements SourceSplit {

        @Override
        public String splitId() {
            return "none";
        }
    }

    private static class NoneSerializer implements SimpleVersionedSerializer<None> {

        @Override
        public int getVersion() {
            return 0;
        }

        @Override
        public byte[] serialize(None none) {
            return new byte[0];
        }

        @Override
        public None deserialize(int version, byte[] bytes) {
            return new None();
        }
    }

    private static class Enumerator implements SplitEnumerator<None, None> {

        @Override
        public void start() {}

        @Override
        public void handleSplitRequest(int subtask, String host) {}

        @Override
        public void addSplitsBack(List<None> splits, int subtask) {}

        @Override
        public void addReader(int subtask) {}

        @Override
        public None snapshotState(long checkpoint) {
            return new None();
        }

        @Override
        public void close() {}
    }

    private static class Reader implements SourceReader<Tuple2<Integer, byte[]>, None> {

        @Override
        public void start() {}

        @Override
        public InputStatus pollNext(ReaderOutput<Tuple2<Integer, byte[]>> output) {
            Tuple2<Integer, byte[]> next = OFFERED.poll();
            if (next == null) {
                return InputStatus.NOTHING_AVAILABLE;
            }
            if (next.f0 == WATERMARK) {
                output.emitWatermark(new Watermark(ByteBuffer.wrap(next.f1).getLong()));
            } else {
                output.collect(next);
            }
            return InputStatus.MORE_AVAILABLE;
        }

        @Override
        public List<None> snapshotState(long checkpoint) {
            return List.of();
        }

        @Override
        public CompletableFuture<Void> isAvailable() {
            return CompletableFuture.runAsync(
                    () -> {}, CompletableFuture.delayedExecutor(5, TimeUnit.MILLISECONDS));
        }

        @Override
        public void addSplits(List<None> splits) {}

        @Override
        public void notifyNoMoreSplits() {}

        @Override
        public void close() {}
    }
}
