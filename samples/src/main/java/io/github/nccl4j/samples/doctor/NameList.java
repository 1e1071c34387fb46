package io.github.nccl4j.samples.doctor;

import java.util.Arrays;
import java.util.List;

/**
 * A choice of names as NCCL's variables write it: {@code eth,ib} by their beginnings, {@code =eth0} exactly, {@code ^docker}
 * all others, {@code ^=eth0} all but one. A port behind a colon is not looked at.
 */
record NameList(boolean inverted, boolean exact, List<String> names) {

    static NameList of(String text) {
        boolean inverted = text.startsWith("^");
        String rest = inverted ? text.substring(1) : text;
        boolean exact = rest.startsWith("=");
        rest = exact ? rest.substring(1) : rest;
        List<String> names = Arrays.stream(rest.split(","))
                .map(name -> name.strip().replaceFirst(":\\d*$", ""))
                .filter(name -> !name.isEmpty())
                .toList();
        return new NameList(inverted, exact, names);
    }

    boolean matches(String name) {
        return names.stream().anyMatch(one -> exact ? name.equals(one) : name.startsWith(one)) != inverted;
    }
}
