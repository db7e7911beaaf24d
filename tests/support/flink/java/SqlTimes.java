import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.sql.Date;
import java.sql.Time;
import java.sql.Timestamp;
import java.time.Instant;
import java.time.LocalDateTime;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.time.zone.ZoneOffsetTransition;
import java.time.zone.ZoneRules;
import java.util.TimeZone;

/**
 * Prints clock changes, or hash codes of java.sql's types; nothing but the JDK is needed.
 *
 * <p>A wall-clock time is a number here: its milliseconds since 1970-01-01T00:00 on that clock.
 * Standard input has one item a line, and the output as many lines. With the argument {@code
 * changes} an item is the name of a zone; its line has the name that Java understands, and the
 * wall-clock times just before and just after each change from 1970 to 2036. With {@code hashes}
 * an item is {@code zone NAME}, {@code date}, {@code time} or {@code timestamp} with a wall-clock
 * time; its line has the hash code, and how many instants the time stands for.
 */
public class SqlTimes {

    private static final long END = LocalDateTime.of(2037, 1, 1, 0, 0).toEpochSecond(ZoneOffset.UTC);

    public static void main(String[] arguments) throws Exception {
        BufferedReader in =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        PrintStream out = new PrintStream(System.out, false, "US-ASCII");
        ZoneRules rules = ZoneOffset.UTC.getRules();
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            if (arguments[0].equals("changes")) {
                out.println(changes(line));
                continue;
            }
            String[] words = line.split(" ");
            if (words[0].equals("zone")) {
                TimeZone.setDefault(TimeZone.getTimeZone(words[1]));
                rules = ZoneId.of(words[1]).getRules();
                out.println(words[1]);
                continue;
            }
            LocalDateTime wall = wall(Long.parseLong(words[1]));
            out.println(hash(words[0], wall) + " " + rules.getValidOffsets(wall).size());
        }
        out.flush();
    }

    private static String changes(String name) {
        StringBuilder line = new StringBuilder(TimeZone.getTimeZone(name).getID());
        ZoneRules rules = ZoneId.of(name).getRules();
        ZoneOffsetTransition change = rules.nextTransition(Instant.EPOCH.minusSeconds(86_400));
        while (change != null && change.toEpochSecond() < END) {
            line.append(' ').append(millis(change.getDateTimeBefore()));
            line.append(' ').append(millis(change.getDateTimeAfter()));
            change = rules.nextTransition(change.getInstant());
        }
        return line.toString();
    }

    private static int hash(String type, LocalDateTime wall) {
        if (type.equals("date")) {
            return Date.valueOf(wall.toLocalDate()).hashCode();
        }
        Timestamp timestamp = Timestamp.valueOf(wall);
        if (type.equals("timestamp")) {
            return timestamp.hashCode();
        }
        Time time = new Time(timestamp.getTime()); // Time.valueOf drops the milliseconds
        if (wall.getNano() == 0 && !time.equals(Time.valueOf(wall.toLocalTime()))) {
            throw new IllegalStateException("two times for " + wall);
        }
        return time.hashCode();
    }

    private static LocalDateTime wall(long millis) {
        int nanos = (int) Math.floorMod(millis, 1_000L) * 1_000_000;
        return LocalDateTime.ofEpochSecond(Math.floorDiv(millis, 1_000L), nanos, ZoneOffset.UTC);
    }

    private static long millis(LocalDateTime wall) {
        return wall.toEpochSecond(ZoneOffset.UTC) * 1_000 + wall.getNano() / 1_000_000;
    }
}
