import java.util.Map;
import org.apache.flink.api.common.ExecutionConfig;
import org.apache.flink.api.common.functions.RuntimeContext;
import org.apache.flink.api.common.state.StateTtlConfig;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeutils.TypeSerializer;
import org.apache.flink.streaming.api.windowing.time.Time;

/** What has another name in Flink 1.20 and later, as it was in 1.13. */
class FlinkApi {

    private static final Map<String, String> OPTIONS =
            Map.of(
                    "execution.checkpointing.dir", "state.checkpoints.dir",
                    "execution.checkpointing.incremental", "state.backend.incremental",
                    "execution.state-recovery.path", "execution.savepoint.path",
                    "pipeline.operator-chaining.enabled", "pipeline.operator-chaining",
                    "execution.checkpointing.unaligned.enabled", "execution.checkpointing.unaligned",
                    "restart-strategy.type", "restart-strategy",
                    "state.backend.type", "state.backend");

    private FlinkApi() {}

    /** Returns the name of an option that has this one since 1.20. */
    static String option(String name) {
        return OPTIONS.getOrDefault(name, name);
    }

    static int subtask(RuntimeContext context) {
        return context.getIndexOfThisSubtask();
    }

    static int maxParallelism(RuntimeContext context) {
        return context.getMaxNumberOfParallelSubtasks();
    }

    /** Returns a length of time as windows take it. */
    static Time time(long millis) {
        return Time.milliseconds(millis);
    }

    static StateTtlConfig ttl(long millis) {
        return StateTtlConfig.newBuilder(
                        org.apache.flink.api.common.time.Time.milliseconds(millis))
                .build();
    }

    /** Makes the serializer of a type as a job does by default. */
    static <T> TypeSerializer<T> serializer(TypeInformation<T> type) {
        return type.createSerializer(new ExecutionConfig());
    }

    /** A type that says itself how it is serialized. */
    abstract static class Serialized<T> extends TypeInformation<T> {

        abstract TypeSerializer<T> serializer();

        @Override
        public TypeSerializer<T> createSerializer(ExecutionConfig config) {
            return serializer();
        }
    }
}
