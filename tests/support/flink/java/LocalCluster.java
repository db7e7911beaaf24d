import java.io.BufferedReader;
import java.io.DataInputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.function.IntSupplier;
import org.apache.flink.api.common.JobID;
import org.apache.flink.api.common.JobStatus;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.runtime.checkpoint.Checkpoints;
import org.apache.flink.runtime.checkpoint.metadata.CheckpointMetadata;
import org.apache.flink.runtime.execution.ExecutionState;
import org.apache.flink.runtime.executiongraph.AccessExecutionGraph;
import org.apache.flink.runtime.executiongraph.AccessExecutionVertex;
import org.apache.flink.runtime.minicluster.MiniCluster;
import org.apache.flink.runtime.minicluster.MiniClusterConfiguration;
import org.apache.flink.runtime.state.CompletedCheckpointStorageLocation;
import org.apache.flink.runtime.state.filesystem.AbstractFsCheckpointStorageAccess;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.core.json.JsonWriteFeature;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.json.JsonMapper;

/** A cluster in this JVM, whose tasks are threads of it: what programs that run jobs there share. */
class LocalCluster {

    static final ObjectMapper JSON =
            JsonMapper.builder().enable(JsonWriteFeature.ESCAPE_NON_ASCII).build();

    private static final Duration PATIENCE = Duration.ofSeconds(300);

    /** What a program does for a line that it is given. */
    interface Answer {
        Object to(MiniCluster cluster, JsonNode line) throws Exception;
    }

    private LocalCluster() {}

    /**
     * Starts a cluster with as many slots as the argument says, and answers each line of standard
     * input with a line of standard output, both of JSON.
     */
    static void answerLines(String[] arguments, Answer answer) throws Exception {
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.US_ASCII.name());
        System.setOut(System.err); // whatever Flink logs
        BufferedReader in =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        Configuration settings = new Configuration();
        settings.setString("rest.address", "localhost");
        settings.setString("rest.bind-address", "localhost");
        settings.setString("rest.bind-port", "0");
        settings.setString("metrics.fetcher.update-interval", "100"); // ms, and not 10 s
        settings.setString("taskmanager.memory.network.min", "256m");
        settings.setString("taskmanager.memory.network.max", "256m");
        settings.setString("taskmanager.memory.managed.size", "512m");
        MiniClusterConfiguration local =
                new MiniClusterConfiguration.Builder()
                        .setConfiguration(settings)
                        .setNumTaskManagers(1)
                        .setNumSlotsPerTaskManager(Integer.parseInt(arguments[0]))
                        .build();
        try (MiniCluster cluster = new MiniCluster(local)) {
            cluster.start();
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                out.println(JSON.writeValueAsString(answer.to(cluster, JSON.readTree(line))));
            }
        }
    }

    /** Returns the settings of a job that ends when it fails. */
    static Configuration settings(JsonNode options) {
        Configuration settings = new Configuration();
        settings.setString(FlinkApi.option("restart-strategy.type"), "none");
        options.fields()
                .forEachRemaining(
                        one ->
                                settings.setString(
                                        FlinkApi.option(one.getKey()), one.getValue().asText()));
        return settings;
    }

    /** Waits for all tasks to run and for nothing to be left to do; returns why not, or null. */
    static String await(MiniCluster cluster, JobID id, IntSupplier left) throws Exception {
        long deadline = System.nanoTime() + PATIENCE.toNanos();
        while (System.nanoTime() < deadline) {
            AccessExecutionGraph graph = cluster.getExecutionGraph(id).get();
            if (graph.getState() == JobStatus.FAILED) {
                return graph.getFailureInfo().getExceptionAsString();
            }
            boolean isRunning = graph.getState() == JobStatus.RUNNING && left.getAsInt() <= 0;
            for (AccessExecutionVertex vertex : graph.getAllExecutionVertices()) {
                isRunning &= vertex.getExecutionState() == ExecutionState.RUNNING;
            }
            if (isRunning) {
                return null;
            }
            Thread.sleep(10);
        }
        throw new IllegalStateException(left.getAsInt() + " are left after " + PATIENCE);
    }

    /** Reads the metadata of a savepoint or checkpoint with Flink's own classes. */
    static CheckpointMetadata metadata(String path) throws Exception {
        CompletedCheckpointStorageLocation location =
                AbstractFsCheckpointStorageAccess.resolveCheckpointPointer(path);
        try (DataInputStream in =
                new DataInputStream(location.getMetadataHandle().openInputStream())) {
            return Checkpoints.loadCheckpointMetadata(
                    in, LocalCluster.class.getClassLoader(), path);
        }
    }
}
