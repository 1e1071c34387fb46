package io.github.nccl4j.header;

import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.function.BiConsumer;
import java.util.function.Function;

/** Compares two parsed headers: names, types, order, values, and the releases in our comments. */
final class DeclarationComparison {
    private final Header ours;
    private final Header theirs;
    private final Differences differences;
    private int compared;

    DeclarationComparison(Header ours, Header theirs, Differences differences) {
        this.ours = ours;
        this.theirs = theirs;
        this.differences = differences;
    }

    /** Runs the comparison and returns the number of declarations that both headers have. */
    int run() {
        comparePairs(
                "function",
                ours.functions(),
                theirs.functions(),
                f -> ours.since(f.name()).orElse(""),
                this::compareFunctions);
        comparePairs("constant", constants(ours), constants(theirs), Macro::since, this::compareMacros);
        comparePairs("type", aliases(ours), aliases(theirs), Alias::since, this::compareAliases);
        comparePairs("enumeration", ours.enums(), theirs.enums(), EnumType::since, this::compareEnums);
        comparePairs("structure", ours.structs(), theirs.structs(), StructType::since, this::compareStructs);
        return compared;
    }

    private <T> void comparePairs(
            String kind,
            Map<String, T> ourMap,
            Map<String, T> theirMap,
            Function<T, String> since,
            BiConsumer<T, T> compare) {
        theirMap.forEach((name, their) -> {
            T our = ourMap.get(name);
            if (our == null) {
                differences.addAddition(kind + " " + name + " is not in ours");
                return;
            }
            compared++;
            newerRelease(since.apply(our))
                    .ifPresent(release -> differences.addDifferent(String.format(
                            Locale.ROOT, "%s %s is in theirs, but ours says that %s added it", kind, name, release)));
            compare.accept(our, their);
        });
        ourMap.forEach((name, our) -> {
            if (!theirMap.containsKey(name)) {
                checkOnlyOurs(kind + " " + name, since.apply(our));
            }
        });
    }

    /** The release in a comment, if it is newer than their header. */
    private Optional<Release> newerRelease(String since) {
        return Release.of(since).filter(release -> release.compareTo(differences.release()) > 0);
    }

    /** Checks a declaration that only our header has: it must belong to a newer release or to VCCL. */
    private void checkOnlyOurs(String declaration, String since) {
        boolean isVccl = !since.isEmpty() && Release.of(since).isEmpty();
        if (!isVccl && newerRelease(since).isEmpty()) {
            String reason = since.isEmpty() ? "names no newer release" : "says " + since;
            differences.addDifferent(declaration + " is only in ours, which " + reason);
        }
    }

    private void compareFunctions(io.github.nccl4j.header.Function our, io.github.nccl4j.header.Function their) {
        if (!our.signature().equals(their.signature()) && !Known.isSameFunction(our, their, theirs)) {
            differences.addUnequal("function " + our.name(), our.signature(), their.signature());
        }
    }

    private static Map<String, Macro> constants(Header header) {
        Map<String, Macro> constants = new LinkedHashMap<>(header.macros());
        constants.keySet().removeAll(Known.VERSION_MACROS);
        constants
                .values()
                .removeIf(macro -> macro.functionLike() && !macro.name().startsWith("NCCL_"));
        return constants;
    }

    private void compareMacros(Macro our, Macro their) {
        if (!our.functionLike() && !ours.initializers().containsKey(our.name())) {
            String ourValue = value(our);
            String theirValue = value(their);
            if (!ourValue.equals(theirValue)) {
                differences.addUnequal("constant " + our.name(), ourValue, theirValue);
            }
        }
    }

    private static String value(Macro macro) {
        var tokens = Lexer.tokens(macro.text());
        try {
            return Long.toString(Expression.value(tokens.subList(0, tokens.size() - 1), name -> null));
        } catch (IllegalArgumentException e) {
            return macro.text().replace(" ", "");
        }
    }

