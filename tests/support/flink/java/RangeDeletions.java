import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import org.rocksdb.CompactionOptions;
import org.rocksdb.CompressionType;
import org.rocksdb.FlushOptions;
import org.rocksdb.LiveFileMetaData;
import org.rocksdb.Options;
import org.rocksdb.RocksDB;
import org.rocksdb.RocksIterator;
import org.rocksdb.WriteOptions;

/**
 * Leaves a store as two changes of parallelism and compactions leave it.
 *
 * <p>Key groups 2 and 3 are deleted, as a restore deletes what is another subtask's, and come back,
 * as one does that puts two subtasks together. Then records above the deletion sink to the last
 * level, where they get number 0, and files beside them still have the whole deletion. A record is
 * as Flink writes it, of a Byte and a String. The argument is the folder; standard output is each
 * live record: the hexadecimal key, and the first character of the text, "1" or "2".
 */
public class RangeDeletions {

    private static final int KEYS = 60;
    private static final int FILE_SIZE = 4_096;

    private static byte[] key(int keyGroup, int number) {
        return new byte[] {(byte) keyGroup, (byte) number, 0};
    }

    private static void put(RocksDB store, WriteOptions writes, String text) throws Exception {
        byte[] value = (" " + text.repeat(100)).getBytes(StandardCharsets.US_ASCII);
        value[0] = (byte) value.length;
        for (int keyGroup = 0; keyGroup < 4; keyGroup++) {
            for (int number = 0; number < KEYS; number++) {
                store.put(writes, key(keyGroup, number), value);
            }
        }
        store.flush(new FlushOptions());
    }

    private static void sink(RocksDB store, int level) throws Exception {
        List<String> names =
                store.getLiveFilesMetaData().stream()
                        .filter(file -> file.level() == 0)
                        .map(LiveFileMetaData::fileName)
                        .toList();
        CompactionOptions sized =
                new CompactionOptions()
                        .setCompression(CompressionType.NO_COMPRESSION)
                        .setOutputFileSizeLimit(FILE_SIZE);
        store.compactFiles(sized, names, level, -1, null);
    }

    public static void main(String[] arguments) throws Exception {
        RocksDB.loadLibrary();
        Options options =
                new Options()
                        .setCreateIfMissing(true)
                        .setDisableAutoCompactions(true)
                        .setCompressionType(CompressionType.NO_COMPRESSION)
                        .setTargetFileSizeBase(FILE_SIZE);
        WriteOptions writes = new WriteOptions().setDisableWAL(true);
        try (RocksDB store = RocksDB.open(options, Path.of(arguments[0]).toString())) {
            put(store, writes, "1");
            sink(store, 6);
            store.deleteRange(writes, key(2, 0), new byte[] {4});
            put(store, writes, "2");
            sink(store, 2);
            store.compactRange(key(3, KEYS - 1), key(3, KEYS - 1));
            try (RocksIterator records = store.newIterator()) {
                for (records.seekToFirst(); records.isValid(); records.next()) {
                    byte[] key = records.key();
                    char first = (char) records.value()[1];
                    System.out.printf("%02x%02x%02x %s%n", key[0], key[1], key[2], first);
                }
            }
        }
    }
}
