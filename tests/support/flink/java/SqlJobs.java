import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.flink.api.common.JobID;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.core.execution.SavepointFormatType;
import org.apache.flink.runtime.minicluster.MiniCluster;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.table.api.Schema;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.apache.flink.types.Row;

/**
 * Runs SQL jobs one after the other in one local cluster, and takes a savepoint of each.
 *
 * <p>Standard input has a job a line, answered by a line of standard output. A job has "savepoint"
 * (that it starts from, or null), "options", "parallelism", "max_parallelism", "view" (a query of
 * the table sent, of k STRING, id INT, v BIGINT and the time attribute ts), "queries" of that view,
 * which is t, "rows" and "folder" (of its savepoint). A row is a list of the second of its time and
 * the columns, or the second of a watermark, or null, which is the end of time.
 *
 * <p>The answer has "refused" (why Flink did not run it, or null), "changes" (of each query, as
 * texts) and "path" (of the savepoint), taken after all rows.
 */
public class SqlJobs {

    private static final TypeInformation<Tuple2<Integer, byte[]>> SENT =
            Types.TUPLE(Types.INT, Types.PRIMITIVE_ARRAY(Types.BYTE));
    private static final TypeInformation<Row> ROW =
            Types.ROW_NAMED(
                    new String[] {"k", "id", "v"}, Types.STRING, Types.INT, Types.LONG);

    /** Of each query, what the tasks, which run in this JVM, have told since the job began. */
    private static final List<List<String>> CHANGES = new ArrayList<>();

    public static void main(String[] arguments) throws Exception {
        LocalCluster.answerLines(arguments, SqlJobs::run);
    }

    private static Map<String, Object> run(MiniCluster cluster, JsonNode job) throws Exception {
        KeyFeed.clear();
        CHANGES.clear();
        for (JsonNode row : job.get("rows")) {
            if (row.isNull()) {
                KeyFeed.endTime();
            } else if (row.isInt()) {
                KeyFeed.offerWatermark(1000L * row.intValue());
            } else {
                byte[] text = LocalCluster.JSON.writeValueAsBytes(row);
                KeyFeed.offer(row.get(0).intValue(), text);
            }
        }
        Map<String, Object> answer = new LinkedHashMap<>();
        StreamExecutionEnvironment env = build(job);
        JobID id = cluster.submitJob(env.getStreamGraph().getJobGraph()).get().getJobID();
        String refused = LocalCluster.await(cluster, id, KeyFeed::size);
        answer.put("refused", refused);
        if (refused == null) {
            // Its barriers come after all that was emitted.
            String folder = job.get("folder").textValue();
            SavepointFormatType canonical = SavepointFormatType.CANONICAL;
            answer.put("path", cluster.triggerSavepoint(id, folder, false, canonical).get());
            cluster.cancelJob(id).get();
        }
        cluster.requestJobResult(id).get();
        answer.put("changes", CHANGES);
        return answer;
    }

    private static StreamExecutionEnvironment build(JsonNode job) {
        Configuration settings = LocalCluster.settings(job.get("options"));
        settings.setString(
                FlinkApi.option("execution.checkpointing.dir"), job.get("folder").textValue());
        if (!job.get("savepoint").isNull()) {
            String path = job.get("savepoint").textValue();
            settings.setString(FlinkApi.option("execution.state-recovery.path"), path);
        }
        StreamExecutionEnvironment env =
                StreamExecutionEnvironment.getExecutionEnvironment(settings);
        env.setParallelism(job.get("parallelism").intValue());
        env.setMaxParallelism(job.get("max_parallelism").intValue());
        DataStream<Row> rows =
                env.fromSource(
                                new KeyFeed(),
                                WatermarkStrategy.<Tuple2<Integer, byte[]>>noWatermarks()
                                        .withTimestampAssigner((sent, unused) -> 1000L * sent.f0),
                                "rows",
                                SENT)
                        .setParallelism(1)
                        .uid("rows")
                        .map(new Columns())
                        .returns(ROW)
                        .setParallelism(1)
                        .uid("columns");
        StreamTableEnvironment tables = StreamTableEnvironment.create(env);
        tables.createTemporaryView(
                "sent",
                rows,
                Schema.newBuilder()
                        .column("k", "STRING")
                        .column("id", "INT")
                        .column("v", "BIGINT")
                        .columnByMetadata("ts", "TIMESTAMP_LTZ(3)", "rowtime", false)
                        .watermark("ts", "SOURCE_WATERMARK()")
                        .build());
        tables.createTemporaryView("t", tables.sqlQuery(job.get("view").textValue()));
        for (JsonNode query : job.get("queries")) {
            tables.toChangelogStream(tables.sqlQuery(query.textValue()))
                    .map(new Changes(CHANGES.size()))
                    .returns(Types.STRING)
                    .uid("changes of query " + CHANGES.size());
            CHANGES.add(Collections.synchronizedList(new ArrayList<>()));
        }
        return env;
    }

    /** Makes rows of what was sent. */
    private static class Columns implements MapFunction<Tuple2<Integer, byte[]>, Row> {

        @Override
        public Row map(Tuple2<Integer, byte[]> sent) throws Exception {
            JsonNode row = LocalCluster.JSON.readTree(sent.f1);
            return Row.of(
                    row.get(1).textValue(),
                    row.get(2).intValue(),
                    row.get(3).isNull() ? null : row.get(3).longValue());
        }
    }

    /** Tells the changes of a query. */
    private static class Changes implements MapFunction<Row, String> {

        private final int query;

        Changes(int query) {
            this.query = query;
        }

        @Override
        public String map(Row row) {
            CHANGES.get(query).add(row.toString());
            return "";
        }
    }
}
