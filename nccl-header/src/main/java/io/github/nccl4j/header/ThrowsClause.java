package io.github.nccl4j.header;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Gives every NCCL function of the generated Java a {@code throws} clause: JavaCPP takes from it the class of the
 * exception that native code throws. Running it twice changes nothing more.
 */
public final class ThrowsClause {
    /** A native method up to its semicolon; its name is the first word before a parenthesis that is no annotation. */
    private static final Pattern NATIVE = Pattern.compile(
            "public static native (?:\"[^\"]*\"|[^\";])*?(?<![@\\w.])(\\w+)\\s*\\((?:\"[^\"]*\"|[^\";])*;");

    private static final Pattern NCCL_NAME = Pattern.compile("p?nccl(?!4j)[A-Z0-9]\\w*");
    private static final Pattern THROWS = Pattern.compile("\\)\\s*throws\\b");

    private ThrowsClause() {}

    /**
     * Runs it: {@code --source FILE --exception CLASS}.
     *
     * @param args the command line
     * @throws IOException if the file can't be read or written
     * @throws IllegalStateException if the file declares no NCCL function
     */
    public static void main(String... args) throws IOException {
        Arguments arguments = new Arguments("ThrowsClause --source FILE.java --exception CLASS", args);
        Path source = arguments.path("source");
        try {
            GeneratedFile.write(source, add(Files.readString(source), arguments.text("exception")));
        } catch (IllegalArgumentException e) {
            throw new IllegalStateException(source + ": " + e.getMessage(), e);
        }
    }

    /**
     * Adds the clause.
     *
     * @param source the text of a generated class
     * @param exception the name of the exception class
     * @return the text with the clauses
     * @throws IllegalArgumentException if there is no NCCL function in it
     */
    public static String add(String source, String exception) {
        Matcher matcher = NATIVE.matcher(source);
        StringBuilder result = new StringBuilder();
        int found = 0;
        while (matcher.find()) {
            String declaration = matcher.group();
            if (NCCL_NAME.matcher(matcher.group(1)).matches()) {
                found++;
                if (!THROWS.matcher(declaration).find()) {
                    declaration = declaration.substring(0, declaration.length() - 1) + " throws " + exception + ";";
                }
            }
            matcher.appendReplacement(result, Matcher.quoteReplacement(declaration));
        }
        if (found == 0) {
            throw new IllegalArgumentException("no NCCL function among the native methods");
        }
        return matcher.appendTail(result).toString();
    }
}
