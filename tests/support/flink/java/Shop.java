import java.math.BigDecimal;
import java.sql.Timestamp;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.util.Date;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;

/**
 * The classes of the recorded jobs that are in their state: the fields are those of the snapshots
 * in the savepoints, boxed, as any may be null, the hash codes those by which their keys are in
 * key groups.
 */
public class Shop {

    private Shop() {}

    public enum Status {
        NEW,
        PAID,
        SENT,
        RETURNED
    }

    public static class Account {
        public Boolean active;
        public Address address;
        public BigDecimal balance;
        public LocalDate birthday;
        public Long id;
        public Short level;
        public Instant opened;
        public String owner;
        public Status status;
    }

    public static class Address {
        public Geo geo;
        public String street;
        public String zip;
    }

    public static class Click {
        public Long at;
        public Integer n;
        public String page;
        public String user;
    }

    public static class Geo {
        public Double lat;
        public Float lon;
    }

    public static class Item {
        public BigDecimal price;
        public int qty;
        public String sku;
    }

    public static class Noted {
        public Integer id;
        public Optional<String> note;
    }

    public static class Order {
        public Address address;
        public Map<String, Item> byName;
        public Instant created;
        public String customer;
        public LocalDateTime due;
        public Long id;
        public List<Item> items;
        public Date legacy;
        public long[] marks;
        public Integer maybe;
        public Boolean paid;
        public byte[] payload;
        public Double rate;
        public Timestamp stamp;
        public Status status;
        public String[] tags;
        public BigDecimal total;
    }

    public static class PKey {
        public String name;
        public int shard;

        @Override
        public boolean equals(Object other) {
            return other instanceof PKey
                    && Objects.equals(name, ((PKey) other).name)
                    && shard == ((PKey) other).shard;
        }

        @Override
        public int hashCode() {
            return name.hashCode() + 31 * shard;
        }
    }

    public record RKey(String region, int shard) {}

    public static class Reading {
        public Instant at;
        public long[] raw;
        public String sensor;
        public Double value;
    }

    public static class Rule {
        public Integer limit;
        public String name;
        public List<String> pages;
    }
}
