package io.github.nccl4j.header;

import java.util.Locale;
import java.util.Map;

/** Compares the layouts of two headers, as the compiler computes them. */
final class LayoutComparison {
    private final Map<String, String> ours;
    private final Map<String, String> theirs;
    private final Differences differences;

    LayoutComparison(Map<String, String> ours, Map<String, String> theirs, Differences differences) {
        this.ours = ours;
        this.theirs = theirs;
        this.differences = differences;
    }

    void run(Header ourHeader, Header theirHeader) {
        theirs.forEach((name, value) -> {
            String our = ours.get(name);
            // DeclarationComparison compares the counts.
            boolean isCount = Known.COUNTS.contains(name.substring(name.indexOf(' ') + 1));
            if (our != null && !our.equals(value) && !isCount && !name.startsWith("sizeof ")) {
                differences.addUnequal(name, our, value);
            }
        });
        for (StructType their : theirHeader.structs().values()) {
            StructType our = ourHeader.structs().get(their.name());
            if (our != null) {
                compareSizes(our, their);
            }
        }
        for (String type : theirHeader.enums().keySet()) {
            String key = "sizeof " + type;
            if (ours.containsKey(key) && !ours.get(key).equals(theirs.get(key))) {
                differences.addUnequal(key, ours.get(key), theirs.get(key));
            }
        }
    }

    /** Their structure must be as large as ours without the fields that theirs lacks. */
    private void compareSizes(StructType our, StructType their) {
        var names = their.fields().stream().map(Field::name).toList();
        long end = 0;
        for (Field field : our.fields()) {
            if (names.contains(field.name())) {
                String key = our.name() + "." + field.name();
                end = Math.max(end, number("offset " + key) + number("size " + key));
            }
        }
        long alignment = number("alignof " + our.name());
        long expected = (end + alignment - 1) / alignment * alignment;
        String size = theirs.get("sizeof " + our.name());
        if (!size.equals(Long.toString(expected))) {
            String text = String.format(
                    Locale.ROOT, "sizeof %s is %s, expected %d from the fields in ours", our.name(), size, expected);
            if (our.fields().stream().map(Field::name).toList().containsAll(names)) {
                differences.addDifferent(text);
            } else {
                differences.addAddition(text);
            }
        }
    }

    private long number(String key) {
        return Long.parseLong(ours.get(key));
    }
}
