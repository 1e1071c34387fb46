package io.github.nccl4j.header;

import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.function.BiConsumer;
import java.util.function.Function;

/** Compares two headers as parsed: names, types, order, values, and the releases that our comments tell. */
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

    /** Compares all, and returns how many declarations both headers have. */
    int run() {
        pairs(
                "function",
                ours.functions(),
                theirs.functions(),
                f -> ours.since(f.name()).orElse(""),
                this::function);
        pairs("constant", constants(ours), constants(theirs), Macro::since, this::macro);
        pairs("type", aliases(ours), aliases(theirs), Alias::since, this::alias);
        pairs("enumeration", ours.enums(), theirs.enums(), EnumType::since, this::enumeration);
        pairs("structure", ours.structs(), theirs.structs(), StructType::since, this::structure);
        return compared;
    }

    private <T> void pairs(
            String what,
            Map<String, T> ourMap,
            Map<String, T> theirMap,
            Function<T, String> since,
            BiConsumer<T, T> compare) {
        theirMap.forEach((name, their) -> {
            T our = ourMap.get(name);
            if (our == null) {
                differences.addition(what + " " + name + " is not in ours");
                return;
            }
            compared++;
            notYet(since.apply(our))
                    .ifPresent(release -> differences.different(String.format(
                            Locale.ROOT, "%s %s is there, but ours says that %s added it", what, name, release)));
            compare.accept(our, their);
        });
        ourMap.forEach((name, our) -> {
            if (!theirMap.containsKey(name)) {
                onlyOurs(what + " " + name, since.apply(our));
            }
        });
    }

    /** The release that a comment names, if it is newer than their header. */
    private Optional<Release> notYet(String since) {
        return Release.of(since).filter(release -> release.compareTo(differences.release()) > 0);
    }

    private void onlyOurs(String what, String since) {
        boolean vccl = !since.isEmpty() && Release.of(since).isEmpty();
        if (!vccl && notYet(since).isEmpty()) {
            String reason = since.isEmpty() ? "names no newer release" : "says " + since;
            differences.different(what + " is only in ours, which " + reason);
        }
    }

    private void function(io.github.nccl4j.header.Function our, io.github.nccl4j.header.Function their) {
        if (!our.signature().equals(their.signature()) && !Known.sameFunction(our, their, theirs)) {
            differences.unequal("function " + our.name(), our.signature(), their.signature());
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

    private void macro(Macro our, Macro their) {
        if (!our.functionLike() && !ours.initializers().containsKey(our.name())) {
            String ourValue = value(our);
            String theirValue = value(their);
            if (!ourValue.equals(theirValue)) {
                differences.unequal("constant " + our.name(), ourValue, theirValue);
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

    private void alias(Alias our, Alias their) {
        if (!our.type().equals(their.type()) && !Known.sameHandle(our.name(), their.type())) {
            differences.unequal("type " + our.name(), our.type(), their.type());
        }
    }

    private void enumeration(EnumType our, EnumType their) {
        Map<String, Enumerator> ourMap = new LinkedHashMap<>();
        our.enumerators().forEach(e -> ourMap.put(e.name(), e));
        Map<String, Enumerator> theirMap = new LinkedHashMap<>();
        their.enumerators().forEach(e -> theirMap.put(e.name(), e));
        pairs("enumerator", ourMap, theirMap, Enumerator::since, (a, b) -> enumerator(our, a, b));
    }

    private void enumerator(EnumType type, Enumerator our, Enumerator their) {
        String what = "enumerator " + our.name();
        if (our.value().isEmpty() || their.value().isEmpty()) {
            if (!our.text().replace(" ", "").equals(their.text().replace(" ", ""))) {
                differences.unequal(what, our.text(), their.text());
            }
        } else if (Known.COUNTS.contains(our.name())) {
            count(type, our, their.value().getAsLong());
        } else if (our.value().getAsLong() != their.value().getAsLong()) {
            differences.unequal(
                    what,
                    Long.toString(our.value().getAsLong()),
                    Long.toString(their.value().getAsLong()));
        }
    }

    /** A count must be right in ours, and theirs must be what ours would be without the newer enumerators. */
    private void count(EnumType type, Enumerator our, long their) {
        String what = "enumerator " + our.name();
        long all = largest(type, false) + 1;
        if (our.value().getAsLong() != all) {
            differences.different(String.format(
                    Locale.ROOT,
                    "%s is %d in ours, which has %d values",
                    what,
                    our.value().getAsLong(),
                    all));
        }
        long expected = largest(type, true) + 1;
        if (their != expected) {
            differences.addition(String.format(
                    Locale.ROOT, "%s is %d, expected %d from the comments in ours", what, their, expected));
        }
    }

    private long largest(EnumType type, boolean known) {
        return type.enumerators().stream()
                .filter(e -> !Known.COUNTS.contains(e.name()) && !Known.BOUNDS.contains(e.name()))
                .filter(e -> !known || notYet(e.since()).isEmpty())
                .mapToLong(e -> e.value().orElse(-1))
                .max()
                .orElse(-1);
    }

    private void structure(StructType our, StructType their) {
        Map<String, Field> ourMap = new LinkedHashMap<>();
        our.fields().forEach(f -> ourMap.put(our.name() + "." + f.name(), f));
        Map<String, Field> theirMap = new LinkedHashMap<>();
        their.fields().forEach(f -> theirMap.put(our.name() + "." + f.name(), f));
        pairs("field", ourMap, theirMap, Field::since, (a, b) -> {
            if (!a.toString().equals(b.toString())) {
                differences.unequal("field " + our.name() + "." + a.name(), a.toString(), b.toString());
            }
        });
        var ourOrder = ourMap.keySet().stream().filter(theirMap::containsKey).toList();
        var theirOrder = theirMap.keySet().stream().filter(ourMap::containsKey).toList();
        if (!ourOrder.equals(theirOrder)) {
            differences.unequal("order of the fields of " + our.name(), ourOrder.toString(), theirOrder.toString());
        }
    }
}
