/** Has the class of the keys in the savepoints of jobs with POJOs, under its name there. */
public class G {

    /** A key of two fields. */
    public static class Pj {

        public int id;
        public String name;

        @Override
        public boolean equals(Object other) {
            return other instanceof Pj && id == ((Pj) other).id && name.equals(((Pj) other).name);
        }

        @Override
        public int hashCode() {
            return 31 * id + name.hashCode();
        }
    }
}
