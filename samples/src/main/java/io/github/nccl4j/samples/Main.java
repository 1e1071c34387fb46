package io.github.nccl4j.samples;

import java.io.IOException;
import java.io.InputStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;

/**
 * Chooses a sample by its first argument, its name or number, for {@code java -jar nccl4j-samples.jar}. Not a sample; none of them
 * needs it.
 */
final class Main {

    private static final String LIST = "samples.txt";

    private Main() {}

    public static void main(String[] args) throws Throwable {
        List<String[]> samples = samples();
        if (args.length > 0) {
            for (String[] words : samples) {
                if (words[0].equals(args[0]) || words[0].startsWith(args[0] + "-")) {
                    run(words[1], Arrays.copyOfRange(args, 1, args.length));
                    return;
                }
            }
        }
        System.err.println("usage: java -jar nccl4j-samples.jar SAMPLE [OPTIONS]; the samples are");
        samples.forEach(words -> System.err.println("  " + words[0]));
        System.exit(2);
    }

    private static void run(String name, String[] args) throws Throwable {
        try {
            Class.forName(Main.class.getPackageName() + "." + name)
                    .getMethod("main", String[].class)
                    .invoke(null, (Object) args);
        } catch (InvocationTargetException e) {
            throw e.getCause();
        }
    }

    /** The words of each line that begins with a number. */
    private static List<String[]> samples() throws IOException {
        try (InputStream list = Main.class.getResourceAsStream(LIST)) {
            return new String(list.readAllBytes(), StandardCharsets.UTF_8)
                    .lines()
                    .filter(line -> line.matches("\\d.*"))
                    .map(line -> line.split(" "))
                    .toList();
        }
    }
}
