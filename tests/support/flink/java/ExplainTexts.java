import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.flink.configuration.ConfigOption;
import org.apache.flink.configuration.ConfigOptions;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.core.json.JsonWriteFeature;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.json.JsonMapper;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.datastream.DataStreamSink;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.ExplainDetail;
import org.apache.flink.table.api.StatementSet;
import org.apache.flink.table.api.TableEnvironment;
import org.apache.flink.table.catalog.Column;
import org.apache.flink.table.connector.ChangelogMode;
import org.apache.flink.table.connector.ProviderContext;
import org.apache.flink.table.connector.sink.DataStreamSinkProvider;
import org.apache.flink.table.connector.sink.DynamicTableSink;
import org.apache.flink.table.connector.source.DataStreamScanProvider;
import org.apache.flink.table.connector.source.DynamicTableSource;
import org.apache.flink.table.connector.source.LookupTableSource;
import org.apache.flink.table.connector.source.ScanTableSource;
import org.apache.flink.table.connector.source.lookup.LookupFunctionProvider;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.factories.DynamicTableSinkFactory;
import org.apache.flink.table.factories.DynamicTableSourceFactory;
import org.apache.flink.table.functions.LookupFunction;
import org.apache.flink.table.runtime.typeutils.InternalTypeInfo;
import org.apache.flink.table.types.logical.LogicalType;
import org.apache.flink.types.RowKind;

/**
 * Explains queries, streaming or batch, and says how a streaming job compiles.
 *
 * <p>Standard input is one JSON object: "batch" (a boolean), "tables" (CREATE statements) and
 * "jobs", each with "queries" (the SELECTs of its sinks), "settings" (of the planner), "sink" (the
 * end of each sink's CREATE TABLE), "select" (whether to explain the first query instead of the
 * statements that fill the sinks) and "details" (lists of names of ExplainDetail). Standard output
 * is one JSON array with an object for each job: "explain", a text for each list of details, and
 * "plan", the compiled plan of what fills the sinks, which is null in batch mode; or "error".
 */
public class ExplainTexts {

    private static final ObjectMapper JSON =
            JsonMapper.builder().enable(JsonWriteFeature.ESCAPE_NON_ASCII).build();

    public static void main(String[] arguments) throws Exception {
        PrintStream out = System.out;
        System.setOut(System.err); // whatever Flink logs
        JsonNode task = JSON.readTree(System.in);
        boolean batch = task.get("batch").booleanValue();
        List<Map<String, Object>> jobs = new ArrayList<>();
        for (JsonNode job : task.get("jobs")) {
            Map<String, Object> said = new LinkedHashMap<>();
            try {
                explain(job, batch, task.get("tables"), said);
            } catch (Exception e) {
                Throwable cause = e;
                while (cause.getCause() != null) {
                    cause = cause.getCause();
                }
                said.put("error", cause.toString());
            }
            jobs.add(said);
        }
        out.write(JSON.writeValueAsString(jobs).getBytes(StandardCharsets.US_ASCII));
        out.flush();
    }

    private static void explain(
            JsonNode job, boolean batch, JsonNode tables, Map<String, Object> said) {
        EnvironmentSettings.Builder mode = EnvironmentSettings.newInstance();
        TableEnvironment env =
                TableEnvironment.create(
                        (batch ? mode.inBatchMode() : mode.inStreamingMode()).build());
        env.getConfig().set("table.exec.resource.default-parallelism", "2");
        tables.forEach(table -> env.executeSql(table.textValue()));
        job.get("settings")
                .fields()
                .forEachRemaining(s -> env.getConfig().set(s.getKey(), s.getValue().textValue()));
        StatementSet sinks = env.createStatementSet();
        int count = 0;
        for (JsonNode query : job.get("queries")) {
            List<String> columns = new ArrayList<>();
            for (Column column : env.sqlQuery(query.textValue()).getResolvedSchema().getColumns()) {
                LogicalType type = column.getDataType().getLogicalType();
                columns.add("c" + columns.size() + " " + type.copy(true).asSerializableString());
            }
            String sink = "sink" + count++;
            env.executeSql(
                    "CREATE TABLE " + sink + " (" + String.join(", ", columns)
                            + job.get("sink").textValue());
            sinks.addInsertSql("INSERT INTO " + sink + " " + query.textValue());
        }
        List<String> texts = new ArrayList<>();
        said.put("explain", texts);
        for (JsonNode details : job.get("details")) {
            List<ExplainDetail> list = new ArrayList<>();
            details.forEach(detail -> list.add(ExplainDetail.valueOf(detail.textValue())));
            ExplainDetail[] array = list.toArray(new ExplainDetail[0]);
            texts.add(
                    job.get("select").booleanValue()
                            ? env.explainSql(job.get("queries").get(0).textValue(), array)
                            : sinks.explain(array));
        }
        said.put("plan", batch ? null : sinks.compilePlan().asJsonString());
    }

