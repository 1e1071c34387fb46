package io.github.nccl4j.mutation;

import java.io.IOException;

/** One change of one line. */
record Fault(String path, int line, String description, Plan plan) {
    /** Puts the fault into a copy of the checkout; false if the changed line does not compile. */
    interface Plan {
        boolean plant(Checkout copy) throws IOException, InterruptedException;
    }

    /** The row of the table: the module, and in nccl-presets the package. */
    String row() {
        String module = path.substring(0, path.indexOf("/src/"));
        if (!module.equals("nccl-presets")) {
            return module;
        }
        if (path.contains("/native/")) {
            return module + " native";
        }
        String[] names = path.split("/io/github/nccl4j/")[1].split("/");
        if (names.length == 1) {
            return module;
        }
        return module + " " + names[0] + (names[0].equals("internal") && names.length > 2 ? "." + names[1] : "");
    }
}
