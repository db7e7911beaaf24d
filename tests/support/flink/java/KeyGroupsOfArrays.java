import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Scanner;
import org.apache.flink.runtime.state.KeyGroupRangeAssignment;
import org.apache.flink.table.data.binary.BinaryRowData;
import org.apache.flink.table.data.writer.BinaryRowWriter;

/**
 * Times real Flink over keys in a file: the key groups of all of them, in one thread.
 *
 * <p>Arguments: the kind of the keys, their number, the max parallelism, the file of the keys and
 * the one for the key groups of the first round. Keys are little endian; texts are their offsets,
 * one more than texts, and then their UTF-8. For each line on standard input it does a round and
 * prints the nanoseconds of CPU time that its thread took. STRING has Strings before a round
 * starts, with no hash kept in them; UTF8 makes each from its bytes in the round.
 */
public class KeyGroupsOfArrays {

    public static void main(String[] args) throws Exception {
        String kind = args[0];
        int count = Integer.parseInt(args[1]);
        int maxParallelism = Integer.parseInt(args[2]);
        ByteBuffer data = ByteBuffer.wrap(Files.readAllBytes(Path.of(args[3])));
        data.order(ByteOrder.LITTLE_ENDIAN);
        int[] groups = new int[count];
        Keys keys = new Keys(kind, data, count);
        boolean written = false;
        ThreadMXBean threads = ManagementFactory.getThreadMXBean();
        Scanner lines = new Scanner(System.in);
        while (lines.hasNextLine() && lines.nextLine() != null) {
            keys.refresh();
            long start = threads.getCurrentThreadCpuTime();
            keys.assign(groups, maxParallelism);
            long nanos = threads.getCurrentThreadCpuTime() - start;
            if (!written) {
                ByteBuffer out = ByteBuffer.allocate(4 * count).order(ByteOrder.LITTLE_ENDIAN);
                out.asIntBuffer().put(groups);
                Files.write(Path.of(args[4]), out.array());
                written = true;
            }
            System.out.println(nanos);
        }
    }

    private static class Keys {
        final String kind;
        final ByteBuffer data;
        final int count;
        int[] ints;
        long[] longs;
        double[] doubles;
        String[] texts;

        Keys(String kind, ByteBuffer data, int count) {
            this.kind = kind;
            this.data = data;
            this.count = count;
            switch (kind) {
                case "INT" -> data.asIntBuffer().get(ints = new int[count]);
                case "DOUBLE" -> data.asDoubleBuffer().get(doubles = new double[count]);
                case "STRING" -> texts = new String[count];
                case "UTF8" -> { }
                default -> data.asLongBuffer().get(longs = new long[count]);
            }
        }

        /** Make the texts anew, as a String keeps the hash that it was asked for. */
        void refresh() {
            if (texts == null) {
                return;
            }
            for (int i = 0; i < count; i++) {
                texts[i] = text(i);
            }
            System.gc();
        }

        private String text(int i) {
            int start = data.getInt(4 * i);
            int size = data.getInt(4 * i + 4) - start;
            int first = 4 * (count + 1);
            return new String(data.array(), first + start, size, StandardCharsets.UTF_8);
        }

        void assign(int[] groups, int maxParallelism) {
            switch (kind) {
                case "INT" -> assignInts(groups, maxParallelism);
                case "LONG" -> assignLongs(groups, maxParallelism);
                case "DOUBLE" -> assignDoubles(groups, maxParallelism);
                case "STRING" -> assignTexts(groups, maxParallelism);
                case "UTF8" -> assignUtf8(groups, maxParallelism);
                default -> assignRows(groups, maxParallelism);
            }
        }

        private void assignInts(int[] groups, int maxParallelism) {
            for (int i = 0; i < count; i++) {
                groups[i] = KeyGroupRangeAssignment.assignToKeyGroup(ints[i], maxParallelism);
            }
        }

        private void assignLongs(int[] groups, int maxParallelism) {
            for (int i = 0; i < count; i++) {
                groups[i] = KeyGroupRangeAssignment.assignToKeyGroup(longs[i], maxParallelism);
            }
        }

        private void assignDoubles(int[] groups, int maxParallelism) {
            for (int i = 0; i < count; i++) {
                groups[i] = KeyGroupRangeAssignment.assignToKeyGroup(doubles[i], maxParallelism);
            }
        }

        private void assignTexts(int[] groups, int maxParallelism) {
            for (int i = 0; i < count; i++) {
                groups[i] = KeyGroupRangeAssignment.assignToKeyGroup(texts[i], maxParallelism);
            }
        }

        private void assignUtf8(int[] groups, int maxParallelism) {
            for (int i = 0; i < count; i++) {
                groups[i] = KeyGroupRangeAssignment.assignToKeyGroup(text(i), maxParallelism);
            }
        }

        /** Row and writer are reused, as in the key selector that Flink's planner generates. */
        private void assignRows(int[] groups, int maxParallelism) {
            BinaryRowData row = new BinaryRowData(1);
            BinaryRowWriter writer = new BinaryRowWriter(row);
            for (int i = 0; i < count; i++) {
                writer.reset();
                writer.writeLong(0, longs[i]);
                writer.complete();
                groups[i] = KeyGroupRangeAssignment.assignToKeyGroup(row, maxParallelism);
            }
        }
    }
}
