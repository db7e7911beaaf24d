import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import org.apache.flink.api.common.serialization.SerializerConfigImpl;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.common.typeutils.TypeSerializer;
import org.apache.flink.api.common.typeutils.TypeSerializerSchemaCompatibility;
import org.apache.flink.api.common.typeutils.TypeSerializerSnapshot;
import org.apache.flink.api.common.typeutils.base.ListSerializer;
import org.apache.flink.api.common.typeutils.base.LongSerializer;
import org.apache.flink.api.common.typeutils.base.MapSerializer;
import org.apache.flink.api.java.tuple.Tuple;
import org.apache.flink.api.java.typeutils.runtime.EitherSerializer;
import org.apache.flink.api.java.typeutils.runtime.NullableSerializer;
import org.apache.flink.api.java.typeutils.runtime.RowSerializer;
import org.apache.flink.api.java.typeutils.runtime.TupleSerializer;
import org.apache.flink.core.memory.DataInputDeserializer;
import org.apache.flink.core.memory.DataOutputSerializer;
import org.apache.flink.runtime.state.ttl.TtlStateFactory;
import org.apache.flink.table.runtime.typeutils.InternalSerializers;
import org.apache.flink.table.types.logical.RowType;
import org.apache.flink.table.types.logical.TimestampKind;
import org.apache.flink.table.types.logical.TimestampType;
import org.apache.flink.table.types.logical.utils.LogicalTypeParser;

/**
 * Flink's verdicts about pairs of serializers. Arguments: the folders of the old classes and of
 * the new ones. Lines in: name, old and new type, between tabs. Lines out: name, the snapshots of
 * both in hexadecimal, the verdict or the class of the exception, between tabs.
 *
 * <p>A type is a constant of Types; @CLASS, as Flink finds it; kryo:CLASS+REGISTERED+...;
 * pojo:CLASS+REGISTERED+...; sql:TYPE; rowtime, a row of such a time; or TUPLE, ROW, ROW_WITHOUT_KIND, LIST, MAP, EITHER, ARRAY,
 * NULLABLE, PADDED and TTL of types in brackets, between semicolons.
 */
public final class Verdicts {
    private final ClassLoader loader;

    Verdicts(ClassLoader loader) {
        this.loader = loader;
    }

    public static void main(String[] folders) throws Exception {
        Verdicts old = new Verdicts(loader(folders[0]));
        Verdicts newer = new Verdicts(loader(folders[1]));
        BufferedReader lines =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] parts = line.split("\t");
            byte[] before = old.snapshot(parts[1]);
            byte[] after = newer.snapshot(parts[2]);
            HexFormat hex = HexFormat.of();
            System.out.println(
                    String.join(
                            "\t",
                            parts[0],
                            hex.formatHex(before),
                            hex.formatHex(after),
                            newer.verdict(before, parts[2])));
        }
    }

    private static ClassLoader loader(String folder) throws Exception {
        URL[] urls = {new File(folder).toURI().toURL()};
        return new URLClassLoader(urls, Verdicts.class.getClassLoader());
    }

    private byte[] snapshot(String type) throws Exception {
        Thread.currentThread().setContextClassLoader(loader);
        DataOutputSerializer out = new DataOutputSerializer(64);
        TypeSerializerSnapshot.writeVersionedSnapshot(out, serializer(type).snapshotConfiguration());
        return out.getCopyOfBuffer();
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    private String verdict(byte[] before, String type) {
        Thread.currentThread().setContextClassLoader(loader);
        try {
            TypeSerializerSnapshot old = read(before);
            TypeSerializerSchemaCompatibility found =
                    serializer(type).snapshotConfiguration().resolveSchemaCompatibility(old);
            if (!found.isIncompatible()) {
                old.restoreSerializer(); // The old values are read with it.
            }
            return found.isCompatibleAsIs()
                    ? "as is"
                    : found.isCompatibleAfterMigration()
                            ? "after migration"
                            : found.isCompatibleWithReconfiguredSerializer()
                                    ? "reconfigured"
                                    : "incompatible";
        } catch (Exception error) {
            return "raises " + error.getClass().getSimpleName();
        }
    }

    private TypeSerializerSnapshot<?> read(byte[] snapshot) throws Exception {
        DataInputDeserializer in = new DataInputDeserializer(snapshot);
        return TypeSerializerSnapshot.readVersionedSnapshot(in, loader);
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    TypeSerializer<?> serializer(String type) throws Exception {
        SerializerConfigImpl config = new SerializerConfigImpl();
        if (type.startsWith("sql:")) {
            return InternalSerializers.create(LogicalTypeParser.parse(type.substring(4), loader));
        }
        if (type.equals("rowtime")) {
            return InternalSerializers.create(
                    RowType.of(new TimestampType(true, TimestampKind.ROWTIME, 3)));
        }
        if (type.startsWith("@")) {
            return TypeInformation.of(loader.loadClass(type.substring(1))).createSerializer(config);
        }
        if (type.startsWith("kryo:") || type.startsWith("pojo:")) {
            String[] names = type.substring(5).split("\\+");
            Class<?> made = loader.loadClass(names[0]);
            for (int i = 1; i < names.length; i++) {
                if (type.startsWith("kryo:")) {
                    config.registerKryoType(loader.loadClass(names[i]));
                } else {
                    config.registerPojoType(loader.loadClass(names[i]));
                }
            }
            return type.startsWith("kryo:")
                    ? Types.GENERIC(made).createSerializer(config)
                    : TypeInformation.of(made).createSerializer(config);
        }
        int open = type.indexOf('(');
        if (open < 0) {
            TypeInformation<?> known = (TypeInformation<?>) Types.class.getField(type).get(null);
            return known.createSerializer(config);
        }
        List<TypeSerializer> parts = new ArrayList<>();
        for (String part : inside(type.substring(open + 1, type.length() - 1))) {
            parts.add(serializer(part));
        }
        TypeSerializer<?>[] all = parts.toArray(new TypeSerializer[0]);
        TypeSerializer first = parts.get(0);
        switch (type.substring(0, open)) {
            case "TUPLE":
                return new TupleSerializer(Tuple.getTupleClass(all.length), all);
            case "ROW":
                return new RowSerializer(all);
            case "ROW_WITHOUT_KIND":
                return new RowSerializer(all, null, false);
            case "LIST":
                return new ListSerializer(first);
            case "MAP":
                return new MapSerializer(first, parts.get(1));
            case "EITHER":
                return new EitherSerializer(first, parts.get(1));
            case "ARRAY":
                Class<?> element = first.createInstance().getClass();
                return new org.apache.flink.api.common.typeutils.base.GenericArraySerializer(
                        element, first);
            case "NULLABLE":
                return NullableSerializer.wrap(first, false);
            case "PADDED":
                return NullableSerializer.wrap(first, true);
            case "TTL":
                return new TtlStateFactory.TtlSerializer(LongSerializer.INSTANCE, first);
            default:
                throw new IllegalArgumentException(type);
        }
    }

    static List<String> inside(String text) {
        List<String> parts = new ArrayList<>();
        int depth = 0;
        int start = 0;
        for (int i = 0; i < text.length(); i++) {
            char next = text.charAt(i);
            depth += next == '(' ? 1 : next == ')' ? -1 : 0;
            if (next == ';' && depth == 0) {
                parts.add(text.substring(start, i));
                start = i + 1;
            }
        }
        parts.add(text.substring(start));
        return parts;
    }
}
