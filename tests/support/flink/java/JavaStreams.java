import java.io.Serializable;
import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.core.execution.JobClient;
import org.apache.flink.core.execution.SavepointFormatType;
import org.apache.flink.streaming.api.checkpoint.ListCheckpointed;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.DiscardingSink;
import org.apache.flink.streaming.api.functions.source.SourceFunction;

/**
 * A job of Flink 1 whose source has a ListCheckpointed state, the elements of which Flink writes by
 * Java's own serialization. The first argument is the folder for its savepoint, whose `_metadata`
 * has all of them. From the savepoint that the second names it goes on, and prints what it finds.
 */
public class JavaStreams {

    /** Elements of every class that is read as a value, and some that are not. */
    static List<Serializable> elements() {
        List<Long> twice = new ArrayList<>(List.of(1L, 1L));
        Map<String, Serializable> map = new HashMap<>();
        map.put("longs", (Serializable) List.of(1L, -2L));
        map.put("none", null);
        return new ArrayList<>(
                Arrays.asList(
                        5L,
                        -1L << 63,
                        7,
                        2.5,
                        true,
                        "a text, \u00e9",
                        (Serializable) twice,
                        new LinkedList<>(Arrays.asList(1, "a", null)),
                        (Serializable) Arrays.asList(false, 2.0),
                        (Serializable) List.of(1L, 2L, 3L),
                        (Serializable) Arrays.asList((Object) null, 1L).stream().toList(),
                        (Serializable) Collections.emptyList(),
                        (Serializable) Collections.singletonList(7),
                        (Serializable) Collections.unmodifiableList(new ArrayList<>(twice)),
                        new CopyOnWriteArrayList<>(List.of(1L)),
                        (Serializable) map,
                        new LinkedHashMap<>(Map.of(1, 2L)),
                        new TreeMap<>(Map.of("b", 1, "a", 2)),
                        (Serializable) Map.of("a", 1L),
                        (Serializable) Collections.emptyMap(),
                        (Serializable) Collections.singletonMap("a", 2.5),
                        (Serializable) Collections.unmodifiableMap(new TreeMap<>(Map.of("a", 1))),
                        new ConcurrentHashMap<>(Map.of("a", 1L)),
                        new BigDecimal("1.50"),
                        new byte[] {1, 2},
                        'c',
                        (short) 3));
    }

    /** A source that sends nothing. */
    static class Source implements SourceFunction<Long>, ListCheckpointed<Serializable> {
        static volatile boolean started;

        private volatile boolean running = true;
        private List<Serializable> restored;

        @Override
        public void run(SourceContext<Long> context) throws Exception {
            started = true;
            while (running) {
                Thread.sleep(10);
            }
        }

        @Override
        public void cancel() {
            running = false;
        }

        @Override
        public List<Serializable> snapshotState(long checkpoint, long time) {
            return restored == null ? elements() : restored;
        }

        @Override
        public void restoreState(List<Serializable> state) {
            restored = state;
            for (Serializable element : state) {
                Object shown = element instanceof byte[] ? Arrays.toString((byte[]) element) : element;
                System.out.println(element.getClass().getName() + "\t" + shown);
            }
        }
    }

    public static void main(String[] arguments) throws Exception {
        Configuration settings = new Configuration();
        settings.setString("rest.bind-port", "0");
        if (arguments.length > 1) {
            settings.setString("execution.savepoint.path", arguments[1]);
        }
        StreamExecutionEnvironment environment =
                StreamExecutionEnvironment.createLocalEnvironment(1, settings);
        environment.addSource(new Source()).uid("source").addSink(new DiscardingSink<>()).uid("sink");
        JobClient job = environment.executeAsync();
        while (!Source.started) {
            Thread.sleep(50);
        }
        String path =
                job.stopWithSavepoint(false, arguments[0], SavepointFormatType.CANONICAL).get();
        System.out.println("savepoint\t" + path);
        System.exit(0);
    }
}
