import org.apache.flink.runtime.state.KeyGroupRangeAssignment;
import org.apache.flink.table.data.binary.BinaryRowData;
import org.apache.flink.table.data.writer.BinaryRowWriter;
import org.apache.spark.sql.api.java.UDF2;

/**
 * The key group, of 128, of a SQL key of an INT and a BIGINT.
 *
 * <p>Row and writer are reused, as in the key selector that Flink's planner generates.
 */
public class KeyGroupOfIntBigint implements UDF2<Integer, Long, Integer> {

    private transient BinaryRowData row;
    private transient BinaryRowWriter writer;

    @Override
    public Integer call(Integer shop, Long id) {
        if (writer == null) { // a task gets the function without them
            row = new BinaryRowData(2);
            writer = new BinaryRowWriter(row);
        }
        writer.reset();
        if (shop == null) {
            writer.setNullAt(0);
        } else {
            writer.writeInt(0, shop);
        }
        if (id == null) {
            writer.setNullAt(1);
        } else {
            writer.writeLong(1, id);
        }
        writer.complete();
        return KeyGroupRangeAssignment.computeKeyGroupForKeyHash(row.hashCode(), 128);
    }
}
