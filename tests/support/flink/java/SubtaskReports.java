import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.core.json.JsonWriteFeature;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.json.JsonMapper;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.table.api.Table;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.apache.flink.types.Row;
import org.apache.flink.util.CloseableIterator;

/**
 * Runs jobs in a local cluster whose tasks report which subtask they are.
 *
 * <p>Standard input is one JSON object: "parallelism", "max_parallelism", "tables" (CREATE TABLE
 * statements), "queries" and "keys" (strings). Each query is a job, its result a stream; the last
 * job is the stream of the keys, keyed by themselves. Standard output is one JSON array with an
 * object for each job: "explain" (of a query), "plan" (of the whole job) and "reports", of every
 * record of the keyed stream its fields and, last, the index of the subtask that it reached.
 */
public class SubtaskReports {

    private static final ObjectMapper JSON =
            JsonMapper.builder().enable(JsonWriteFeature.ESCAPE_NON_ASCII).build();

    public static void main(String[] arguments) throws Exception {
        PrintStream out = System.out;
        System.setOut(System.err); // whatever Flink logs
        JsonNode task = JSON.readTree(System.in);
        StreamExecutionEnvironment env =
                StreamExecutionEnvironment.createLocalEnvironment(
                        task.get("parallelism").intValue());
        env.setMaxParallelism(task.get("max_parallelism").intValue());
        StreamTableEnvironment tables = StreamTableEnvironment.create(env);
        task.get("tables").forEach(table -> tables.executeSql(table.textValue()));
        List<Map<String, Object>> jobs = new ArrayList<>();
        for (JsonNode query : task.get("queries")) {
            Table result = tables.sqlQuery(query.textValue());
            DataStream<Row> changes = tables.toChangelogStream(result);
            jobs.add(run(env, result.explain(), changes.map(new Report<>())));
        }
        List<String> keys = new ArrayList<>();
        task.get("keys").forEach(key -> keys.add(key.textValue()));
        jobs.add(run(env, null, env.fromData(keys).keyBy(key -> key).map(new Report<>())));
        out.write(JSON.writeValueAsString(jobs).getBytes(StandardCharsets.US_ASCII));
        out.flush();
    }

    private static Map<String, Object> run(
            StreamExecutionEnvironment env, String explain, DataStream<String> reports)
            throws Exception {
        Map<String, Object> job = new LinkedHashMap<>();
        job.put("explain", explain);
        job.put("plan", env.getExecutionPlan());
        List<JsonNode> collected = new ArrayList<>();
        try (CloseableIterator<String> results = reports.executeAndCollect()) {
            while (results.hasNext()) {
                collected.add(JSON.readTree(results.next()));
            }
        }
        job.put("reports", collected);
        return job;
    }

    /** Makes a JSON array of the fields of a record and the index of the subtask it is in. */
    public static class Report<T> extends RichMapFunction<T, String> {

        @Override
        public String map(T value) throws Exception {
            List<Object> fields = new ArrayList<>();
            if (value instanceof Row) {
                Row row = (Row) value;
                for (int i = 0; i < row.getArity(); i++) {
                    fields.add(row.getField(i));
                }
            } else {
                fields.add(value);
            }
            fields.add(getRuntimeContext().getTaskInfo().getIndexOfThisSubtask());
            return JSON.writeValueAsString(fields);
        }
    }
}
