import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.flink.api.common.JobID;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.runtime.minicluster.MiniCluster;
import org.apache.flink.runtime.minicluster.MiniClusterConfiguration;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.streaming.api.functions.source.legacy.SourceFunction;

/**
 * Runs a keyed job in a local cluster whose REST API can be asked, until it is told to end.
 *
 * <p>Standard input has a JSON object a line. The first has "parallelism", "max_parallelism" and
 * "keys" (strings, the key of each record); the answer, a line of standard output, has "url" and
 * "job_id". Each further line is "cancel", which ends the job and is answered by "cancelled", or
 * "submit", which runs the same job once more and is answered by its id. The program ends with its
 * standard input.
 */
public class RestJob {

    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] arguments) throws Exception {
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8.name());
        System.setOut(System.err); // whatever Flink logs
        BufferedReader in =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        JsonNode task = JSON.readTree(in.readLine());
        Configuration settings = new Configuration();
        settings.setString("rest.address", "localhost");
        settings.setString("rest.bind-address", "localhost");
        settings.setString("rest.bind-port", "0");
        settings.setString("metrics.fetcher.update-interval", "100 ms"); // and not 10 s
        MiniClusterConfiguration local =
                new MiniClusterConfiguration.Builder()
                        .setConfiguration(settings)
                        .setNumTaskManagers(1)
                        .setNumSlotsPerTaskManager(2 * task.get("parallelism").intValue())
                        .build();
        try (MiniCluster cluster = new MiniCluster(local)) {
            cluster.start();
            JobID id = submit(cluster, task);
            Map<String, Object> answer = new LinkedHashMap<>();
            answer.put("url", cluster.getRestAddress().get().toString());
            answer.put("job_id", id.toHexString());
            out.println(JSON.writeValueAsString(answer));
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                if (line.equals("submit")) {
                    out.println(submit(cluster, task).toHexString());
                } else {
                    cluster.cancelJob(id).get();
                    cluster.requestJobResult(id).get();
                    out.println("cancelled");
                }
            }
        }
    }

    private static JobID submit(MiniCluster cluster, JsonNode task) throws Exception {
        ArrayList<String> keys = new ArrayList<>();
        task.get("keys").forEach(key -> keys.add(key.textValue()));
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        env.setParallelism(task.get("parallelism").intValue());
        env.setMaxParallelism(task.get("max_parallelism").intValue());
        env.addSource(new Keys(keys), "keys", Types.STRING)
                .setParallelism(1)
                .keyBy(key -> key, Types.STRING)
                .reduce((one, other) -> other)
                .uid("latest")
                .name("Latest <of> a key")
                .rebalance()
                .sinkTo(new DiscardingSink<>())
                .name("sink");
        return cluster.submitJob(env.getStreamGraph().getJobGraph()).get().getJobID();
    }

    /** Emits the keys, then waits. */
    public static class Keys implements SourceFunction<String> {

        private final List<String> keys;
        private volatile boolean isCancelled;

        Keys(ArrayList<String> keys) {
            this.keys = keys;
        }

        @Override
        public void run(SourceContext<String> context) throws Exception {
            for (String key : keys) {
                synchronized (context.getCheckpointLock()) {
                    context.collect(key);
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
}
