package io.github.nccl4j.tools.doctor;

import java.util.Arrays;
import java.util.List;

/**
 * A list of names in the syntax of NCCL's variables: {@code eth,ib} selects names by prefix, {@code =eth0} exact names,
 * {@code ^docker} all other names, {@code ^=eth0} all names but one. A port after a colon is ignored. Immutable.
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
