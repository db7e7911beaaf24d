import org.apache.flink.runtime.state.KeyGroupRangeAssignment;
import org.apache.flink.table.data.binary.BinaryRowData;
import org.apache.flink.table.data.writer.BinaryRowWriter;
import org.apache.spark.sql.api.java.UDF1;

/**
 * The key group, of 128, of a SQL key of one BIGINT.
 *
 * <p>Row and writer are reused, as in the key selector that Flink's planner generates.
 */
public class KeyGroupOfBigint implements UDF1<Long, Integer> {

    private transient BinaryRowData row;
    private transient BinaryRowWriter writer;

    @Override
    public Integer call(Long id) {
        if (writer == null) { // a task gets the function without them
            row = new BinaryRowData(1);
            writer = new BinaryRowWriter(row);
        }
        writer.reset();
        if (id == null) {
            writer.setNullAt(0);
        } else {
            writer.writeLong(0, id);
        }
        writer.complete();
        return KeyGroupRangeAssignment.computeKeyGroupForKeyHash(row.hashCode(), 128);
    }
}
