package io.github.nccl4j.header;

import java.util.Locale;
import java.util.Map;

/** Compares what the compiler says of two headers. */
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
            boolean told = Known.COUNTS.contains(name.substring(name.indexOf(' ') + 1));
            if (our != null && !our.equals(value) && !told && !name.startsWith("sizeof ")) {
                differences.unequal(name, our, value);
            }
        });
        for (StructType their : theirHeader.structs().values()) {
            StructType our = ourHeader.structs().get(their.name());
            if (our != null) {
                size(our, their);
            }
        }
        for (String type : theirHeader.enums().keySet()) {
            String key = "sizeof " + type;
            if (ours.containsKey(key) && !ours.get(key).equals(theirs.get(key))) {
                differences.unequal(key, ours.get(key), theirs.get(key));
            }
        }
    }

    /** Their structure is as large as ours would be without the fields that theirs has not got. */
    private void size(StructType our, StructType their) {
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
                differences.different(text);
            } else {
                differences.addition(text);
            }
        }
    }

    private long number(String key) {
        return Long.parseLong(ours.get(key));
    }
}
