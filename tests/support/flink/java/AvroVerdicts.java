import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import org.apache.avro.AvroRuntimeException;
import org.apache.avro.Schema;
import org.apache.avro.SchemaCompatibility;
import org.apache.avro.SchemaCompatibility.SchemaCompatibilityType;

/**
 * Avro's verdicts about schemas, as Flink's AvroSerializerSnapshot asks for them. Lines in: the
 * schemas of the old job and of the new one, between tabs. Lines out: the verdict, or an exception.
 */
public final class AvroVerdicts {
    private AvroVerdicts() {}

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] parts = line.split("\t");
            Schema old = new Schema.Parser().parse(parts[0]);
            Schema newer = new Schema.Parser().parse(parts[1]);
            System.out.println(old.equals(newer) ? "as is" : asked(newer, old));
        }
    }

    private static String asked(Schema newer, Schema old) {
        try {
            boolean isRead =
                    SchemaCompatibility.checkReaderWriterCompatibility(newer, old).getType()
                            == SchemaCompatibilityType.COMPATIBLE;
            return isRead ? "after migration" : "incompatible";
        } catch (AvroRuntimeException error) {
            return "raises " + error.getClass().getSimpleName();
        }
    }
}
