import java.util.HashMap;
import java.util.Map;
import org.apache.flink.api.common.accumulators.LongCounter;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.api.common.JobID;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.runtime.jobmaster.JobResult;
import org.apache.flink.runtime.minicluster.MiniCluster;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.apache.flink.types.Row;
import org.apache.flink.types.RowKind;

/**
 * Runs a GROUP BY over a sequence of numbers in a local cluster, as often as it is asked to.
 *
 * <p>Standard input has a job a line: its "options", "parallelism" and "max_parallelism", "rows"
 * (the numbers are those from 0 to below it), "view" (a query of the table numbers, whose column is
 * f0) and "query" (of that view, which is t), whose columns are a key and results. It is answered,
 * when the job has ended, by the number of changes of each kind, and by the sums of the results in
 * what is there at the end.
 */
public class GroupBySpeed {

    public static void main(String[] arguments) throws Exception {
        LocalCluster.answerLines(arguments, GroupBySpeed::run);
    }

    private static Map<String, Long> run(MiniCluster cluster, JsonNode job) throws Exception {
        Configuration settings = LocalCluster.settings(job.get("options"));
        StreamExecutionEnvironment env =
                StreamExecutionEnvironment.getExecutionEnvironment(settings);
        env.setParallelism(job.get("parallelism").intValue());
        env.setMaxParallelism(job.get("max_parallelism").intValue());
        env.getConfig().enableObjectReuse();
        DataStream<Long> numbers = env.fromSequence(0, job.get("rows").longValue() - 1);
        StreamTableEnvironment tables = StreamTableEnvironment.create(env);
        tables.createTemporaryView("numbers", numbers);
        tables.createTemporaryView("t", tables.sqlQuery(job.get("view").textValue()));
        tables.toChangelogStream(tables.sqlQuery(job.get("query").textValue()))
                .map(new Counted())
                .returns(Types.BOOLEAN)
                .sinkTo(new DiscardingSink<>());
        JobID id = cluster.submitJob(env.getStreamGraph().getJobGraph()).get().getJobID();
        JobResult result = cluster.requestJobResult(id).get();
        ClassLoader loader = GroupBySpeed.class.getClassLoader();
        Map<String, Long> answer = new HashMap<>();
        result.toJobExecutionResult(loader)
                .getAllAccumulatorResults()
                .forEach((name, value) -> answer.put(name, (Long) value));
        return answer;
    }

    /** Counts changes by their kind, and adds up the results. */
    private static class Counted extends RichMapFunction<Row, Boolean> {

        private final LongCounter[] kinds = new LongCounter[RowKind.values().length];
        private LongCounter[] sums;

        @Override
        public void open(OpenContext context) {
            for (RowKind kind : RowKind.values()) {
                kinds[kind.ordinal()] = new LongCounter();
                getRuntimeContext().addAccumulator(kind.shortString(), kinds[kind.ordinal()]);
            }
        }

        @Override
        public Boolean map(Row row) {
            if (sums == null) {
                sums = new LongCounter[row.getArity()];
                for (int i = 1; i < sums.length; i++) {
                    sums[i] = new LongCounter();
                    getRuntimeContext().addAccumulator("sum " + i, sums[i]);
                }
            }
            RowKind kind = row.getKind();
            kinds[kind.ordinal()].add(1);
            int sign = kind == RowKind.INSERT || kind == RowKind.UPDATE_AFTER ? 1 : -1;
            for (int i = 1; i < sums.length; i++) {
                sums[i].add(sign * (Long) row.getField(i));
            }
            return true;
        }
    }
}
