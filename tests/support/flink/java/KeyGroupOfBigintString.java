import org.apache.flink.runtime.state.KeyGroupRangeAssignment;
import org.apache.flink.table.data.StringData;
import org.apache.flink.table.data.binary.BinaryRowData;
import org.apache.flink.table.data.writer.BinaryRowWriter;
import org.apache.spark.sql.api.java.UDF2;

/**
 * The key group, of 128, of a SQL key of a BIGINT and a STRING.
 *
 * <p>Row and writer are reused, as in the key selector that Flink's planner generates.
 */
public class KeyGroupOfBigintString implements UDF2<Long, String, Integer> {

    private transient BinaryRowData row;
    private transient BinaryRowWriter writer;

    @Override
    public Integer call(Long id, String name) {
        if (writer == null) { // a task gets the function without them
            row = new BinaryRowData(2);
            writer = new BinaryRowWriter(row);
        }
        writer.reset();
        if (id == null) {
            writer.setNullAt(0);
        } else {
            writer.writeLong(0, id);
        }
        if (name == null) {
            writer.setNullAt(1);
        } else {
            writer.writeString(1, StringData.fromString(name));
        }
        writer.complete();
        return KeyGroupRangeAssignment.computeKeyGroupForKeyHash(row.hashCode(), 128);
    }
}
