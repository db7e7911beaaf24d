import java.time.Duration;
import org.apache.flink.api.common.ExecutionConfig;
import org.apache.flink.api.common.functions.RuntimeContext;
import org.apache.flink.api.common.serialization.SerializerConfig;
import org.apache.flink.api.common.serialization.SerializerConfigImpl;
import org.apache.flink.api.common.state.StateTtlConfig;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeutils.TypeSerializer;

/** What has another name in Flink 1.20 and later than before. */
class FlinkApi {

    private FlinkApi() {}

    /** Returns an option by the name that it has since 1.20. */
    static String option(String name) {
        return name;
    }

    static int subtask(RuntimeContext context) {
        return context.getTaskInfo().getIndexOfThisSubtask();
    }

    static int maxParallelism(RuntimeContext context) {
        return context.getTaskInfo().getMaxNumberOfParallelSubtasks();
    }

    /** Returns a length of time as windows take it. */
    static Duration time(long millis) {
        return Duration.ofMillis(millis);
    }

    static StateTtlConfig ttl(long millis) {
        return StateTtlConfig.newBuilder(Duration.ofMillis(millis)).build();
    }

    /** Makes the serializer of a type as a job does by default. */
    static <T> TypeSerializer<T> serializer(TypeInformation<T> type) {
        return type.createSerializer(new SerializerConfigImpl());
    }

    /** A type that says itself how it is serialized; both signatures are those of Flink 1 and 2. */
    abstract static class Serialized<T> extends TypeInformation<T> {

        abstract TypeSerializer<T> serializer();

        public TypeSerializer<T> createSerializer(ExecutionConfig config) {
            return serializer();
        }

        @Override
        public TypeSerializer<T> createSerializer(SerializerConfig config) {
            return serializer();
        }
    }
}
