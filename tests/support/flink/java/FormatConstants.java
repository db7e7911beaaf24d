import java.io.File;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.Arrays;
import java.util.Enumeration;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.TreeMap;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;
import org.apache.flink.api.common.typeutils.TypeSerializerSnapshot;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;

/**
 * Writes down what the jars on the class path say of the format of state, as a JSON object.
 *
 * <p>The arguments are names of classes, of which "constants" has those that there are: of an enum
 * its constants with their ordinals, or with ordinal and what `getCode` says; of another class its
 * static final numbers and texts. "snapshots" has each class of snapshots of serializers with
 * its version, and that of its outer part, null where it has none or nobody can ask.
 */
public class FormatConstants {

    public static void main(String[] arguments) throws Exception {
        Map<String, Object> said = new LinkedHashMap<>();
        Map<String, Object> constants = new TreeMap<>();
        for (String name : arguments) {
            try {
                constants.put(name, constants(Class.forName(name)));
            } catch (ClassNotFoundException older) {
                continue;
            }
        }
        said.put("constants", constants);
        said.put("snapshots", snapshots());
        System.out.println(new ObjectMapper().writeValueAsString(said));
    }

    private static Map<String, Object> constants(Class<?> cls) throws Exception {
        Map<String, Object> found = new LinkedHashMap<>();
        if (cls.isEnum()) {
            for (Object one : cls.getEnumConstants()) {
                found.put(((Enum<?>) one).name(), code((Enum<?>) one));
            }
            return found;
        }
        for (Field field : cls.getDeclaredFields()) {
            Class<?> type = field.getType();
            boolean isPlain = type.isPrimitive() || type == String.class;
            if (Modifier.isStatic(field.getModifiers())
                    && Modifier.isFinal(field.getModifiers())
                    && isPlain
                    && !field.isSynthetic()
                    && !field.getName().equals("serialVersionUID")) {
                field.setAccessible(true);
                found.put(field.getName(), field.get(null));
            }
        }
        return found;
    }

    private static Object code(Enum<?> one) throws Exception {
        try {
            Method method = one.getDeclaringClass().getDeclaredMethod("getCode");
            method.setAccessible(true);
            return Arrays.asList(one.ordinal(), method.invoke(one));
        } catch (NoSuchMethodException none) {
            return one.ordinal();
        }
    }

    private static Map<String, Object> snapshots() throws Exception {
        Map<String, Object> found = new TreeMap<>();
        for (String path : System.getProperty("java.class.path").split(File.pathSeparator)) {
            if (!path.endsWith(".jar")) {
                continue;
            }
            try (JarFile jar = new JarFile(path)) {
                for (Enumeration<JarEntry> all = jar.entries(); all.hasMoreElements(); ) {
                    String name = all.nextElement().getName();
                    if (name.startsWith("org/apache/flink/") && name.endsWith("class")) {
                        add(found, name.substring(0, name.length() - 6).replace('/', '.'));
                    }
                }
            }
        }
        return found;
    }

    private static void add(Map<String, Object> found, String name) {
        if (!name.contains("Snapshot") && !name.contains("Serializer")) {
            return; // as all are called, and what else there is cannot be loaded in each case
        }
        try {
            Class<?> cls = Class.forName(name, false, FormatConstants.class.getClassLoader());
            if (!TypeSerializerSnapshot.class.isAssignableFrom(cls)
                    || cls.isInterface()
                    || Modifier.isAbstract(cls.getModifiers())) {
                return;
            }
            found.put(name, null);
            Constructor<?> constructor = cls.getDeclaredConstructor();
            constructor.setAccessible(true);
            Object made = constructor.newInstance();
            Integer outer = null;
            for (Class<?> of = cls; of != null; of = of.getSuperclass()) {
                for (Method method : of.getDeclaredMethods()) {
                    if (outer == null && method.getName().equals("getCurrentOuterSnapshotVersion")) {
                        method.setAccessible(true);
                        outer = (Integer) method.invoke(made);
                    }
                }
            }
            int version = ((TypeSerializerSnapshot<?>) made).getCurrentVersion();
            found.put(name, Arrays.asList(version, outer));
        } catch (ReflectiveOperationException | LinkageError | RuntimeException cannotBeMade) {
            return;
        }
    }
}