    /** A table of no rows, as a source, a sink, and for lookups. */
    public static class Factory implements DynamicTableSourceFactory, DynamicTableSinkFactory {

        private static final ConfigOption<String> CHANGES =
                ConfigOptions.key("changes").stringType().defaultValue("INSERT");
        private static final ConfigOption<Boolean> BOUNDED =
                ConfigOptions.key("bounded").booleanType().defaultValue(false);

        @Override
        public String factoryIdentifier() {
            return "explained";
        }

        @Override
        public Set<ConfigOption<?>> requiredOptions() {
            return Collections.emptySet();
        }

        @Override
        public Set<ConfigOption<?>> optionalOptions() {
            return Set.of(CHANGES, BOUNDED);
        }

        @Override
        public DynamicTableSource createDynamicTableSource(Context context) {
            Map<String, String> options = context.getCatalogTable().getOptions();
            return new Source(
                    context.getPhysicalRowDataType().getLogicalType(),
                    kinds(options.getOrDefault("changes", "INSERT")),
                    Boolean.parseBoolean(options.get("bounded")));
        }

        @Override
        public DynamicTableSink createDynamicTableSink(Context context) {
            String changes = context.getCatalogTable().getOptions().get("changes");
            return new Sink(changes == null ? null : kinds(changes));
        }

        private static ChangelogMode kinds(String names) {
            ChangelogMode.Builder changes = ChangelogMode.newBuilder();
            Arrays.stream(names.split(","))
                    .forEach(name -> changes.addContainedKind(RowKind.valueOf(name)));
            return changes.build();
        }
    }

    private static class Source implements ScanTableSource, LookupTableSource {

        private final LogicalType type;
        private final ChangelogMode changes;
        private final boolean bounded;

        Source(LogicalType type, ChangelogMode changes, boolean bounded) {
            this.type = type;
            this.changes = changes;
            this.bounded = bounded;
        }

        @Override
        public ChangelogMode getChangelogMode() {
            return changes;
        }

        @Override
        public ScanRuntimeProvider getScanRuntimeProvider(ScanContext context) {
            return new DataStreamScanProvider() {
                @Override
                public DataStream<RowData> produceDataStream(
                        ProviderContext ignored, StreamExecutionEnvironment env) {
                    return env.fromCollection(
                            Collections.<RowData>emptyList(),
                            (InternalTypeInfo<RowData>) InternalTypeInfo.<RowData>of(type));
                }

                @Override
                public boolean isBounded() {
                    return bounded;
                }
            };
        }

        @Override
        public LookupRuntimeProvider getLookupRuntimeProvider(LookupContext context) {
            return LookupFunctionProvider.of(new Lookup());
        }

        @Override
        public DynamicTableSource copy() {
            return new Source(type, changes, bounded);
        }

        @Override
        public String asSummaryString() {
            return "explained";
        }
    }

    /** Finds nothing. */
    public static class Lookup extends LookupFunction {
        @Override
        public Collection<RowData> lookup(RowData key) {
            return Collections.emptyList();
        }
    }

    private static class Sink implements DynamicTableSink {

        private final ChangelogMode changes; // null for whatever comes

        Sink(ChangelogMode changes) {
            this.changes = changes;
        }

        @Override
        public ChangelogMode getChangelogMode(ChangelogMode requested) {
            return changes == null ? requested : changes;
        }

        @Override
        public SinkRuntimeProvider getSinkRuntimeProvider(Context context) {
            return new DataStreamSinkProvider() {
                @Override
                public DataStreamSink<?> consumeDataStream(
                        ProviderContext ignored, DataStream<RowData> rows) {
                    return rows.print();
                }
            };
        }

        @Override
        public DynamicTableSink copy() {
            return new Sink(changes);
        }

        @Override
        public String asSummaryString() {
            return "explained";
        }
    }
}
