import java.lang.reflect.Modifier;
import java.util.Scanner;
import java.util.TreeSet;

/** Says of each class that is named in a line whether it is final, and what is above it. */
public class ClassesAbove {
    public static void main(String[] args) throws ClassNotFoundException {
        Scanner names = new Scanner(System.in);
        while (names.hasNextLine()) {
            Class<?> named = Class.forName(names.nextLine());
            TreeSet<String> above = new TreeSet<>();
            walk(named, above);
            above.remove(named.getName());
            boolean isFinal = Modifier.isFinal(named.getModifiers());
            System.out.println(
                    named.getName() + "\t" + isFinal + "\t" + String.join(" ", above));
        }
    }

    private static void walk(Class<?> named, TreeSet<String> above) {
        if (named != null) {
            above.add(named.getName());
            walk(named.getSuperclass(), above);
            for (Class<?> each : named.getInterfaces()) {
                walk(each, above);
            }
        }
    }
}