    private static Map<String, Alias> aliases(Header header) {
        Map<String, Alias> aliases = new LinkedHashMap<>(header.aliases());
        aliases.keySet().removeAll(Known.OWN_ALIASES);
        return aliases;
    }

    private void compareAliases(Alias our, Alias their) {
        if (!our.type().equals(their.type()) && !Known.isSameHandle(our.name(), their.type())) {
            differences.addUnequal("type " + our.name(), our.type(), their.type());
        }
    }

    private void compareEnums(EnumType our, EnumType their) {
        Map<String, Enumerator> ourMap = new LinkedHashMap<>();
        our.enumerators().forEach(e -> ourMap.put(e.name(), e));
        Map<String, Enumerator> theirMap = new LinkedHashMap<>();
        their.enumerators().forEach(e -> theirMap.put(e.name(), e));
        comparePairs("enumerator", ourMap, theirMap, Enumerator::since, (a, b) -> compareEnumerators(our, a, b));
    }

    private void compareEnumerators(EnumType type, Enumerator our, Enumerator their) {
        String name = "enumerator " + our.name();
        if (our.value().isEmpty() || their.value().isEmpty()) {
            if (!our.text().replace(" ", "").equals(their.text().replace(" ", ""))) {
                differences.addUnequal(name, our.text(), their.text());
            }
        } else if (Known.COUNTS.contains(our.name())) {
            compareCounts(type, our, their.value().getAsLong());
        } else if (our.value().getAsLong() != their.value().getAsLong()) {
            differences.addUnequal(
                    name,
                    Long.toString(our.value().getAsLong()),
                    Long.toString(their.value().getAsLong()));
        }
    }

    /** Our count must be the number of our values; theirs, the number of our values without those of newer releases. */
    private void compareCounts(EnumType type, Enumerator our, long their) {
        String name = "enumerator " + our.name();
        long all = largest(type, false) + 1;
        if (our.value().getAsLong() != all) {
            differences.addDifferent(String.format(
                    Locale.ROOT,
                    "%s is %d in ours, which has %d values",
                    name,
                    our.value().getAsLong(),
                    all));
        }
        long expected = largest(type, true) + 1;
        if (their != expected) {
            differences.addAddition(String.format(
                    Locale.ROOT, "%s is %d, expected %d from the comments in ours", name, their, expected));
        }
    }

    /** The largest value of an enumeration; with {@code onlyTheirs}, without enumerators of newer releases. */
    private long largest(EnumType type, boolean onlyTheirs) {
        return type.enumerators().stream()
                .filter(e -> !Known.COUNTS.contains(e.name()) && !Known.BOUNDS.contains(e.name()))
                .filter(e -> !onlyTheirs || newerRelease(e.since()).isEmpty())
                .mapToLong(e -> e.value().orElse(-1))
                .max()
                .orElse(-1);
    }

    private void compareStructs(StructType our, StructType their) {
        Map<String, Field> ourMap = new LinkedHashMap<>();
        our.fields().forEach(f -> ourMap.put(our.name() + "." + f.name(), f));
        Map<String, Field> theirMap = new LinkedHashMap<>();
        their.fields().forEach(f -> theirMap.put(our.name() + "." + f.name(), f));
        comparePairs("field", ourMap, theirMap, Field::since, (a, b) -> {
            if (!a.toString().equals(b.toString())) {
                differences.addUnequal("field " + our.name() + "." + a.name(), a.toString(), b.toString());
            }
        });
        var ourOrder = ourMap.keySet().stream().filter(theirMap::containsKey).toList();
        var theirOrder = theirMap.keySet().stream().filter(ourMap::containsKey).toList();
        if (!ourOrder.equals(theirOrder)) {
            differences.addUnequal("order of the fields of " + our.name(), ourOrder.toString(), theirOrder.toString());
        }
    }
}
