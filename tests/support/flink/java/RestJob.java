import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.flink.api.common.JobID;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.core.execution.CheckpointType;
import org.apache.flink.core.execution.SavepointFormatType;
import org.apache.flink.runtime.minicluster.MiniCluster;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.streaming.api.functions.source.legacy.SourceFunction;

/**
 * Runs a keyed job in a local cluster whose REST API can be asked, until it is told to end.
 *
 * <p>Standard input has JSON a line. The first is an object with "parallelism", "max_parallelism"
 * and "keys" (strings, the key of each record); the answer, a line of standard output, has "url"
 * and "job_id". Each further line is "cancel", which ends the job and is answered by "cancelled",
 * "submit", which runs the same job once more and is answered by its id, "checkpoint", which takes
 * one and is answered by its id, or "savepoint" and a folder, which is answered by the path of the
 * savepoint there. The program ends with its standard input.
 */
public class RestJob {

    private JsonNode task;
    private JobID id;

    public static void main(String[] arguments) throws Exception {
        LocalCluster.answerLines(arguments, new RestJob()::answer);
    }

    private Object answer(MiniCluster cluster, JsonNode line) throws Exception {
        if (line.isObject()) {
            task = line;
            id = submit(cluster);
            return Map.of(
                    "url", cluster.getRestAddress().get().toString(), "job_id", id.toHexString());
        }
        String text = line.textValue();
        if (text.equals("submit")) {
            return submit(cluster).toHexString();
        }
        if (text.equals("checkpoint")) {
            return cluster.triggerCheckpoint(id, CheckpointType.FULL).get();
        }
        if (text.startsWith("savepoint ")) {
            String folder = text.substring("savepoint ".length());
            return cluster.triggerSavepoint(id, folder, false, SavepointFormatType.CANONICAL).get();
        }
        cluster.cancelJob(id).get();
        cluster.requestJobResult(id).get();
        return "cancelled";
    }

    private JobID submit(MiniCluster cluster) throws Exception {
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
