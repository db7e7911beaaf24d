import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.InputStreamReader;
import org.apache.flink.api.common.typeutils.TypeSerializer;
import org.apache.flink.api.common.typeutils.TypeSerializerSnapshot;
import org.apache.flink.core.memory.DataInputDeserializer;
import org.apache.flink.core.memory.DataInputViewStreamWrapper;
import org.apache.flink.core.memory.DataOutputSerializer;

/** Reads values with a serializer that a snapshot makes, and writes them again. */
public class RewrittenValues {
    public static void main(String[] args) throws Exception {
        var lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] parts = line.split("\t", -1);
            var said = new StringBuilder();
            try {
                TypeSerializer<Object> serializer = serializerOf(bytes(parts[0]));
                for (int i = 1; i < parts.length; i++) {
                    said.append(i > 1 ? "\t" : "").append(rewritten(serializer, bytes(parts[i])));
                }
            } catch (Exception | LinkageError error) {
                said = new StringBuilder("no serializer: " + oneLine(error));
            }
            System.out.println(said);
        }
    }

    private static TypeSerializer<Object> serializerOf(byte[] snapshot) throws Exception {
        var input = new DataInputViewStreamWrapper(new ByteArrayInputStream(snapshot));
        ClassLoader loader = RewrittenValues.class.getClassLoader();
        return TypeSerializerSnapshot.<Object>readVersionedSnapshot(input, loader)
                .restoreSerializer();
    }

    private static String rewritten(TypeSerializer<Object> serializer, byte[] data) {
        try {
            var input = new DataInputDeserializer(data);
            Object value = serializer.deserialize(input);
            if (input.available() > 0) {
                return "error: " + input.available() + " bytes are left";
            }
            var output = new DataOutputSerializer(data.length + 1);
            serializer.serialize(value, output);
            return hex(output.getCopyOfBuffer());
        } catch (Exception error) {
            return "error: " + oneLine(error);
        }
    }

    private static String oneLine(Throwable error) {
        return error.toString().replaceAll("\\s", " ");
    }

    private static byte[] bytes(String hex) {
        byte[] data = new byte[hex.length() / 2];
        for (int i = 0; i < data.length; i++) {
            data[i] = (byte) Integer.parseInt(hex.substring(2 * i, 2 * i + 2), 16);
        }
        return data;
    }

    private static String hex(byte[] data) {
        var text = new StringBuilder();
        for (byte one : data) {
            text.append(Character.forDigit(one >> 4 & 15, 16)).append(Character.forDigit(one & 15, 16));
        }
        return text.toString();
    }
}
